"""Count windows of records in Spark: one shuffle, one sort, one pass."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from windows_pipeline.aggregates import Aggregate
from windows_pipeline.compat.python_workers import in_workers
from windows_pipeline.engine.count_kernel import CountKernel
from windows_pipeline.engine.radix_sort import in_group_order
from windows_pipeline.windows.count_windows import CountWindows


def evaluate_counts(
    records: DataFrame,
    computed_days: Mapping[int, CountWindows],
    keys: Sequence[str],
    aggregates: Sequence[Aggregate],
    *,
    with_failed: bool = False,
) -> DataFrame:
    """Computes the count windows of each computed day's records, by key in order of arrival.

    One task computes a key. It holds at most the records of a chunk and of two windows in memory.

    Args:
        records: One row a record and computed day: `_computed_day` (int, a key of
            `computed_days`), the key columns, `offset` (orders arrival: any sortable type, unique
            within a key), and the columns that the aggregates take.
        computed_days: The windows to compute.
        keys: The columns whose values make a group (nulls are a value).
        aggregates: What to compute; first, last, lists and users' aggregates go by arrival.
        with_failed: See `engine.windows.evaluate_windows`.

    Returns:
        `_computed_day`, the keys, `first_offset` and `last_offset` (those of the window's first
        and last record), `record_count`, the aggregates and, with `with_failed`, `failed`, in no
        order.

    Raises:
        ArithmeticError: When Spark runs it, without `with_failed`: a sum does not fit its type
            (rule G2).
        ValueError: When Spark runs it: an offset is null, or comes twice in a key.
    """
    group = ["_computed_day", *keys]
    needed = dict.fromkeys([*group, "offset", *(each.column for each in aggregates)])
    in_order = in_group_order(records.select(*needed), group, [F.col("offset")])
    offset_type = records.schema["offset"].dataType
    schema = T.StructType([records.schema[name] for name in group])
    schema.add("first_offset", offset_type).add("last_offset", offset_type)
    schema.add("record_count", T.LongType())
    for each in aggregates:
        result = each.result_type(records.schema[each.column].dataType.simpleString())
        schema.add(each.result_column, T.DataType.fromDDL(result))
    if with_failed:
        schema.add("failed", T.ArrayType(T.StringType()))
    kernel = CountKernel(computed_days, keys, aggregates, with_failed=with_failed)
    return in_workers(in_order, kernel, schema)
