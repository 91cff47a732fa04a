"""Traces an alert to the records of its window (rule E5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import reduce
from operator import and_

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from windows_pipeline.aggregates import Aggregate, Function
from windows_pipeline.arrival.log import read_log
from windows_pipeline.config import Pipeline
from windows_pipeline.engine.lateness import last_instant
from windows_pipeline.incremental.arrival_units import arrivals_of
from windows_pipeline.incremental.definition import Definition
from windows_pipeline.incremental.windows import ARRIVAL, arrival_unit_windows
from windows_pipeline.kernels.windows.chunk import Closing
from windows_pipeline.settings import Settings
from windows_pipeline.storage.instants import timestamp_to_ms, with_timestamps
from windows_pipeline.storage.tables import source_tables, window_tables
from windows_pipeline.tuning import Tuning
from windows_pipeline.windows import FixedWindows, GracedRows, PipelineWindows, SessionWindows


def records_of_alert(
    spark: SparkSession,
    settings: Settings,
    pipeline: Pipeline,
    windows_name: str,
    key: object,
    window_end: datetime,
) -> DataFrame:
    """The records that count in a final window, and so in each alert of the window.

    Several row windows of a key may end at the same time; the records of all are returned.

    Args:
        spark: The session.
        settings: Where the tables lie.
        pipeline: The pipeline.
        windows_name: The window definition.
        key: The window's key: a value or, of a key of several columns, a sequence of values. A text
            stands for a value of any type; an empty one also for null.
        window_end: The window's end, an instant with a zone.

    Returns:
        The columns of raw_events by the definition's key, and `stream_time` and `close_time`
        (timestamps), which the record met; ordered by event time.

    Raises:
        ValueError: No final window of this key ends at this time.
        TableMissingError: A table does not exist.
    """
    source = source_tables(pipeline, settings.warehouse)
    tables = window_tables(pipeline, windows_name, settings.warehouse)
    for table in (source.raw_events, source.arrival_log, tables.final_windows):
        table.require(spark)
    end_ms = round(window_end.timestamp() * 1000)
    final = tables.final_windows.read(spark)
    kind = final.schema["key"].dataType
    is_window = is_key(key, kind) & (timestamp_to_ms("window_end") == end_ms)
    found = final.where(is_window).select("arrival_unit").collect()
    if not found:
        raise ValueError(
            f"{tables.final_windows.name}: no window of key {key!r} ends at {window_end}; "
            "take key and window_end from a row of alerts"
        )
    definition = Definition(pipeline, windows_name)
    spec = definition.spec
    arrivals = arrivals_of(pipeline, read_log(spark, source.arrival_log), spec)
    arrival_unit = found[0].arrival_unit
    raw = definition.records(source.raw_events.read(spark))
    records = arrivals.records(raw, [arrival_unit])
    of_key = records.where(is_key(key, kind))
    if isinstance(spec, (SessionWindows, GracedRows)):
        counted = _of_listed(
            of_key, spec, arrivals.closings([arrival_unit]), end_ms, settings.tuning
        )
    else:
        counted = _of_fixed(of_key, spec, end_ms)
    return (
        with_timestamps(counted, "stream_time", "close_time")
        .select(*raw.columns, "stream_time", "close_time")
        .orderBy("event_time", "arrival_unit", "source_partition", "offset")
    )


def is_key(key: object, kind: T.DataType) -> Column:
    """The condition that a row's `key` equals a key in the form that `records_of_alert` takes.

    Raises:
        ValueError: A key of several columns has not as many values.
    """
    if not isinstance(kind, T.StructType):
        return _is_value(F.col("key"), key, kind)
    values = key if isinstance(key, Sequence) and not isinstance(key, str) else [key]
    if len(values) != len(kind):
        raise ValueError(
            f"key: must have {len(kind)} values ({', '.join(kind.names)}), and {key!r} has "
            f"{len(values)}; write them in this order, with commas between them in the shell"
        )
    parts = zip(kind, values, strict=True)
    same = (_is_value(F.col("key")[part.name], value, part.dataType) for part, value in parts)
    return reduce(and_, same)


def _is_value(column: Column, value: object, kind: T.DataType) -> Column:
    if value == "":
        return F.coalesce(column.cast("string"), F.lit("")) == F.lit("")
    return column.isNull() if value is None else column == F.lit(value).try_cast(kind)


def _of_fixed(records: DataFrame, spec: FixedWindows, end_ms: int) -> DataFrame:
    """The records within a window's bounds that came before it closed (rules A5, B5)."""
    last_ms = last_instant(spec, F.lit(end_ms))
    time_ms = F.col("_event_time_ms")
    is_within = (time_ms >= F.lit(end_ms - spec.length_ms)) & (time_ms <= last_ms)
    return records.where(is_within & (F.col("_close_time_ms") <= last_ms))


def _of_listed(
    records: DataFrame,
    spec: PipelineWindows,
    closings: Mapping[int, Closing],
    end_ms: int,
    tuning: Tuning,
) -> DataFrame:
    """The records of all windows that end at a time, if records within the bounds may not count.

    Each window collects its records as an aggregate.
    """
    key_columns = list(ARRIVAL)
    with_record = records.withColumn("record", F.struct(*key_columns))
    listed = Aggregate("records", Function.COLLECT_LIST, "record")
    found = arrival_unit_windows(with_record, spec, [listed], closings, tuning=tuning).where(
        F.col("_window_end_ms") == end_ms
    )
    members = found.select(F.explode("records").alias("member")).select("member.*")
    return records.join(members, key_columns, "semi")
