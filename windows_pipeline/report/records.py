"""Statistics of records: lateness, records per window, and reasons why records do not count."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

import numpy as np
import pyarrow as pa

from windows_pipeline.plots.bars import COUNTS, LATENESS_MS, Bars, bars_of
from windows_pipeline.query.records.record_times import RecordTimes
from windows_pipeline.query.tables.local import LocalTable
from windows_pipeline.query.tables.wanted import Wanted
from windows_pipeline.report.words import rounded_up

MOST_ROWS = 5_000_000
"""The most rows of a table that a report reads: those of the newest arrival days."""
_SHARE = 0.99


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


@dataclass(frozen=True)
class Counted:
    """How many rows there are of each kind.

    Attributes:
        counts: The number of rows of each kind, the most first.
        rows: The number of rows.
        read_from: The first arrival day that was read; None if all days were.
    """

    counts: tuple[tuple[str, int], ...]
    rows: int
    read_from: date | None


def read_lateness(
    raw: LocalTable,
    times: RecordTimes,
    days: Collection[date],
    graces_ms: Sequence[int] = (),
    most: int = MOST_ROWS,
) -> Lateness:
    """The lateness of the accepted records of some arrival days.

    With a grace that is not shorter than a record's lateness, every window of its event time was
    open when it arrived (rule A5).

    Args:
        raw: The table raw_events.
        times: What its records met.
        days: The arrival days.
        graces_ms: Graces, whose share of records is counted.
        most: The most rows to read; at least one whole day is read.
    """
    columns = ["arrival_unit", "source_partition", "event_time", "running_max", "batch"]
    reader = _Newest(raw, days, columns, most)
    found = [times.behind_ms(rows) for rows in reader]
    values = np.concatenate([np.empty(0, np.int64), *found])
    most_ms = None
    if values.size:
        index = int(np.ceil(_SHARE * values.size)) - 1
        most_ms = int(np.partition(values, index)[index])
    within = {grace: float((values <= grace).mean()) if values.size else 1.0 for grace in graces_ms}
    bars = bars_of(values, LATENESS_MS)
    return Lateness(bars, int(values.size), most_ms, within, reader.read_from)


def read_sizes(
    final: LocalTable, days: Collection[date], most: int = MOST_ROWS
) -> tuple[Bars, date | None]:
    """The closed windows by number of records; and the first day read, None if all were read."""
    reader = _Newest(final, days, ["record_count"], most)
    total: np.ndarray[Any, Any] = np.zeros(len(COUNTS) - 1, np.int64)
    for rows in reader:
        total += np.asarray(bars_of(rows["record_count"].to_numpy(), COUNTS).counts)
    return Bars(COUNTS, total.tolist()), reader.read_from


def count_by(
    table: LocalTable, column: str, days: Collection[date], most: int = MOST_ROWS
) -> Counted:
    """How many rows of some arrival days have each value of a column of texts."""
    reader = _Newest(table, days, [column], most)
    found: Counter[str] = Counter()
    for rows in reader:
        for each in rows[column].value_counts():
            found[str(each["values"].as_py())] += each["counts"].as_py()
    return Counted(tuple(found.most_common()), found.total(), reader.read_from)


def caught_text(most_ms: int | None) -> str:
    """Says how long a grace would have to be for 99 % of the records."""
    if most_ms is None:
        return "There are no records."
    if most_ms == 0:
        return "99 % of the records came in the order of their event times: no grace is needed."
    return f"A grace of {rounded_up(most_ms)} would have caught 99 % of the records."


class _Newest:
    """The rows of a table, some at a time, the newest arrival day first."""

    def __init__(
        self, table: LocalTable, days: Collection[date], columns: Sequence[str], most: int
    ) -> None:
        self._table, self._columns, self._most = table, columns, most
        self._days = sorted(set(days) & table.days, reverse=True)
        self.read_from: date | None = None

    def __iter__(self) -> Iterator[pa.Table]:
        """The rows; days are always read whole."""
        read = 0
        for number, day in enumerate(self._days):
            if read >= self._most:
                self.read_from = self._days[number - 1]
                return
            for batch in self._table.batches(Wanted(days=frozenset((day,))), self._columns):
                read += batch.num_rows
                yield pa.Table.from_batches([batch])
