"""Computes an aggregate of every window of a chunk, whatever its kind (rules G1, G2)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import pairwise

import numpy as np
import pyarrow as pa

from windows_pipeline.aggregates import Aggregate, UserAggregate
from windows_pipeline.kernels.aggregates.ordered import (
    running_distinct_count,
    running_lists,
    running_percentile,
)
from windows_pipeline.kernels.aggregates.running import (
    running_count,
    running_largest,
    running_total,
)
from windows_pipeline.kernels.aggregates.sums import VARIANCES, sum_or_mean_of, variance_of
from windows_pipeline.kernels.aggregates.user import aggregate_of_user
from windows_pipeline.kernels.values import (
    as_array,
    doubles_of,
    is_valid,
    plain,
    positions_by_time_and_value,
    value_codes,
)
from windows_pipeline.kernels.windows.filled import WindowedRecords
from windows_pipeline.tuning import TUNING, Tuning

Kernel = Callable[[Aggregate, pa.Array, WindowedRecords], pa.Array]
"""Computes an aggregate of each window from the records' values, which are `plain`."""


def parts_of(
    records: WindowedRecords, aggregates: Sequence[Aggregate], tuning: Tuning = TUNING
) -> Iterator[WindowedRecords]:
    """Splits the windows into parts whose results fit in memory.

    There can be many more hopping windows than records, and lists repeat a record for each window
    that contains it.
    """
    windows = records.windows
    cuts = set(range(tuning.part_windows, len(windows.group), tuning.part_windows))
    if any(aggregate.function.lists_values for aggregate in aggregates):
        part = np.cumsum(windows.entered - windows.left) // tuning.part_values
        cuts.update((np.flatnonzero(np.diff(part)) + 1).tolist())
    for start, end in pairwise([0, *sorted(cuts), len(windows.group)]):
        yield records.part(start, end)


def event_time_bounds(records: WindowedRecords) -> tuple[pa.Array, pa.Array]:
    """The first and the last event time in each window, in ms; null in an empty window."""
    times, windows = pa.array(records.time_ms), records.windows
    # Without partly late records, records enter in the order in which they leave.
    if (np.diff(windows.enter_order) > 0).all():
        empty = windows.entered == windows.left
        first = np.where(empty, -1, windows.left)
        last = np.where(empty, -1, windows.entered - 1)
    else:
        valid = np.ones(len(records.time_ms), np.bool_)
        first = running_largest(windows, ~records.time_ms, valid)
        last = running_largest(windows, records.time_ms, valid)
    return _taken(times, first), _taken(times, last)


def aggregate_windows(
    aggregate: Aggregate, column: pa.Array | pa.ChunkedArray, records: WindowedRecords
) -> pa.Array:
    """Computes an aggregate of each window.

    Args:
        aggregate: What to compute.
        column: The value of each record, of a type that the aggregate takes.
        records: The records and the windows.

    Returns:
        One value for each window, of type `Aggregate.result_type`; null where it can't be computed,
        if `records` notes failures (rule G3).

    Raises:
        ArithmeticError: A sum or mean does not fit its type (rule G2).
        RuntimeError: A user's function raised.
        TypeError: A user's result is not of its type.
        Each error names the aggregate and the window. If `records` notes failures, no error is
        raised.
    """
    values, function = plain(as_array(column)), aggregate.function
    if isinstance(function, UserAggregate):
        return aggregate_of_user(aggregate, function, values, records)
    return KERNELS[function.name](aggregate, values, records)


def _counts(_: Aggregate, values: pa.Array, records: WindowedRecords) -> pa.Array:
    return pa.array(running_count(records.windows, is_valid(values)))


def distinct_counts(_: Aggregate, values: pa.Array, records: WindowedRecords) -> pa.Array:
    """How many different values each window contains; the values must be `plain`."""
    encoded = pa.array(value_codes(values)).dictionary_encode()
    codes, code_count = np.array(encoded.indices), len(encoded.dictionary)
    valid = is_valid(values)
    return pa.array(running_distinct_count(records.windows, codes, valid, code_count))


def extreme(
    _: Aggregate, values: pa.Array, records: WindowedRecords, *, smallest: bool
) -> pa.Array:
    """The smallest or largest value of each window; the values must be `plain`."""
    codes = value_codes(values)
    found = running_largest(records.windows, ~codes if smallest else codes, is_valid(values))
    return _taken(values, found)


def _at_an_end(
    _: Aggregate, values: pa.Array, records: WindowedRecords, *, first: bool
) -> pa.Array:
    """The first or last value by event time and then value."""
    positions = _positions(values, records)
    found = running_largest(records.windows, ~positions if first else positions, is_valid(values))
    return _taken(values, found)


def _decided_by_another(
    _: Aggregate, pairs: pa.Array, records: WindowedRecords, *, smallest: bool
) -> pa.Array:
    """The value of the record with the smallest or largest `by`; of equal ones by event time."""
    value, by = pairs.flatten()
    order = np.lexsort((value_codes(value), is_valid(value), records.time_ms, value_codes(by)))
    ranks = np.empty(len(order), np.int64)
    ranks[order] = np.arange(len(order))
    found = running_largest(records.windows, ~ranks if smallest else ranks, is_valid(pairs))
    return _taken(value, found)


def _lists(_: Aggregate, values: pa.Array, records: WindowedRecords) -> pa.Array:
    positions = _positions(values, records)
    offsets, listed = running_lists(records.windows, positions, is_valid(values))
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), values.take(pa.array(listed)))


def _taken(values: pa.Array, record: np.ndarray) -> pa.Array:
    """The value of each window's record; null where the record is -1."""
    return values.take(pa.array(record, mask=record < 0))


def _positions(values: pa.Array, records: WindowedRecords) -> np.ndarray:
    return positions_by_time_and_value(
        records.starts, records.time_ms, value_codes(values), is_valid(values)
    )


def percentiles(
    aggregate: Aggregate, values: pa.Array, times: np.ndarray, records: WindowedRecords
) -> pa.Array:
    """The percentile or median of each window's values; null in a window without values.

    Args:
        aggregate: What to compute.
        values: The values of records or slices; they must be `plain`.
        times: How many records have each value.
        records: The records or slices, and the windows.
    """
    percentage = 0.5 if aggregate.percentage is None else float(aggregate.percentage)
    counts = np.where(is_valid(values), times, 0)
    codes, doubles = value_codes(values), doubles_of(values)
    found = running_percentile(records.starts, records.windows, codes, doubles, counts, percentage)
    return pa.array(found, mask=running_total(records.windows, counts) == 0)


def _percentiles_of_records(
    aggregate: Aggregate, values: pa.Array, records: WindowedRecords
) -> pa.Array:
    return percentiles(aggregate, values, np.ones(len(values), np.int64), records)


KERNELS: Mapping[str, Kernel] = {
    "count": _counts,
    "count_distinct": distinct_counts,
    "sum": partial(sum_or_mean_of, mean=False),
    "avg": partial(sum_or_mean_of, mean=True),
    "min": partial(extreme, smallest=True),
    "max": partial(extreme, smallest=False),
    "first": partial(_at_an_end, first=True),
    "last": partial(_at_an_end, first=False),
    "min_by": partial(_decided_by_another, smallest=True),
    "max_by": partial(_decided_by_another, smallest=False),
    **dict.fromkeys(VARIANCES, variance_of),
    "collect_list": _lists,
    **dict.fromkeys(("percentile", "median"), _percentiles_of_records),
}
"""The kernel of each function by its name."""
