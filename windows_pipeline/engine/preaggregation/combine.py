"""Computes the aggregates of windows from their slices (rule C2; see `slices`)."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from windows_pipeline.aggregates import Aggregate
from windows_pipeline.engine.preaggregation.partial_result import (
    FIRST_MS,
    LAST_MS,
    RECORDS,
    DistinctValues,
)
from windows_pipeline.engine.preaggregation.partial_results import (
    partial_result_of,
    short_result_of,
)
from windows_pipeline.kernels.aggregates.running import running_largest, running_total
from windows_pipeline.kernels.values import as_array, numbers_of, plain
from windows_pipeline.kernels.windows.filled import WindowedRecords

MAX_SLICE_RECORDS = 1 << 29
"""The most records of one slice. With more, sums of squares could overflow unnoticed in Spark."""


def record_count_of_slices(slices: pa.Table, records: WindowedRecords) -> pa.Array:
    """How many records each window's slices contain.

    Raises:
        ArithmeticError: A slice has so many records that its sums may have overflowed a bigint.
    """
    count = _numbers(slices, RECORDS)
    if count.max(initial=0) > MAX_SLICE_RECORDS:
        raise ArithmeticError(
            f"a key has {count.max()} records in one slice of time; at most {MAX_SLICE_RECORDS} "
            "can be aggregated before the shuffle; pass pre_aggregate=False"
        )
    return pa.array(running_total(records.windows, count))


def event_time_bounds_of_slices(
    slices: pa.Table, records: WindowedRecords
) -> tuple[pa.Array, pa.Array]:
    """The first and the last event time in each window, in ms; null in an empty one."""
    first_ms, last_ms = _numbers(slices, FIRST_MS), _numbers(slices, LAST_MS)
    valid = np.ones(len(first_ms), np.bool_)
    first = running_largest(records.windows, ~first_ms, valid)
    last = running_largest(records.windows, last_ms, valid)
    return _taken(pa.array(first_ms), first), _taken(pa.array(last_ms), last)


def combine_slices(aggregate: Aggregate, slices: pa.Table, records: WindowedRecords) -> pa.Array:
    """Computes an aggregate of each window from the partial aggregates of its slices.

    Args:
        aggregate: What to compute.
        slices: The rows that `in_slices` returns.
        records: The slices as if each were a record, and the windows.

    Returns:
        One value for each window, of type `Aggregate.result_type`; see `aggregate_windows`.

    Raises:
        ArithmeticError: A sum or mean does not fit its type (rule G2); names the window. No slice
            overflows alone.
    """
    states = as_array(slices.column(aggregate.column))
    partial = partial_result_of(aggregate)
    if isinstance(partial, DistinctValues):
        return partial.combine(aggregate, plain(states), _numbers(slices, RECORDS), records)
    return combine_states(aggregate, states, records)


def combine_states(aggregate: Aggregate, states: pa.Array, records: WindowedRecords) -> pa.Array:
    """As `combine_slices`, from the slices' partial results, which must be short ones."""
    return short_result_of(aggregate).combine(aggregate, states, records)


def _taken(values: pa.Array, index: np.ndarray) -> pa.Array:
    """The value at each window's index of a slice; null where the index is -1."""
    return values.take(pa.array(index, mask=index < 0))


def _numbers(slices: pa.Table, name: str) -> np.ndarray:
    return numbers_of(as_array(slices.column(name)))
