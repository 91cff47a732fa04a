"""Row windows in Spark: one shuffle, one sort, one pass, a result for each row (rule F2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from windows_pipeline.aggregates import Aggregate
from windows_pipeline.compat.python_workers import in_workers
from windows_pipeline.engine.radix_sort import in_group_order
from windows_pipeline.engine.record_shards import ROWS_BEFORE
from windows_pipeline.engine.row_kernel import (
    GROUP_ROWS,
    NUMBER,
    RowKernel,
    result_column,
)
from windows_pipeline.engine.time_shards import IN_HOME_SHARD, TIME_SHARD
from windows_pipeline.windows.frames.row_windows import RowWindow


def evaluate_rows(
    records: DataFrame,
    computed_days: Mapping[int, RowWindow],
    keys: Sequence[str],
    aggregates: Sequence[Aggregate],
    arrival: Sequence[str],
    keep: Sequence[str],
    *,
    frames: Sequence[tuple[RowWindow, ...]] = (),
    with_numbers: bool = False,
    with_failed: bool = False,
    earlier: pa.Table | None = None,
) -> DataFrame:
    """Computes each row's window.

    Args:
        records: One row for each input row and computed day: `_computed_day` (int, a key of
            `computed_days`), the key columns, `_event_time_ms` (bigint; any value for windows by
            arrival alone), the columns of `arrival`, the aggregates' columns and those of
            `keep`. Where keys are cut into shards also `_time_shard` and `_in_home_shard`
            (boolean): rows without it are copies and get no result. Of `record_shards` also
            `_rows_before`.
        computed_days: The windows to compute.
        keys: The columns whose values make a group (nulls are a value); any types that sort.
        aggregates: What to compute.
        arrival: The columns that order arrival.
        keep: The input columns to return.
        frames: For each aggregate the windows that together hold its values: several hold the
            rows from the first to the last in one of them, and must hold the row itself. They
            are in the order of `computed_days`, whose windows give the bounds alone. Empty if
            all aggregates are of these windows.
        with_numbers: Whether to return each row's number in its key and that of the last row
            that follows in its group. Both are wrong where keys are cut into time shards.
        with_failed: See `engine.windows.evaluate_windows`.
        earlier: Of `running_shards` what comes before the rows of each shard; all of them are
            then of one computed day and key.

    Returns:
        A row for each row that is not a copy, in no order: the columns of `keep`;
        `_window_start_ms` of tumbling windows and sessions by time, `_window_end_ms` of tumbling
        windows by time (else null); the aggregates as `result_0` and so on. With `with_failed`
        also `failed` (array: the aggregates' names). With `with_numbers`
        also `number`, from 1, and `group_rows` (bigint).

    Raises:
        ArithmeticError: When Spark runs it, without `with_failed`: a sum does not fit its type
            (rule G2).
        ValueError: When Spark runs it: a time is null or out of range.
    """
    by_arrival = [day for day, window in computed_days.items() if window.by_arrival]
    time_ms = F.when(F.col("_computed_day").isin(by_arrival), F.lit(0)).otherwise(
        F.col("_event_time_ms")
    )
    group = ["_computed_day", *keys]
    group += [TIME_SHARD] if TIME_SHARD in records.columns else []
    of_shard = [name for name in (IN_HOME_SHARD, ROWS_BEFORE) if name in records.columns]
    columns = [aggregate.column for aggregate in aggregates]
    needed = dict.fromkeys([*group, "_event_time_ms", *of_shard, *arrival, *columns, *keep])
    order = [time_ms, *(F.col(name) for name in arrival)]
    in_order = in_group_order(records.select(*needed), group, order)
    kernel = RowKernel(
        computed_days,
        group[1:],
        aggregates,
        arrival,
        keep,
        frames=frames,
        with_numbers=with_numbers,
        with_failed=with_failed,
        earlier=earlier,
    )
    schema = _result_schema(records.schema, keep, aggregates)
    if with_failed:
        schema.add("failed", T.ArrayType(T.StringType()))
    for name in (NUMBER, GROUP_ROWS) if with_numbers else ():
        schema.add(name, T.LongType())
    return in_workers(in_order, kernel, schema)


def _result_schema(
    records: T.StructType, keep: Sequence[str], aggregates: Sequence[Aggregate]
) -> T.StructType:
    schema = T.StructType([records[name] for name in keep])
    for name in ("_window_start_ms", "_window_end_ms"):
        schema.add(name, T.LongType())
    for index, aggregate in enumerate(aggregates):
        result = aggregate.result_type(records[aggregate.column].dataType.simpleString())
        schema.add(result_column(index), T.DataType.fromDDL(result))
    return schema
