"""The partial result of each aggregate function that has one (rule C2)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T

from windows_pipeline.aggregates import Aggregate
from windows_pipeline.engine.preaggregation.partial_result import (
    FIRST_MS,
    Combine,
    DistinctValues,
    ShortResult,
    field_of,
    structs_of,
)
from windows_pipeline.engine.preaggregation.partial_sums import partial_sum, partial_variance
from windows_pipeline.kernels.aggregates.dispatch import distinct_counts, extreme, percentiles
from windows_pipeline.kernels.aggregates.running import running_total
from windows_pipeline.kernels.aggregates.sums import VARIANCES
from windows_pipeline.kernels.values import is_valid, numbers_of, plain
from windows_pipeline.kernels.windows.filled import WindowedRecords

_TIME_MS, _VALUE = "time_ms", "value"
_INTEGERS = (T.ByteType, T.ShortType, T.IntegerType, T.LongType)
_SIMPLE = (*_INTEGERS, T.DecimalType, T.StringType, T.BinaryType, T.DateType, T.TimestampType)


def partial_result_of(aggregate: Aggregate) -> ShortResult | DistinctValues | None:
    """The partial result of an aggregate; None if there is none.

    A list's would be the slice's records. A user's functions run in Python, which gets records
    only after the shuffle.
    """
    return PARTIAL_RESULTS.get(aggregate.function.name)


def short_result_of(aggregate: Aggregate) -> ShortResult:
    """The partial result of an aggregate that has a short one.

    Raises:
        ValueError: The aggregate has none.
    """
    found = partial_result_of(aggregate)
    if not isinstance(found, ShortResult):
        raise ValueError(f"{aggregate}: must be an aggregate with a partial result of one length")
    return found


def _count(column: str, _: T.DataType) -> Column:
    return F.count(column)


def _counts_of_records(values: pa.Array, _: np.ndarray, __: pa.DataType) -> pa.Array:
    return pa.array(is_valid(values).astype(np.int64))


def _total_count(_: Aggregate, states: pa.Array, records: WindowedRecords) -> pa.Array:
    return pa.array(running_total(records.windows, numbers_of(states)))


def _extreme_result(*, smallest: bool) -> ShortResult:
    """The smallest or largest value."""

    def state(column: str, _: T.DataType) -> Column:
        return F.min(column) if smallest else F.max(column)

    def combine(aggregate: Aggregate, states: pa.Array, records: WindowedRecords) -> pa.Array:
        return extreme(aggregate, plain(states), records, smallest=smallest)

    return ShortResult(state, lambda values, _, __: values, combine, same_in_spark=_SIMPLE)


def _value_of_extreme(*, smallest: bool) -> Combine:
    """The value in the smallest or largest of structs."""

    def combine(aggregate: Aggregate, states: pa.Array, records: WindowedRecords) -> pa.Array:
        return field_of(extreme(aggregate, plain(states), records, smallest=smallest), _VALUE)

    return combine


def _end_result(*, first: bool) -> ShortResult:
    """The first or last value with its event time."""

    def state(column: str, _: T.DataType) -> Column:
        value = F.col(column)
        timed = F.struct(F.col(FIRST_MS).alias(_TIME_MS), value.alias(_VALUE))
        known = F.when(value.isNotNull(), timed)
        return F.min(known) if first else F.max(known)

    def of_records(values: pa.Array, time_ms: np.ndarray, kind: pa.DataType) -> pa.Array:
        fields = {_TIME_MS: pa.array(time_ms), _VALUE: values}
        return structs_of(fields, kind, is_valid(values))

    return ShortResult(state, of_records, _value_of_extreme(smallest=first))


def _result_by_another(*, smallest: bool) -> ShortResult:
    """The value with the smallest or largest `by`, with that and the event time."""

    def state(column: str, _: T.DataType) -> Column:
        pair, time_ms = F.col(column), F.col(FIRST_MS)
        ranked = F.struct(pair["by"], time_ms.alias(_TIME_MS), pair["value"])
        known = F.when(pair.isNotNull(), ranked)
        return F.min(known) if smallest else F.max(known)

    def of_records(pairs: pa.Array, time_ms: np.ndarray, kind: pa.DataType) -> pa.Array:
        value, by = pairs.flatten()
        fields = {"by": by, _TIME_MS: pa.array(time_ms), _VALUE: value}
        return structs_of(fields, kind, is_valid(pairs))

    return ShortResult(state, of_records, _value_of_extreme(smallest=smallest))


def _distinct_counts(
    aggregate: Aggregate, values: pa.Array, _: np.ndarray, records: WindowedRecords
) -> pa.Array:
    return distinct_counts(aggregate, values, records)


PARTIAL_RESULTS: Mapping[str, ShortResult | DistinctValues] = {
    "count": ShortResult(_count, _counts_of_records, _total_count, same_in_spark=(T.DataType,)),
    "count_distinct": DistinctValues(_distinct_counts),
    "sum": partial_sum(mean=False, same_in_spark=_INTEGERS),
    "avg": partial_sum(mean=True),
    "min": _extreme_result(smallest=True),
    "max": _extreme_result(smallest=False),
    "first": _end_result(first=True),
    "last": _end_result(first=False),
    "min_by": _result_by_another(smallest=True),
    "max_by": _result_by_another(smallest=False),
    **dict.fromkeys(VARIANCES, partial_variance()),
    **dict.fromkeys(("percentile", "median"), DistinctValues(percentiles)),
}
"""By the function's name; a list and a user's aggregate have none."""
