"""Aggregates of many windows in one pass, each against its own values."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.support.oracle.aggregates import Number, aggregate
from tests.support.spark_cases import PROPERTY
from tests.support.windowed import WindowedCase, free
from windows_pipeline.kernels.aggregates.running import (
    running_count,
    running_largest,
    running_sum_of_doubles,
    running_sum_of_integers,
)
from windows_pipeline.kernels.values import order_codes

INTEGERS = st.integers(-(2**63), 2**63 - 1) | st.sampled_from((2**63 - 1, -(2**63), 2**32, -1))
DOUBLES = st.floats() | st.sampled_from((0.0, -0.0, 1e16, 1.0, 5e-324, math.nan, -math.nan))


def numbers_of(case: WindowedCase, dtype: type) -> tuple[np.ndarray, np.ndarray]:
    """The values with some number for each null, and a mask of the values that are not null."""
    dense = [7 if value is None else value for value in case.values]
    valid = [value is not None for value in case.values]
    return np.array(dense, dtype), np.array(valid, np.bool_)


def each(case: WindowedCase, function: str) -> list[Number | None]:
    """The oracle's aggregate of each window's own values."""
    return [aggregate(function, [case.values[r] for r in held]) for held in case.inside]


@PROPERTY
@given(free(INTEGERS))
def test_counts_and_integer_sums_are_exact(case: WindowedCase) -> None:
    """Rules A6 and G2; the sums also beyond 64 bits."""
    numbers, valid = numbers_of(case, np.int64)
    counts = running_count(case.records.windows, valid)
    assert counts.tolist() == each(case, "count")
    high, low = running_sum_of_integers(case.records.windows, numbers, valid)
    sums = [int(upper) * 2**32 + int(lower) for upper, lower in zip(high, low, strict=True)]
    assert sums == [total or 0 for total in each(case, "sum")]
    assert all(0 <= lower < 2**32 for lower in low.tolist())


@PROPERTY
@given(free(DOUBLES))
def test_double_sums_are_those_of_the_windows_own_values(case: WindowedCase) -> None:
    """Rule G2: correctly rounded; NaN and infinities of one window are not in the next."""
    numbers, valid = numbers_of(case, np.float64)
    counts = running_count(case.records.windows, valid)
    for function, by in (("sum", np.ones_like(counts)), ("avg", np.maximum(counts, 1))):
        found = running_sum_of_doubles(case.records.windows, numbers, valid, by).tolist()
        wanted = [0.0 if result is None else result for result in each(case, function)]
        assert list(map(repr, found)) == list(map(repr, wanted))


def largest_values(
    case: WindowedCase, dtype: type, turn: Callable[[np.ndarray], np.ndarray]
) -> list[Number | None]:
    numbers, valid = numbers_of(case, dtype)
    records = running_largest(case.records.windows, turn(order_codes(numbers)), valid)
    plain = numbers + 0.0 if dtype is np.float64 else numbers
    return [plain[record].item() if record >= 0 else None for record in records]


@PROPERTY
@given(free(INTEGERS), free(DOUBLES))
def test_smallest_and_largest_are_among_the_windows_own(
    whole: WindowedCase, real: WindowedCase
) -> None:
    """Rules A6 and G1, with NaN as the largest, as in Spark."""
    for case, dtype in ((whole, np.int64), (real, np.float64)):
        largest = largest_values(case, dtype, lambda codes: codes)
        smallest = largest_values(case, dtype, lambda codes: ~codes)
        assert list(map(repr, largest)) == list(map(repr, each(case, "max")))
        assert list(map(repr, smallest)) == list(map(repr, each(case, "min")))


def test_order_codes_sort_doubles_as_spark_does() -> None:
    """NaN of either sign above infinity, -0.0 equal to 0.0."""
    ascending = [-math.inf, -1e308, -1.0, -5e-324, 0.0, 5e-324, 1.0, 1e308, math.inf, math.nan]
    codes = order_codes(np.array(ascending)).tolist()
    assert codes == sorted(set(codes))
    equal = order_codes(np.array([0.0, -0.0, math.nan, math.copysign(math.nan, -1)])).tolist()
    assert equal == [codes[4], codes[4], codes[-1], codes[-1]]
    assert order_codes(np.array([-(2**63), 2**63 - 1])).tolist() == [-(2**63), 2**63 - 1]
