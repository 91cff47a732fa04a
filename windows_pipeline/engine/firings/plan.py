"""Firings of records in Spark: one shuffle, one sort, one pass (rules E2, E4)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import gcd

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from windows_pipeline.aggregates import Aggregate
from windows_pipeline.compat.python_workers import in_workers
from windows_pipeline.engine.firings.kernel import AFTER, FiringKernel, FiringSpec
from windows_pipeline.engine.firings.watermark_steps import Advances, collect_advances
from windows_pipeline.engine.radix_sort import in_group_order
from windows_pipeline.engine.time_shards import TIME_SHARD, in_time_shards
from windows_pipeline.windows import PipelineWindows, WindowSpec
from windows_pipeline.windows.firing.triggers import Trigger


def fire(
    records: DataFrame,
    computed_days: Mapping[int, FiringSpec],
    keys: Sequence[str],
    aggregates: Sequence[Aggregate],
    arrival: Sequence[str],
    *,
    input_ends: bool = False,
    with_earlier: bool = False,
    with_failed: bool = False,
    passes: str | None = None,
    shard_ms: int | None = None,
    advances: Mapping[int, Advances] | None = None,
) -> DataFrame:
    """Computes the firings that come with each computed day (rule E4), but no final firings.

    This runs a Spark job at once, which finds the watermark advances. The rest runs with the
    result.

    Args:
        records: One row a record and computed day: `_computed_day` (int, a key of
            `computed_days`), the key columns, `_event_time_ms` (bigint), `_stream_time_ms`
            (bigint: the stream time that the record met on arrival, rule A2), the columns of
            `arrival`, and the aggregates' columns. Each day needs the records of all keys, of
            this and earlier days, in windows that were not closed before the day. With `_is_new`
            (boolean) only firings after records that have it are returned, else all firings. Of
            several source partitions only the records that the merge has passed may be given,
            and those that it passed with the day are new.
        computed_days: The windows to compute and when they fire, as `Trigger.fitted` takes them.
        keys: The columns whose values make a group (nulls are a value); any types that sort.
        aggregates: What to compute of each pane.
        arrival: The columns that order the arrival of records that met one stream time.
        input_ends: Whether stream time passes everything after the last record.
        with_earlier: With `_is_new`, whether to return also earlier firings: those of windows
            that have new firings or close, and possibly of other windows.
        with_failed: See `engine.windows.evaluate_windows`.
        passes: The boolean column of the records that windows may hold; the others only advance
            stream time. None if windows may hold all records.
        shard_ms: How long the time shards are into which each key's time is cut: the result of
            `shard_length_ms` for windows without `emit_empty`. All computed days must then have
            the same windows. None for no time shards. Each shard's task goes through all advances
            of the watermark.
        advances: What `advances_of` returns, if it is known already.

    Returns:
        `_computed_day`, the keys, `_window_start_ms`, `_window_end_ms` (for sessions the last
        record), `firing_id`, `reason`, `cause` (RECORD or STREAM_TIME), `_stream_time_ms` (null
        at the end of the input), the columns of `arrival` with the prefix `_after_`, `is_final`,
        and of the pane `_first_event_time_ms`, `_last_event_time_ms`, `record_count`, the
        aggregates and, with `with_failed`, `failed`. In no order.

    Raises:
        ArithmeticError: When Spark runs it, without `with_failed`: a sum does not fit its type
            (rule G2).
        ValueError: When Spark runs it: an event time is null or out of range.
    """
    if advances is None:
        advances = advances_of(records, computed_days.values(), arrival, input_ends=input_ends)
    kernel = FiringKernel(
        computed_days,
        advances,
        keys,
        arrival,
        aggregates,
        with_earlier=with_earlier,
        with_failed=with_failed,
        shard_ms=shard_ms,
    )
    group = ["_computed_day", *keys]
    if shard_ms is not None:
        windows = next(iter(computed_days.values())).windows
        records = in_time_shards(records, windows, shard_ms)
        group.append(TIME_SHARD)
    is_new = ["_is_new"] if "_is_new" in records.columns else []
    columns = [each.column for each in aggregates]
    needed = [*group, "_event_time_ms", "_stream_time_ms", *arrival, *is_new, *columns]
    held = (records if passes is None else records.where(passes)).select(*dict.fromkeys(needed))
    in_order = in_group_order(held, group, [F.col(name) for name in ("_stream_time_ms", *arrival)])
    schema = _result_schema(records.schema, keys, aggregates, arrival)
    if with_failed:
        schema.add("failed", T.ArrayType(T.StringType()))
    return in_workers(in_order, kernel, schema)


def advances_of(
    records: DataFrame,
    fired: Iterable[tuple[WindowSpec | PipelineWindows, Trigger]],
    arrival: Sequence[str],
    *,
    input_ends: bool = False,
) -> Mapping[int, Advances]:
    """Finds the watermark advances at which windows can fire or close, in a Spark job.

    Args:
        records: See `fire`.
        fired: The windows and when they fire.
        arrival: See `fire`.
        input_ends: See `fire`.
    """
    grid_ms = 0
    for windows, trigger in fired:
        if trigger.as_in_flink:
            grid_ms = 1
        early_ms = trigger.early_every_ms or 0
        grid_ms = gcd(grid_ms, windows.closing_grid_ms, trigger.out_of_orderness_ms, early_ms)
    # There is no instant without a computed day.
    return collect_advances(records, arrival, max(grid_ms, 1), input_ends=input_ends)


def _result_schema(
    records: T.StructType,
    keys: Sequence[str],
    aggregates: Sequence[Aggregate],
    arrival: Sequence[str],
) -> T.StructType:
    schema = T.StructType([T.StructField("_computed_day", T.IntegerType())])
    for name in keys:
        schema.add(name, records[name].dataType)
    for name in ("_window_start_ms", "_window_end_ms", "firing_id"):
        schema.add(name, T.LongType())
    schema.add("reason", T.StringType()).add("cause", T.StringType())
    schema.add("_stream_time_ms", T.LongType())
    for name in arrival:
        schema.add(AFTER + name, records[name].dataType)
    schema.add("is_final", T.BooleanType())
    for name in ("_first_event_time_ms", "_last_event_time_ms", "record_count"):
        schema.add(name, T.LongType())
    for each in aggregates:
        result = each.result_type(records[each.column].dataType.simpleString())
        schema.add(each.result_column, T.DataType.fromDDL(result))
    return schema
