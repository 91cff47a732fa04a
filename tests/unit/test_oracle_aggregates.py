"""Aggregates of the oracle and of the kernels against answers worked out by hand."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from statistics import pvariance, variance
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.oracle.aggregates import Value, aggregate
from tests.support.spark_cases import PAIRS, aggregates_of
from tests.support.strategies import pair
from tests.support.windowed import one_window
from windows_pipeline.aggregates import FUNCTIONS

QUICK = settings(deadline=None, max_examples=200)

Values = list[Value | None]

ZERO = Decimal("0.00")
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
# The same instant elsewhere.
EAST_NOON = NOON.astimezone(timezone(timedelta(hours=5)))


def cents(number: int) -> Decimal:
    return Decimal(f"{number}e-2")


def kind_of(values: Values) -> str:
    """A type that holds the values."""
    value = next((each for each in values if each is not None), 0)
    if isinstance(value, Decimal):
        return f"decimal(38,{-int(value.as_tuple().exponent)})"
    return {int: "bigint", float: "double", str: "string", bool: "boolean", date: "date"}.get(
        type(value), "timestamp_ntz"
    )


def answers(function: str, values: Values) -> list[Any]:
    """What the oracle and the kernel make of values of one time, in either order."""
    (asked,) = aggregates_of({"result": (function, "value")})
    found = []
    for ordered in (values, values[::-1]):
        found.append(aggregate(function, ordered, [0] * len(values)))
        kernel = one_window(ordered).aggregated(asked.function, kind_of(values), asked.percentage)
        found += kernel.to_pylist()
    return found


@pytest.mark.parametrize(
    ("function", "values", "result"),
    [
        ("count", [1, None, 2], 2),
        ("count", [None], 0),
        ("count", [], 0),
        ("count_distinct", [None], 0),
        ("collect_list", [None], []),
        ("sum", [None], None),
        ("avg", [], None),
        ("min", [None, None], None),
        ("max", [], None),
        ("first", [None], None),
        ("last", [], None),
        ("variance", [None], None),
        ("stddev_pop", [], None),
        ("percentile(0.5)", [None], None),
        ("sum", [2**53, 1], 2**53 + 1),
        ("sum", [1e16, 1.0, 1.0, 1.0, -1e16], 3.0),
        ("sum", [0.1] * 10, 1.0),
        ("sum", [1e308, 1e308, -1e308], 1e308),
        ("sum", [1e308, 1e308], math.inf),
        ("sum", [math.inf, -1e308], math.inf),
        ("sum", [math.inf, -math.inf], math.nan),
        ("sum", [math.nan, 1.0], math.nan),
        ("avg", [1, 2], 1.5),
        ("avg", [1.0, None, 2.0], 1.5),
        ("avg", [1e308, 1e308], 1e308),
        ("avg", [-1.5e308, -1.5e308, 0.0], -1e308),
        ("avg", [1e308, 1e308, math.inf], math.inf),
        ("sum", [-0.0], 0.0),
        ("max", [-0.0], 0.0),
        ("first", [-0.0], 0.0),
        ("collect_list", [-0.0], [0.0]),
        ("percentile(0)", [-0.0], 0.0),
        ("min", [math.nan, math.inf], math.inf),
        ("max", [math.nan, math.inf], math.nan),
        ("max", [-1.0, None], -1.0),
        ("count_distinct", [math.nan, -math.nan, 0.0, -0.0, 1.0], 3),
    ],
)
def test_numbers(function: str, values: Values, result: object) -> None:
    """Rules A6, G1 and G2; what has one right answer, whatever the order."""
    for found in answers(function, values):
        assert repr(found) == repr(result)  # distinguishes NaN, 1 from 1.0, 0.0 from -0.0


@pytest.mark.parametrize(
    ("function", "values", "result"),
    [
        ("sum", [cents(10), None, cents(-15)], "-0.05"),
        ("sum", [cents(5), cents(-5)], "0.00"),
        # 10**34 and 36 digits: more than Python's own decimals keep by default.
        ("sum", [cents(10**36), cents(1)], f"{10**34}.01"),
        ("avg", [cents(1), cents(2)], "0.015000"),
        ("avg", [cents(1), cents(0), cents(0)], "0.003333"),
        ("avg", [cents(2), cents(0), cents(0)], "0.006667"),
        # 1 cent by 32: 0.0003125 lies halfway at six decimals.
        ("avg", [cents(1)] + [ZERO] * 31, "0.000313"),
        ("avg", [cents(-1)] + [ZERO] * 31, "-0.000313"),
        ("avg", [cents(1)] + [ZERO] * 63, "0.000156"),  # 0.00015625
        ("avg", [cents(1)] + [ZERO] * 1999, "0.000005"),  # halfway, away from zero
        ("avg", [cents(-1)] + [ZERO] * 1999, "-0.000005"),
        ("avg", [cents(-1)] + [ZERO] * 20000, "0.000000"),  # a little nearer to zero than half
        ("avg", [Decimal("1e-36"), Decimal("0e-36")], f"0.{'0' * 36}50"),
        ("avg", [Decimal(1), Decimal(2)], "1.5000"),
        ("min", [cents(3), cents(-3)], "-0.03"),
        ("max", [cents(3), None], "0.03"),
    ],
)
def test_decimals(function: str, values: Values, result: str) -> None:
    """Rule G2: exact, an average with four decimals more (at most 38), rounded half up."""
    for found in answers(function, values):
        assert (type(found), f"{found:f}") == (Decimal, result)


@pytest.mark.parametrize(
    ("values", "ordered"),
    [
        (["b", None, "a", "B", ""], ["", "B", "a", "b"]),
        # By code point, as UTF-8's bytes sort; UTF-16 has them the other way round.
        (["\U0001f600", "\uff5e"], ["\uff5e", "\U0001f600"]),
        ([True, None, False, True], [False, True, True]),
        ([date(2026, 1, 2), date(2025, 12, 31)], [date(2025, 12, 31), date(2026, 1, 2)]),
        (
            [datetime(2026, 1, 1, 0, 0, 1), datetime(2026, 1, 1)],
            [datetime(2026, 1, 1), datetime(2026, 1, 1, 0, 0, 1)],
        ),
    ],
)
def test_values_that_are_no_numbers(values: Values, ordered: Values) -> None:
    """Rule G1: the smallest and largest, at one event time also the first and last."""
    for name, result in {
        "collect_list": ordered,
        "min": ordered[0],
        "first": ordered[0],
        "max": ordered[-1],
        "last": ordered[-1],
        "count_distinct": len(set(ordered)),
    }.items():
        assert answers(name, values) == [result] * 4


def test_an_instant_is_the_same_in_every_zone() -> None:
    """Rule G1."""
    values: Values = [NOON, EAST_NOON, NOON + timedelta(hours=1)]
    assert aggregate("count_distinct", values) == 2
    assert aggregate("max", values) == EAST_NOON + timedelta(hours=1)


def test_first_last_and_list_go_by_event_time() -> None:
    """Rule G1: not by arrival, ties by value, nulls are skipped."""
    times = [30, 10, 20, 20, 20, 5, 40]
    values: Values = [1.0, 2.0, math.nan, 3.0, -1.0, None, None]
    assert repr(aggregate("collect_list", values, times)) == "[2.0, -1.0, 3.0, nan, 1.0]"
    assert aggregate("first", values, times) == 2.0
    assert aggregate("last", values, times) == 1.0
    assert aggregate("first", values[2:5], times[2:5]) == -1.0
    assert math.isnan(aggregate("last", values[2:5], times[2:5]))


@pytest.mark.parametrize(
    ("records", "least", "most"),
    [
        # Each record: its time, its value, what decides.
        ([(1, 10, 5), (2, 20, 3), (3, 30, 9)], 20, 30),
        ([(3, 30, 5), (1, 10, 5), (2, 20, 5)], 10, 30),  # of equal ones the first, the last
        ([(1, 10, 5), (1, 20, 5)], 10, 20),  # at one time by value
        ([(1, None, 5), (1, 20, 5)], None, 20),  # where null is the smallest
        ([(1, None, 1), (2, 20, 5), (3, None, 9)], None, None),  # a value may be null
        ([(1, 10, None), (2, 20, 5)], 20, 20),  # a record without what decides does not count
        ([(1, 10, None)], None, None),
        ([], None, None),
    ],
)
def test_the_value_where_another_is_smallest_or_largest(
    records: list[tuple[int, int | None, int | None]], least: int | None, most: int | None
) -> None:
    """Rule G1; records of one time come in either order."""
    for ordered in (records, records[::-1]):
        in_time = sorted(ordered, key=lambda record: record[0])
        times = [time for time, _, _ in in_time]
        pairs: Values = [pair(value, by) for _, value, by in in_time]
        for function, result in {"min_by": least, "max_by": most}.items():
            assert aggregate(function, pairs, times) == result
            kernel = one_window(pairs, times).aggregated(FUNCTIONS[function], PAIRS["counted"])
            assert kernel.to_pylist() == [result]


@pytest.mark.parametrize(
    ("function", "values", "result"),
    [
        ("variance", [1, 2, 3, 4], 5 / 3),
        ("var_pop", [1, 2, 3, 4], 1.25),
        ("stddev", [1, None, 3], math.sqrt(2)),
        ("stddev_pop", [2.0, 4.0], 1.0),
        ("variance", [7], None),
        ("stddev", [math.nan], None),
        ("var_pop", [7], 0.0),
        ("stddev_pop", [math.inf], math.nan),
        ("variance", [math.inf, 1.0], math.nan),
        ("stddev", [math.nan, 1.0], math.nan),
        # In doubles the squares, or their sum, would lose the 1.
        ("var_pop", [1e16, 1e16 + 2], 1.0),
        ("variance", [2**62, 2**62 + 1, 2**62 + 2], 1.0),
        ("variance", [cents(10), cents(30)], 0.02),
        ("variance", [5e-324, 0.0], 0.0),  # its square is below the smallest double
        ("variance", [2.0**-537, 0.0], 0.0),  # half of the smallest: to even
        ("variance", [2.0**-536, 0.0], 2.0**-1073),
        ("var_pop", [-1e308, 1e308], math.inf),
        ("stddev_pop", [-1e308, 1e308], math.inf),
    ],
)
def test_variance(function: str, values: Values, result: float | None) -> None:
    """Rules G1 and G2: null where there is nothing to divide by, else exact and rounded once."""
    for found in answers(function, values):
        assert repr(found) == repr(result)


@QUICK
@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=2, max_size=8))
def test_variance_is_that_of_exact_fractions(values: list[int]) -> None:
    """Rule G2, against the standard library."""
    exact = list(map(Fraction, values))
    assert aggregate("variance", values) == float(variance(exact))
    assert aggregate("var_pop", values) == float(pvariance(exact))


@pytest.mark.parametrize(
    ("percentage", "values", "result"),
    [
        (0.5, [3, 1, None, 2], 2.0),
        (0.5, [4, 1, 2, 3], 2.5),
        (0.25, [10, 20, 30, 40, 50, 60], 22.5),
        (0.3, [10, 0], 3.0),  # from the documentation of Spark's percentile
        (0, [5, 4], 4.0),
        (1, [5, 4], 5.0),
        (0.9, [7], 7.0),
        (0.5, [cents(25), cents(75)], 0.5),
        # The difference of the two is too large for a double.
        (0.5, [-1e308, 1e308], 0.0),
        (0.5, [math.inf, math.inf], math.inf),
        (0.5, [1.0, math.inf], math.inf),
        (0.5, [-math.inf, math.inf], math.nan),
        (0.5, [1.0, 2.0, math.nan], 2.0),
        (0.75, [1.0, 2.0, math.nan], math.nan),
    ],
)
def test_percentile(percentage: float, values: Values, result: float) -> None:
    """Rule G1: between the two values around (n - 1) * p, each by its nearness, NaN the largest."""
    for found in answers(f"percentile({percentage})", values):
        assert repr(found) == repr(result)
