"""The rows of the arrival log: what has arrived, read once a job (rule A2)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import date
from typing import NamedTuple

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from windows_pipeline.arrival.watermark import Arrival
from windows_pipeline.storage.table import Table


class LogRow(NamedTuple):
    """A row of the arrival log: a source partition's part of a unit."""

    arrival_unit: date
    source_partition: str | None
    max_event_time_ms: int | None
    rows: int
    unit_rejected: int
    last_offset: int | None = None
    watermark_ms: int | None = None
    batch: int | None = None
    stream: str | None = None
    first_offset: int | None = None


ArrivalLog = tuple[LogRow, ...]
_COLUMNS = [name.removesuffix("_ms") for name in LogRow._fields]


def arrivals_in(log: Iterable[LogRow]) -> Iterator[Arrival]:
    """The log as the engine takes it."""
    return (
        Arrival(
            row.arrival_unit,
            row.source_partition,
            row.max_event_time_ms,
            row.watermark_ms,
            row.batch,
        )
        for row in log
    )


def is_of_stream(log: Iterable[LogRow]) -> bool:
    """Whether a stream brought any of it."""
    return any(row.batch is not None for row in log)


def is_mixed(log: Iterable[LogRow]) -> bool:
    """Whether days were ingested whole and by a stream: no record of these may be trusted."""
    return len({row.batch is None for row in log}) > 1


def summed_up(rows: Iterable[LogRow]) -> tuple[LogRow, ...]:
    """A row a unit and source partition, of those of its micro-batches, the newest one last."""
    merged: dict[tuple[date, str | None], LogRow] = {}
    for row in rows:
        place = (row.arrival_unit, row.source_partition)
        merged[place] = _merged(merged[place], row) if place in merged else row
    return tuple(merged.values())


def _merged(one: LogRow, other: LogRow) -> LogRow:
    return one._replace(
        max_event_time_ms=largest(one.max_event_time_ms, other.max_event_time_ms),
        rows=one.rows + other.rows,
        unit_rejected=one.unit_rejected + other.unit_rejected,
        last_offset=largest(one.last_offset, other.last_offset),
        watermark_ms=largest(one.watermark_ms, other.watermark_ms),
        batch=largest(one.batch, other.batch),
        stream=other.stream,
    )


def largest(one: int | None, other: int | None) -> int | None:
    """The larger of two, where both are known."""
    known = [value for value in (one, other) if value is not None]
    return max(known, default=None)


def read_log(spark: SparkSession, arrival_log: Table) -> ArrivalLog:
    """Reads a pipeline's arrival log."""
    return _log_rows(arrival_log.rows(spark, _COLUMNS))


def rows_of(log: DataFrame) -> ArrivalLog:
    """Rows of the arrival log that are not published yet."""
    return _log_rows(log.select(_COLUMNS).toArrow())


def _log_rows(rows: pa.Table) -> ArrivalLog:
    columns = (_in_ms(rows[name]).to_pylist() for name in _COLUMNS)
    return tuple(map(LogRow._make, zip(*columns, strict=True)))


def _in_ms(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Instants as milliseconds; others as they are."""
    if not pa.types.is_timestamp(values.type):
        return values
    return values.cast(pa.timestamp("ms", tz=values.type.tz)).cast(pa.int64())
