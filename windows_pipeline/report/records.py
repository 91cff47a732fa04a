"""How late records came, and how many records windows have; reads the newest days of a table."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

import numpy as np
import pyarrow as pa

from windows_pipeline.config import Pipeline
from windows_pipeline.plots.bars import COUNTS, LATENESS_MS, Bars, bars_of
from windows_pipeline.query.records.record_times import RecordTimes
from windows_pipeline.query.tables.local import LocalTable
from windows_pipeline.query.tables.wanted import Wanted
from windows_pipeline.windows.durations import duration_text

MOST_ROWS = 5_000_000
"""The most records whose lateness is read: those of the newest arrival days."""
_SHARE = 0.99
_MINUTE_MS, _HOUR_MS, _DAY_MS = 60_000, 3_600_000, 86_400_000


@dataclass(frozen=True)
class Lateness:
    """How far records were behind stream time when they arrived.

    Attributes:
        bars: The number of records by lateness.
        records: The number of records.
        most_ms: The lateness that 99 % of the records do not exceed; None without records.
        within: The share of the records that each grace caught in all of their windows.
        read_from: The first arrival day that was read; None if all days were.
    """

    bars: Bars
    records: int
    most_ms: int | None
    within: dict[int, float]
    read_from: date | None


def read_lateness(
    raw: LocalTable,
    times: RecordTimes,
    days: Collection[date],
    graces_ms: Sequence[int] = (),
) -> Lateness:
    """The lateness of the accepted records of some arrival days.

    With a grace that is not shorter than a record's lateness, every window of its event time was
    open when it arrived (rule A5). Days are read whole, the newest first, up to `MOST_ROWS`.

    Args:
        raw: The table raw_events.
        times: What its records met.
        days: The arrival days.
        graces_ms: Graces, whose share of records is counted.
    """
    columns = ["arrival_unit", "source_partition", "event_time", "running_max", "batch"]
    found: list[np.ndarray[Any, Any]] = [np.empty(0, np.int64)]
    read, read_from, last_read = 0, None, None
    for day in sorted(set(days) & raw.days, reverse=True):
        if read >= MOST_ROWS:
            read_from = last_read
            break
        for batch in raw.batches(Wanted(days=frozenset((day,))), columns):
            read += batch.num_rows
            found.append(times.behind_ms(pa.Table.from_batches([batch])))
        last_read = day
    values = np.concatenate(found)
    most_ms = None
    if values.size:
        index = int(np.ceil(_SHARE * values.size)) - 1
        most_ms = int(np.partition(values, index)[index])
    within = {grace: float((values <= grace).mean()) if values.size else 1.0 for grace in graces_ms}
    return Lateness(bars_of(values, LATENESS_MS), int(values.size), most_ms, within, read_from)


def read_sizes(final: LocalTable, day: date) -> Bars:
    """The windows that a day closed, by number of records."""
    total: np.ndarray[Any, Any] = np.zeros(len(COUNTS) - 1, np.int64)
    for rows in final.batches(Wanted(days=frozenset((day,))), ["record_count"]):
        total += np.asarray(bars_of(rows["record_count"].to_numpy(), COUNTS).counts)
    return Bars(COUNTS, total.tolist())


def by_grace(pipeline: Pipeline) -> list[tuple[str, int]]:
    """Each grace of a pipeline in ms, the shortest first, after the names of its definitions."""
    names: dict[int, list[str]] = {}
    for name, windows in pipeline.windows.items():
        names.setdefault(windows.grace, []).append(name)
    return [(", ".join(of_grace), grace) for grace, of_grace in sorted(names.items())]


def caught_text(most_ms: int | None) -> str:
    """Says how long a grace would have to be for 99 % of the records."""
    if most_ms is None:
        return "There are no records."
    if most_ms == 0:
        return "99 % of the records came in the order of their event times: no grace is needed."
    return f"A grace of {rounded_up(most_ms)} would have caught 99 % of the records."


def rounded_up(ms: int) -> str:
    """A duration that is not shorter, as a text of few units."""
    steps = ((_DAY_MS, _HOUR_MS), (_HOUR_MS, _MINUTE_MS), (_MINUTE_MS, 1_000))
    step = next((step for least, step in steps if ms >= least), 1)
    return duration_text(-(-ms // step) * step)
