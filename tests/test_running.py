"""Aggregates of many windows in one pass, each against its own values."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from engine_runs import PROPERTY
from oracle import Number, aggregate
from windows_pipeline.engine.running import (
    order_codes,
    running_count,
    running_largest,
    running_sum_of_doubles,
    running_sum_of_integers,
)
from windows_pipeline.engine.sweep import Windows

INTEGERS = st.integers(-(2**63), 2**63 - 1) | st.sampled_from((2**63 - 1, -(2**63), 2**32, -1))
DOUBLES = st.floats() | st.sampled_from((0.0, -0.0, 1e16, 1.0, 5e-324, math.nan, -math.nan))


class Filled(NamedTuple):
    """Windows, the records inside each, and a value of each record (None for null)."""

    windows: Windows
    inside: list[list[int]]
    values: list[Number | None]

    def numbers(self, dtype: type) -> tuple[np.ndarray, np.ndarray]:
        """The values with something else in the place of nulls, and which are not null."""
        dense = [7 if value is None else value for value in self.values]
        valid = [value is not None for value in self.values]
        return np.array(dense, dtype), np.array(valid, np.bool_)

    def each(self, function: str) -> list[Number | None]:
        """The oracle's aggregate of each window's own values."""
        return [aggregate(function, [self.values[r] for r in held]) for held in self.inside]


@st.composite
def filled(draw: st.DrawFn, values: st.SearchStrategy[Number]) -> Filled:
    """Records leave in their order, each at a moment after it entered; windows in between."""
    leave = sorted(draw(st.lists(st.integers(1, 20), max_size=10)))
    enter = [draw(st.integers(0, last - 1)) for last in leave]
    moments = sorted(draw(st.lists(st.integers(0, 20), max_size=8)))
    inside = [[r for r in range(len(leave)) if enter[r] <= now < leave[r]] for now in moments]
    windows = Windows(
        group=np.zeros(len(moments), np.int64),
        end_ms=np.array(moments, np.int64),
        closed=np.zeros(len(moments), np.bool_),
        entered=np.array([sum(e <= now for e in enter) for now in moments], np.int64),
        left=np.array([sum(e <= now for e in leave) for now in moments], np.int64),
        enter_order=np.argsort(np.array(enter, np.int64), kind="stable"),
        uncounted=np.zeros(len(leave), np.bool_),
    )
    return Filled(windows, inside, [draw(values | st.none()) for _ in leave])


@PROPERTY
@given(filled(INTEGERS))
def test_counts_and_integer_sums_are_exact(case: Filled) -> None:
    """Rules A6 and G2; the sums also beyond 64 bits."""
    numbers, valid = case.numbers(np.int64)
    counts = running_count(case.windows, valid)
    assert counts.tolist() == case.each("count")
    high, low = running_sum_of_integers(case.windows, numbers, valid)
    sums = [int(upper) * 2**32 + int(lower) for upper, lower in zip(high, low, strict=True)]
    assert sums == [total or 0 for total in case.each("sum")]
    assert all(0 <= each < 2**32 for each in low.tolist())


@PROPERTY
@given(filled(DOUBLES))
def test_double_sums_are_those_of_the_windows_own_values(case: Filled) -> None:
    """Rule G2: correctly rounded; NaN and infinities of one window are not in the next."""
    numbers, valid = case.numbers(np.float64)
    sums = running_sum_of_doubles(case.windows, numbers, valid).tolist()
    wanted = [0.0 if total is None else total for total in case.each("sum")]
    assert list(map(repr, sums)) == list(map(repr, wanted))


def largest_values(
    case: Filled, dtype: type, turn: Callable[[np.ndarray], np.ndarray]
) -> list[Number | None]:
    numbers, valid = case.numbers(dtype)
    records = running_largest(case.windows, turn(order_codes(numbers)), valid)
    plain = numbers + 0.0 if dtype is np.float64 else numbers
    return [plain[record].item() if record >= 0 else None for record in records]


@PROPERTY
@given(filled(INTEGERS), filled(DOUBLES))
def test_smallest_and_largest_are_among_the_windows_own(whole: Filled, real: Filled) -> None:
    """Rules A6 and G1, with NaN as the largest, as in Spark."""
    for case, dtype in ((whole, np.int64), (real, np.float64)):
        largest = largest_values(case, dtype, lambda codes: codes)
        smallest = largest_values(case, dtype, lambda codes: ~codes)
        assert list(map(repr, largest)) == list(map(repr, case.each("max")))
        assert list(map(repr, smallest)) == list(map(repr, case.each("min")))


def test_order_codes_sort_doubles_as_spark_does() -> None:
    """NaN of either sign above infinity, -0.0 equal to 0.0."""
    ascending = [-math.inf, -1e308, -1.0, -5e-324, 0.0, 5e-324, 1.0, 1e308, math.inf, math.nan]
    codes = order_codes(np.array(ascending)).tolist()
    assert codes == sorted(set(codes))
    equal = order_codes(np.array([0.0, -0.0, math.nan, math.copysign(math.nan, -1)])).tolist()
    assert equal == [codes[4], codes[4], codes[-1], codes[-1]]
    assert order_codes(np.array([-(2**63), 2**63 - 1])).tolist() == [-(2**63), 2**63 - 1]
