"""Where a record may be that is not among the accepted ones: rejected, or in a file left out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from windows_pipeline.config import Pipeline
from windows_pipeline.query.tables.arrow_values import FALSE, python_rows
from windows_pipeline.query.tables.local import LocalTable
from windows_pipeline.query.tables.wanted import Span, Wanted
from windows_pipeline.storage.catalog import TableSpec, specs_of
from windows_pipeline.text.instants import EPOCH

_DAY = timedelta(days=1)
_HOUR = timedelta(hours=1)


@dataclass(frozen=True)
class RejectedRecord:
    """A rejected record whose text names a key (rule A6).

    Attributes:
        arrival_unit: Its arrival day.
        file: The landed file, or the topic's partition, that has it.
        reason: Why it was rejected.
        original: Its text.
        names_time: Whether the text names the event time, too.
    """

    arrival_unit: date
    file: str | None
    reason: str
    original: str
    names_time: bool


@dataclass(frozen=True)
class SkippedFile:
    """A bad file that was left out with all its records (rule A8).

    Attributes:
        arrival_unit: The arrival day that lacks its records.
        file: The file.
        cause: What is wrong with it.
        fix: What to do.
    """

    arrival_unit: date
    file: str
    cause: str
    fix: str


def rejected_records(
    pipeline: Pipeline,
    warehouse: str,
    key_texts: Sequence[str],
    times: Span | None,
    limit: int,
) -> tuple[RejectedRecord, ...]:
    """The rejected records whose text names all parts of a key, and the time where any does.

    Args:
        pipeline: The pipeline.
        warehouse: The folder of all tables.
        key_texts: The parts of the key as texts; those without a text are left out.
        times: The event times; None if they are not known.
        limit: The greatest number of records: those of the newest days.

    Raises:
        TableDamagedError: A file of the table is damaged.
        UnreadableTableError: Only Spark can read the table.
    """
    if not key_texts or times is None or None in times:
        return ()
    forms = _time_forms(*(EPOCH + timedelta(microseconds=us or 0) for us in times))
    found = [
        RejectedRecord(
            row["arrival_unit"],
            row["file"],
            row["reason"],
            row["original"],
            any(form in row["original"] for form in forms),
        )
        for rows in _newest_first(specs_of(pipeline, warehouse).rejected_records, key_texts)
        for row in python_rows(rows)
    ]
    naming_time = [each for each in found if each.names_time]
    return tuple((naming_time or found)[:limit])


def skipped_files(pipeline: Pipeline, warehouse: str) -> tuple[SkippedFile, ...]:
    """The files that were left out, by day and name; none if a bad file stops the pipeline.

    Raises:
        TableDamagedError: A file of the table is damaged.
        UnreadableTableError: Only Spark can read the table.
    """
    spec = specs_of(pipeline, warehouse).quarantined_files
    table = LocalTable.if_there(spec) if spec.is_written else None
    if table is None:
        return ()
    rows = python_rows(table.read(Wanted(), columns=["arrival_unit", "file", "cause", "fix"]))
    return tuple(sorted((SkippedFile(**row) for row in rows), key=_by_day_and_name))


def _by_day_and_name(skipped: SkippedFile) -> tuple[date, str]:
    return (skipped.arrival_unit, skipped.file)


def _newest_first(spec: TableSpec, texts: Sequence[str]) -> Iterator[pa.Table]:
    """The rows whose text has all of some texts, some at a time, the newest day first."""
    table = LocalTable.if_there(spec)
    if table is None:
        return
    names = ["arrival_unit", "file", "reason", "original"]
    for day in sorted(table.days, reverse=True):
        for batch in table.batches(Wanted(days=frozenset((day,))), names):
            rows = pa.Table.from_batches([batch])
            yield rows.filter(_has_all(rows["original"], texts))


def _has_all(values: pa.ChunkedArray, texts: Sequence[str]) -> Any:
    masks = [pc.fill_null(pc.match_substring(values, text), FALSE) for text in texts]
    return reduce(pc.and_, masks)


def _time_forms(first: datetime, last: datetime) -> list[str]:
    """The texts by which records write a time that is known so exactly."""
    day = f"{first:%Y-%m-%d}"
    span = last - first
    if span + timedelta(milliseconds=1) >= _DAY:
        return [day]
    clock = f"{first:%H}:" if span + timedelta(milliseconds=1) >= _HOUR else f"{first:%H:%M}"
    seconds = str(int(first.timestamp()))
    epochs = [seconds] if span < timedelta(seconds=1) else []
    return [f"{day}T{clock}", f"{day} {clock}", *epochs]
