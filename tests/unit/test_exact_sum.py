"""The accumulator for doubles against exact fractions (rule G2)."""

from __future__ import annotations

import contextlib
import math
import sys
from collections.abc import Sequence
from fractions import Fraction
from random import Random

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.support.spark_cases import PROPERTY
from windows_pipeline.kernels.aggregates import exact_sum

SMALLEST = 5e-324
LARGEST = sys.float_info.max
HALF_ULP_OF_LARGEST = 2.0**970

FINITE = st.floats(allow_nan=False, allow_infinity=False) | st.sampled_from(
    (1e16, -1e16, 1.0, SMALLEST, -SMALLEST, 2.0**-1022, LARGEST, -LARGEST, 2.0**970, 2.0**-53)
)


class Accumulator:
    """Keeps the digits touched, as the engine does."""

    def __init__(self) -> None:
        self._digits = np.zeros(exact_sum.DIGITS, np.int64)
        self._scratch = np.zeros(exact_sum.DIGITS, np.int64)
        self._first, self._last = exact_sum.DIGITS, -1

    def add(self, value: float, sign: int = 1) -> None:
        first, last = exact_sum.add(self._digits, value, sign)
        self._first, self._last = min(self._first, first), max(self._last, last)

    def sum(self, by: int = 1) -> float:
        return exact_sum.rounded(self._digits, self._first, self._last, self._scratch, by)


def summed(values: Sequence[float]) -> float:
    accumulator = Accumulator()
    for value in values:
        accumulator.add(value)
    return accumulator.sum()


def rounded_once(values: Sequence[float]) -> float:
    exact = sum(map(Fraction, values), Fraction(0))
    try:
        return float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


@PROPERTY
@given(st.lists(FINITE, max_size=12))
@example([LARGEST, HALF_ULP_OF_LARGEST, -LARGEST])
@example([SMALLEST] * 3)
def test_a_sum_is_the_exact_one_rounded(values: list[float]) -> None:
    """As `math.fsum` where it has an answer; also for the sign of a zero."""
    assert repr(summed(values)) == repr(rounded_once(values))
    with contextlib.suppress(OverflowError):  # fsum raises where a partial sum is too large
        assert summed(values) == math.fsum(values)


@pytest.mark.parametrize(
    ("values", "mean"),
    [
        ([LARGEST] * 2, LARGEST),
        ([LARGEST] * 3, LARGEST),
        ([-LARGEST] * 7, -LARGEST),
        ([LARGEST, 2.0**1023, 0.0], (LARGEST / 4 + 2.0**1021) / 3 * 4),
        ([1e308, 1e308, -1e308], 1e308 / 3),
        ([LARGEST], LARGEST),
    ],
)
def test_a_mean_is_finite_where_its_sum_is_too_large(values: list[float], mean: float) -> None:
    """Rule G2: it is divided by the count before it is scaled, which would make it too large."""
    accumulator = Accumulator()
    for value in values:
        accumulator.add(value)
    assert accumulator.sum(by=len(values)) == mean


@PROPERTY
@given(
    st.lists(FINITE, max_size=9), st.lists(FINITE, max_size=9), st.randoms(use_true_random=False)
)
def test_subtracted_values_leave_no_trace(
    remaining: list[float], removed: list[float], random: Random
) -> None:
    """In any order: the result is no difference of rounded sums."""
    steps = [(value, 1) for value in [*remaining, *removed]] + [(value, -1) for value in removed]
    random.shuffle(steps)
    accumulator = Accumulator()
    for value, sign in steps:
        accumulator.add(value, sign)
    assert repr(accumulator.sum()) == repr(rounded_once(remaining))


@pytest.mark.parametrize(
    ("values", "total"),
    [
        ([], 0.0),
        ([-0.0], 0.0),
        ([1.0, -1.0], 0.0),
        # Halfway between 1 and the next double: to even, unless the least bit more.
        ([1.0, 2.0**-53], 1.0),
        ([1.0, 2.0**-53, SMALLEST], 1.0 + 2.0**-52),
        ([1.0, 2.0**-53, -SMALLEST], 1.0),
        ([1.0 + 2.0**-52, 2.0**-53], 1.0 + 2.0**-51),
        ([-1.0, -(2.0**-53), -SMALLEST], -1.0 - 2.0**-52),
        # Rounded up into the next power of two.
        ([2.0 - 2.0**-52, 2.0**-53], 2.0),
        # Subnormals, and from them to the smallest normal double.
        ([SMALLEST, SMALLEST], 2 * SMALLEST),
        ([2.0**-1022, -SMALLEST], 2.0**-1022 - SMALLEST),
        ([2.0**-1022 - SMALLEST, SMALLEST], 2.0**-1022),
        # At the end of the range: a tie there goes to the even one, which is infinite.
        ([LARGEST, HALF_ULP_OF_LARGEST], math.inf),
        ([LARGEST, HALF_ULP_OF_LARGEST, -SMALLEST], LARGEST),
        ([-LARGEST, -LARGEST], -math.inf),
        ([LARGEST, LARGEST, -LARGEST], LARGEST),
        ([LARGEST] * 1000 + [-LARGEST] * 1000 + [SMALLEST], SMALLEST),
    ],
)
def test_sum(values: list[float], total: float) -> None:
    assert repr(summed(values)) == repr(total)
    assert repr(summed(values[::-1])) == repr(total)


def test_many_of_the_longest_numbers_carry_over() -> None:
    """All 53 bits set, 100,000 times, across digits."""
    value = (2.0**53 - 1) * 2.0**-17
    accumulator = Accumulator()
    for _ in range(100_000):
        accumulator.add(value)
    assert accumulator.sum() == float(Fraction(value) * 100_000)
