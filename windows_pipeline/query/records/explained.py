"""What became of a record, as `explain` returns it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from enum import StrEnum
from typing import Any

from windows_pipeline.query.records.absent_records import RejectedRecord, SkippedFile
from windows_pipeline.query.stored_window import StoredWindow


class Fate(StrEnum):
    """What became of a record."""

    COUNTED = "counted"
    PENDING = "pending"
    LATE = "late"
    PARTLY_LATE = "partly_late"
    OUTSIDE_WINDOWS = "outside_windows"
    FILTERED_OUT = "filtered_out"
    WAITING = "waiting"


@dataclass(frozen=True)
class ExplainedRecord:
    """An accepted record, and what became of it in the windows of a definition.

    Attributes:
        key: The definition's key; of several columns a dict of the parts by name.
        event_time: Its event time.
        arrival_unit: Its arrival day.
        source_partition: The source partition that it came by.
        offset: Its offset in its arrival day and source partition.
        fate: What became of it.
        reason: Why, in a sentence.
        windows: The windows that count it, in their current state, by start; for row windows the
            record's own window.
        stream_time: The stream time of its source partition as it arrived; None if the record
            waits.
        watermark: The watermark before its arrival day; None if there was none.
        close_time: Windows that end before it were closed as the record arrived.
        behind_ms: How far its event time was behind stream time.
        values: Its values, by the source's names.
    """

    key: Any
    event_time: datetime
    arrival_unit: date
    source_partition: str
    offset: int
    fate: Fate
    reason: str
    windows: tuple[StoredWindow, ...]
    stream_time: datetime | None
    watermark: datetime | None
    close_time: datetime | None
    behind_ms: int | None
    values: Mapping[str, Any]


@dataclass(frozen=True)
class Explanation:
    """What became of the records that were asked for.

    Attributes:
        records: The accepted ones, by event time, then by arrival.
        are_more: Whether there are more accepted ones than were asked for.
        rejected: If none was accepted: rejected records whose text names the key and the time; if
            none names the time, those that name the key.
        skipped: If none was accepted: the files that were left out.
        through: The last day up to which all days are ingested; None before the first.
        waits_for: The first day that is not ingested.
    """

    records: tuple[ExplainedRecord, ...]
    are_more: bool
    rejected: tuple[RejectedRecord, ...]
    skipped: tuple[SkippedFile, ...]
    through: date | None
    waits_for: date
