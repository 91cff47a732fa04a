"""Sliding windows of records in Spark: one shuffle, one sort, one pass (rules B2 to B8)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from windows_pipeline.aggregates import Aggregate
from windows_pipeline.engine.sliding_kernel import Closing, SlidingKernel
from windows_pipeline.windows import SlidingWindows


def reach_ms(spec: SlidingWindows) -> int:
    """How far before a unit's close time a record can lie and matter to its windows.

    A window that ends at the close time holds records of one difference before. One more
    tells which earlier windows counted a record that settles with this unit (rule A5).
    """
    return 2 * (spec.time_difference_ms + 1)


def is_late(spec: SlidingWindows) -> Column:
    """Whether every window of a record was closed when it arrived (rule A5)."""
    last_end = F.col("event_time_ms") + F.lit(spec.time_difference_ms)
    return F.coalesce(last_end < F.col("close_time_ms"), F.lit(False))


def is_uncovered(spec: SlidingWindows) -> Column:
    """Whether no window covers a record: it lies below the clamp (rules A5, B6)."""
    if spec.first_window_start_ms is None:
        return F.lit(False)
    return F.col("event_time_ms") < F.lit(spec.first_window_start_ms)


def sliding_windows(
    records: DataFrame,
    spec: SlidingWindows,
    aggregates: Sequence[Aggregate],
    closings: Mapping[int, Closing],
) -> DataFrame:
    """Computes the windows that each target unit changed or closed, as it left them.

    Args:
        records: One row a record and target: `target` (int, a key of `closings`), `key` (any
            type that sorts), `event_time_ms` and `close_time_ms` (bigint; the close time met
            on arrival, null for none), `is_new` (boolean: came with the target unit), and the
            columns that the aggregates take.
        spec: The windows.
        aggregates: What to compute; columns of bigint or double.
        closings: By target, the close times before and after it.

    Returns:
        `target`, `key`, `window_start_ms`, `window_end_ms`, `first_event_time_ms`,
        `last_event_time_ms` (null in an empty window), `record_count`, the aggregates, and
        `closed`, in no order. And, with all those but target and key null, a row for each
        distinct `uncounted_time_ms` and `uncounted_close_ms` of partly late records that
        settled with the target and that no window counts (rule A5).

    Raises:
        ArithmeticError: When it runs: a sum of integers overflows bigint (rule G2).
    """
    columns = list(dict.fromkeys(aggregate.column for aggregate in aggregates))
    grouped = ["target", "key"]
    by_time = [*grouped, "event_time_ms"]
    kept = records.where(~is_late(spec) & ~is_uncovered(spec)).select(
        *by_time, "close_time_ms", "is_new", *columns
    )
    in_order = kept.repartition(*grouped).sortWithinPartitions(*by_time)
    schema = _result_schema(records.schema, aggregates)
    return in_order.mapInArrow(SlidingKernel(spec, aggregates, closings), schema)


def _result_schema(records: T.StructType, aggregates: Sequence[Aggregate]) -> T.StructType:
    fields = [
        T.StructField("target", T.IntegerType()),
        T.StructField("key", records["key"].dataType),
        T.StructField("window_start_ms", T.LongType()),
        T.StructField("window_end_ms", T.LongType()),
        T.StructField("first_event_time_ms", T.LongType()),
        T.StructField("last_event_time_ms", T.LongType()),
        T.StructField("record_count", T.LongType()),
    ]
    for aggregate in aggregates:
        column_type = records[aggregate.column].dataType.simpleString()
        result = aggregate.result_type(column_type)
        fields.append(
            T.StructField(aggregate.name, T.DoubleType() if result == "double" else T.LongType())
        )
    fields.append(T.StructField("closed", T.BooleanType()))
    fields.append(T.StructField("uncounted_time_ms", T.LongType()))
    fields.append(T.StructField("uncounted_close_ms", T.LongType()))
    return T.StructType(fields)
