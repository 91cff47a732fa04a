"""Row windows in Spark: one shuffle, one sort, one pass, a result for each row (rule F2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from windows_pipeline.aggregates import Aggregate
from windows_pipeline.engine.row_kernel import (
    NUMBER,
    ROWS_THERE,
    RowKernel,
    result_column,
)
from windows_pipeline.engine.time_shards import IS_OWN
from windows_pipeline.windows.row_windows import RowWindow


def evaluate_rows(
    records: DataFrame,
    targets: Mapping[int, RowWindow],
    keys: Sequence[str],
    aggregates: Sequence[Aggregate],
    arrival: Sequence[str],
    keep: Sequence[str],
    *,
    tells_number: bool = False,
) -> DataFrame:
    """Computes each row's window.

    Args:
        records: One row an input row and target: `_computed_day` (int, a key of `targets`), the key
            columns, `_event_time_ms` (bigint; anything where a window goes by arrival alone),
            those of arrival, those that the aggregates take, and those to keep. And where keys
            are cut into slices `_is_own` (boolean): whether it is a row of its slice.
        targets: The windows that are wanted.
        keys: The columns whose values make a group (nulls are a value); any types that sort.
        aggregates: What to compute.
        arrival: The columns that order arrival.
        keep: The columns to keep.
        tells_number: Whether to tell each row's number in its group, and how many rows that has;
            of no use where keys are cut into slices.

    Returns:
        A row for each own row, in no order: the kept columns; `_window_start_ms` of tumbling
        windows and sessions by time, `_window_end_ms` of the former (else null); the aggregates
        as `result_0` and so on. On request `number`, from 1, and `rows_there` (bigint).

    Raises:
        ArithmeticError: When it runs: a sum does not fit its type (rule G2).
        ValueError: When it runs: a time is null or out of range.
    """
    by_arrival = [target for target, window in targets.items() if window.by_arrival]
    time_ms = F.when(F.col("_computed_day").isin(by_arrival), F.lit(0)).otherwise(
        F.col("_event_time_ms")
    )
    own = [IS_OWN] if IS_OWN in records.columns else []
    columns = [aggregate.column for aggregate in aggregates]
    wanted = dict.fromkeys(
        ["_computed_day", *keys, "_event_time_ms", *own, *arrival, *columns, *keep]
    )
    group = ["_computed_day", *keys]
    in_order = (
        records.select(*wanted).repartition(*group).sortWithinPartitions(*group, time_ms, *arrival)
    )
    kernel = RowKernel(targets, keys, aggregates, keep, tells_number=tells_number)
    schema = _result_schema(records.schema, keep, aggregates)
    for name in (NUMBER, ROWS_THERE) if tells_number else ():
        schema.add(name, T.LongType())
    return in_order.mapInArrow(kernel, schema)


def _result_schema(
    records: T.StructType, keep: Sequence[str], aggregates: Sequence[Aggregate]
) -> T.StructType:
    schema = T.StructType([records[name] for name in keep])
    for name in ("_window_start_ms", "_window_end_ms"):
        schema.add(name, T.LongType())
    for place, aggregate in enumerate(aggregates):
        result = aggregate.result_type(records[aggregate.column].dataType.simpleString())
        schema.add(result_column(place), T.DataType.fromDDL(result))
    return schema
