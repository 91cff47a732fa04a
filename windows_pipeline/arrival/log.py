"""The arrival log: its rows, made of records by Spark, and read by a job once (rule A2)."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from windows_pipeline.arrival.order import ORDERED_WITHIN
from windows_pipeline.arrival.watermark import LogRow, largest
from windows_pipeline.compat.local_frame import small_frame
from windows_pipeline.sources.landed_columns import AMBIGUOUS
from windows_pipeline.storage.table import Table

ArrivalLog = tuple[LogRow, ...]
_COLUMNS = [name.removesuffix("_ms") for name in LogRow._fields if name != "ambiguous"]
"""The columns that jobs read, which each pipeline's log has."""


def is_of_stream(log: Iterable[LogRow]) -> bool:
    """Whether a stream ingested any part of the log."""
    return any(row.batch is not None for row in log)


def is_mixed(log: Iterable[LogRow]) -> bool:
    """Whether runs by days and a stream both ingested; then the records are not to be trusted."""
    return len({row.batch is None for row in log}) > 1


def summed_up(rows: Iterable[LogRow]) -> tuple[LogRow, ...]:
    """Merges the rows of micro-batches into one row for each arrival unit and source partition.

    Args:
        rows: Rows of the log; those of newer micro-batches come later.
    """
    merged: dict[tuple[date, str | None], LogRow] = {}
    for row in rows:
        key = (row.arrival_unit, row.source_partition)
        merged[key] = _merged(merged[key], row) if key in merged else row
    return tuple(merged.values())


def _merged(older: LogRow, newer: LogRow) -> LogRow:
    return older._replace(
        max_event_time_ms=largest(older.max_event_time_ms, newer.max_event_time_ms),
        rows=older.rows + newer.rows,
        arrival_unit_rejected=older.arrival_unit_rejected + newer.arrival_unit_rejected,
        last_offset=largest(older.last_offset, newer.last_offset),
        watermark_ms=largest(older.watermark_ms, newer.watermark_ms),
        batch=largest(older.batch, newer.batch),
        stream=newer.stream,
    )


def arrival_log_rows(ordered: DataFrame, rejected: DataFrame, days: Iterable[date]) -> DataFrame:
    """Makes the log's rows of whole arrival units; a row says that its unit has arrived (rule A2).

    Args:
        ordered: The accepted records: `arrival_unit`, `source_partition`, `offset` and
            `_event_time_ms`; where a column has a zone, `_ambiguous`.
        rejected: The rejected ones: `arrival_unit`.
        days: The arrival units, with those that have no records.

    Returns:
        One row an arrival unit and source partition, unordered: `arrival_unit`, `source_partition`,
        `first_offset`, `last_offset`, `rows`, `_max_event_time_ms` (bigint, ms), `ambiguous`
        (bigint, if the records have `_ambiguous`) and `arrival_unit_rejected` (bigint: rejected
        records of the whole arrival unit, repeated in each of its rows). An arrival unit without
        accepted records has one row, with 0 `rows`, and null for the source partition, the offsets
        and the event time.
    """
    arrival_units = small_frame(
        ordered.sparkSession, [(day,) for day in sorted(set(days))], "arrival_unit date"
    )
    has_zones = AMBIGUOUS in ordered.columns
    ambiguous = {"ambiguous": F.count_if(AMBIGUOUS)} if has_zones else {}
    of_partition = ordered.groupBy(*ORDERED_WITHIN).agg(
        F.min("offset").alias("first_offset"),
        F.max("offset").alias("last_offset"),
        F.count("*").alias("rows"),
        F.max("_event_time_ms").alias("_max_event_time_ms"),
        *[count.alias(name) for name, count in ambiguous.items()],
    )
    of_arrival_unit = rejected.groupBy("arrival_unit").agg(
        F.count("*").alias("arrival_unit_rejected")
    )
    return (
        arrival_units.join(of_partition, "arrival_unit", "left")
        .join(of_arrival_unit, "arrival_unit", "left")
        .fillna(0, ["rows", "arrival_unit_rejected", *ambiguous])
        .select(
            *ORDERED_WITHIN,
            "first_offset",
            "last_offset",
            "rows",
            "_max_event_time_ms",
            *ambiguous,
            "arrival_unit_rejected",
        )
    )


def read_log(spark: SparkSession, arrival_log: Table) -> ArrivalLog:
    """Reads a pipeline's arrival log."""
    return _log_rows(arrival_log.rows(spark, _COLUMNS))


def rows_of(log: DataFrame) -> ArrivalLog:
    """Collects rows of the arrival log from a frame that is not published yet."""
    return _log_rows(log.select(_COLUMNS).toArrow())


def _log_rows(rows: pa.Table) -> ArrivalLog:
    columns = (_in_ms(rows[name]).to_pylist() for name in _COLUMNS)
    return tuple(LogRow(*row) for row in zip(*columns, strict=True))


def _in_ms(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Casts timestamps to milliseconds since 1970; returns other columns unchanged."""
    if not pa.types.is_timestamp(values.type):
        return values
    return values.cast(pa.timestamp("ms", tz=values.type.tz)).cast(pa.int64())
