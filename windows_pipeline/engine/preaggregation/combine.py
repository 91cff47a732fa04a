"""Computes the aggregates of windows from their slices (rule C2; see `slices`)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windows_pipeline.aggregates import Aggregate, Function
from windows_pipeline.engine.preaggregation.slice_numbers import (
    ABOVE,
    BELOW,
    LIMB,
    LIMB_BITS,
    NAN,
    SQUARE_LIMB,
)
from windows_pipeline.engine.preaggregation.slices import (
    FIRST_MS,
    HIGH,
    KIND,
    LAST_MS,
    LOW,
    MULTIPLES,
    POWER,
    RECORDS,
    SCALE,
    TIME_MS,
    TOTAL,
    VALUE,
    VALUES,
)
from windows_pipeline.kernels.aggregates.decimals import running_sum_of_decimals
from windows_pipeline.kernels.aggregates.dispatch import distinct_counts, percentiles
from windows_pipeline.kernels.aggregates.running import (
    running_largest,
    running_sum_of_multiples,
    running_total,
)
from windows_pipeline.kernels.aggregates.sums import (
    VARIANCES,
    decimal_result,
    divisors,
    integer_mean,
    integer_sum,
    variance_result,
)
from windows_pipeline.kernels.aggregates.variance import Multiples, lowest_by_group, square_of_unit
from windows_pipeline.kernels.values import as_array, is_valid, numbers_of, plain, value_codes
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
    match aggregate.function:
        case Function.COUNT_DISTINCT:
            return distinct_counts(plain(states), records)
        case Function.PERCENTILE | Function.MEDIAN:
            return percentiles(aggregate, plain(states), _numbers(slices, RECORDS), records)
    return combine_states(aggregate, states, records)


def combine_states(aggregate: Aggregate, states: pa.Array, records: WindowedRecords) -> pa.Array:
    """Computes an aggregate of each window from partial aggregates; see `combine_slices`.

    Args:
        aggregate: What to compute: one that `has_short_states`.
        states: The partial aggregate of each slice.
        records: See `combine_slices`.
    """
    match aggregate.function:
        case Function.COUNT:
            return pa.array(running_total(records.windows, numbers_of(states)))
        case Function.MIN:
            return _extreme(plain(states), records, smallest=True)
        case Function.MAX:
            return _extreme(plain(states), records, smallest=False)
        case Function.FIRST | Function.LAST:
            values = pa.StructArray.from_arrays(
                [_field(states, TIME_MS), plain(_field(states, VALUE))],
                [TIME_MS, VALUE],
                mask=pc.is_null(states),
            )
            smallest = aggregate.function is Function.FIRST
            return _field(_extreme(values, records, smallest=smallest), VALUE)
    return _of_sums(aggregate, states, records)


def _of_sums(aggregate: Aggregate, states: pa.Array, records: WindowedRecords) -> pa.Array:
    """Sums, means and variances."""
    windows = records.windows
    count = running_total(windows, numbers_of(_field(states, VALUES)))
    if aggregate.function in VARIANCES:
        return _variance(aggregate.function, states, count, records)
    if states.type.get_field_index(POWER) >= 0:
        doubles = _sum_of_doubles(states, records, divisors(aggregate, count))
        return pa.array(doubles, mask=count == 0)
    if states.type.get_field_index(TOTAL) >= 0:
        kind = states.type.field(KIND).type
        above = None
        if states.type.get_field_index(MULTIPLES) >= 0:
            above = _field(states, MULTIPLES)
        sums = running_sum_of_decimals(windows, _field(states, TOTAL), above)
        return decimal_result(aggregate, kind, sums, count, records)
    low = running_total(windows, numbers_of(_field(states, LOW)))
    high = running_total(windows, numbers_of(_field(states, HIGH))) + (low >> 32)
    low &= (1 << 32) - 1
    if aggregate.function is Function.SUM:
        return integer_sum(aggregate, high, low, count, records)
    if aggregate.function is Function.AVG:
        return integer_mean(high, low, count)
    raise ValueError(
        f"{aggregate}: must be a function that can be computed from slices; add its case here"
    )


def _sum_of_doubles(states: pa.Array, records: WindowedRecords, by: np.ndarray) -> np.ndarray:
    power, values = (numbers_of(_field(states, name)) for name in (POWER, VALUES))
    nans, above, below = (np.where(power == special, values, 0) for special in (NAN, ABOVE, BELOW))
    power[power >= NAN] = 0
    limbs = np.stack(_limbs(states, LIMB))
    return running_sum_of_multiples(
        records.windows, power, limbs, LIMB_BITS, by, nans=nans, above=above, below=below
    )


def _variance(
    function: Function, states: pa.Array, count: np.ndarray, records: WindowedRecords
) -> pa.Array:
    power, values = (numbers_of(_field(states, name)) for name in (POWER, VALUES))
    scale = numbers_of(_field(states, SCALE)).max(initial=0).item()
    finite = running_total(records.windows, np.where(power < NAN, values, 0))
    units = lowest_by_group(power, records.starts)
    shifts = np.where(power < NAN, power - np.repeat(units, np.diff(records.starts)), 0)
    multiples = Multiples(
        _wholes(_limbs(states, LIMB), shifts),
        _wholes(_limbs(states, SQUARE_LIMB), 2 * shifts),
        [square_of_unit(unit, scale) for unit in units.tolist()],
    )
    return variance_result(function, multiples, finite, count, records)


def _limbs(states: pa.Array, prefix: str) -> list[np.ndarray]:
    """The limbs of whole numbers, the lowest first."""
    names = [field.name for field in states.type if field.name.startswith(prefix)]
    return [numbers_of(_field(states, name)) for name in names]


def _wholes(limbs: Sequence[np.ndarray], shifts: np.ndarray) -> list[int]:
    """Limbs as Python's integers, shifted."""
    wholes = [0] * len(shifts)
    for index, limb in enumerate(limbs):
        wholes = [
            whole + (part << LIMB_BITS * index)
            for whole, part in zip(wholes, limb.tolist(), strict=True)
        ]
    return [whole << shift for whole, shift in zip(wholes, shifts.tolist(), strict=True)]


def _extreme(values: pa.Array, records: WindowedRecords, *, smallest: bool) -> pa.Array:
    codes = value_codes(values)
    found = running_largest(records.windows, ~codes if smallest else codes, is_valid(values))
    return _taken(values, found)


def _taken(values: pa.Array, index: np.ndarray) -> pa.Array:
    """The value at each window's index of a slice; null where the index is -1."""
    return values.take(pa.array(index, mask=index < 0))


def _field(states: pa.Array, name: str) -> pa.Array:
    """A field of structs; null where the struct is null."""
    return pc.struct_field(states, name)


def _numbers(slices: pa.Table, name: str) -> np.ndarray:
    return numbers_of(as_array(slices.column(name)))
