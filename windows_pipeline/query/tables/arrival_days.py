"""Reads the arrival log without Spark: the watermark after each day and micro-batch (rule A4)."""

from __future__ import annotations

from datetime import date
from typing import NamedTuple

import pyarrow as pa

from windows_pipeline.query.tables.arrow_values import instants
from windows_pipeline.query.tables.local import LocalTable
from windows_pipeline.query.tables.wanted import Wanted
from windows_pipeline.storage.catalog import TableSpec

_COLUMNS = (
    *("arrival_unit", "source_partition", "rows", "max_event_time", "arrival_unit_rejected"),
    *("watermark", "batch"),
)


class LogPart(NamedTuple):
    """A row of the arrival log: a source partition's part of an arrival unit."""

    arrival_unit: date
    source_partition: str | None
    rows: int
    max_event_time_ms: int | None
    arrival_unit_rejected: int
    watermark_ms: int | None
    batch: int | None


def log_parts(arrival_log: TableSpec) -> tuple[LogPart, ...]:
    """The rows of a pipeline's arrival log; none if the table does not exist.

    Raises:
        TableDamagedError: A file of the table is damaged.
        UnreadableTableError: Only Spark can read the table.
    """
    table = LocalTable.if_there(arrival_log)
    if table is None:
        return ()
    rows = table.read(Wanted(), columns=_COLUMNS)
    columns = (_in_ms(rows[name]).to_pylist() for name in _COLUMNS)
    return tuple(map(LogPart._make, zip(*columns, strict=True)))


class Watermarks:
    """The watermark after each arrival unit and micro-batch."""

    def __init__(self, log: tuple[LogPart, ...]) -> None:
        """Takes the log's rows."""
        self._of_batch: dict[tuple[date, int | None], int] = {}
        self._of_day: dict[date, int] = {}
        for part in log:
            if part.watermark_ms is None:
                continue
            watermark_ms, day = part.watermark_ms, part.arrival_unit
            at = (day, part.batch)
            self._of_batch[at] = max(self._of_batch.get(at, watermark_ms), watermark_ms)
            self._of_day[day] = max(self._of_day.get(day, watermark_ms), watermark_ms)

    def after(self, rows: pa.Table) -> pa.Array:
        """The watermark after the arrival unit or micro-batch that wrote each row; null for none.

        Args:
            rows: Rows with `arrival_unit` and, of tables that have it, `batch`.
        """
        days = rows["arrival_unit"].to_pylist()
        of_batches = "batch" in rows.column_names
        batches = rows["batch"].to_pylist() if of_batches else [None] * len(days)
        found = [self._after(at) for at in zip(days, batches, strict=True)]
        return instants(found)

    def _after(self, at: tuple[date, int | None]) -> int | None:
        if at[1] is not None and at in self._of_batch:
            return self._of_batch[at]
        return self._of_day.get(at[0])


def watermark_after_ms(log: tuple[LogPart, ...], day: date | None) -> int | None:
    """The watermark after a day, which never falls (rule A4); None if it is not known."""
    known = [
        part.watermark_ms
        for part in log
        if part.watermark_ms is not None and day is not None and part.arrival_unit <= day
    ]
    return max(known, default=None)


def _in_ms(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Converts timestamps to milliseconds since 1970; other columns stay unchanged."""
    if not pa.types.is_timestamp(values.type):
        return values
    return values.cast(pa.timestamp("ms", tz=values.type.tz)).cast(pa.int64())
