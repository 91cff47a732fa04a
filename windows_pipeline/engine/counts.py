"""Count windows of records in Spark: one shuffle, one sort, one pass."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame
from pyspark.sql import types as T

from windows_pipeline.aggregates import Aggregate
from windows_pipeline.engine.count_kernel import CountKernel
from windows_pipeline.windows.count_windows import CountWindows


def evaluate_counts(
    records: DataFrame,
    targets: Mapping[int, CountWindows],
    keys: Sequence[str],
    aggregates: Sequence[Aggregate],
) -> DataFrame:
    """Computes the count windows of each target's records, by key in the order of arrival.

    A key is one task, which holds the records of a chunk and of two windows at most.

    Args:
        records: One row a record and target: `_computed_day` (int, a key of `targets`), the key
            columns, `offset` (of any type that sorts: what orders arrival, each value once a
            key), and the columns that the aggregates take.
        targets: The windows that are wanted.
        keys: The columns whose values make a group (nulls are a value).
        aggregates: What to compute; first, last, lists and users' own go by arrival.

    Returns:
        `_computed_day`, the keys, `first_offset` and `last_offset` (the window's first and last
        record's), `record_count` and the aggregates, in no order.

    Raises:
        ArithmeticError: When it runs: a sum does not fit its type (rule G2).
        ValueError: When it runs: an offset is null, or the same twice.
    """
    group = ["_computed_day", *keys]
    wanted = dict.fromkeys([*group, "offset", *(one.column for one in aggregates)])
    in_order = records.select(*wanted).repartition(*group).sortWithinPartitions(*group, "offset")
    offset_type = records.schema["offset"].dataType
    schema = T.StructType([records.schema[name] for name in group])
    schema.add("first_offset", offset_type).add("last_offset", offset_type)
    schema.add("record_count", T.LongType())
    for one in aggregates:
        result = one.result_type(records.schema[one.column].dataType.simpleString())
        schema.add(one.name, T.DataType.fromDDL(result))
    return in_order.mapInArrow(CountKernel(targets, keys, aggregates), schema)
