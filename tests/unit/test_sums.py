"""Sums, means and variances of every type of number against exact fractions (rules G1, G2)."""

from __future__ import annotations

import decimal
import math
import re
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.support.spark_cases import PROPERTY
from tests.support.windowed import WindowedCase, one_window, texts, windowed
from windows_pipeline.aggregates import FUNCTIONS, Aggregate, Function

EXACT = decimal.Context(prec=200, rounding=decimal.ROUND_HALF_UP)
VARIANCES = (
    FUNCTIONS["variance"],
    FUNCTIONS["var_pop"],
    FUNCTIONS["stddev"],
    FUNCTIONS["stddev_pop"],
)


def decimals(precision: int, scale: int) -> st.SearchStrategy[Decimal]:
    most = 10**precision - 1
    whole = st.integers(-most, most) | st.sampled_from((most, -most, most - 1, 1, -1, 0, 2**32))
    return whole.filter(lambda n: abs(n) <= most).map(lambda n: Decimal(n).scaleb(-scale, EXACT))


# Doubles that swamp each other in a sum, down to the smallest and up to near the largest.
DOUBLES = st.floats(allow_nan=False, allow_infinity=False) | st.sampled_from(
    (1e16, 1.0, 1e16 + 2, 0.1, -0.0, 5e-324, 2.0**-1022, 1e154, -1e308, 1.7e308, 3.0)
)
FLOATS = st.floats(width=32, allow_nan=False, allow_infinity=False)
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "tinyint": st.integers(-(2**7), 2**7 - 1),
    "int": st.integers(-(2**31), 2**31 - 1),
    "bigint": st.integers(-(2**63), 2**63 - 1) | st.integers(0, 3),
    "float": FLOATS | st.sampled_from((0.1, 1.0)).map(lambda x: float(np.float32(x))),
    "double": DOUBLES,
    "decimal(5,2)": decimals(5, 2),
    "decimal(18,0)": decimals(18, 0),
    "decimal(30,30)": decimals(30, 30),
    "decimal(38,6)": decimals(38, 6),
    "decimal(38,38)": decimals(38, 38),
}


def present(case: WindowedCase) -> list[list[Any]]:
    return [[each.value for each in held if each.value is not None] for held in case.held()]


def rounded(exact: Fraction) -> float:
    try:
        return exact.numerator / exact.denominator
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


def half_up(exact: Fraction, scale: int) -> Decimal:
    units = math.floor(abs(exact) * 10**scale + Fraction(1, 2))
    return Decimal(units if exact >= 0 else -units).scaleb(-scale, EXACT)


def variance(function: Function, values: Sequence[Any]) -> float | None:
    """By its definition, in fractions; the root of the rounded one for the deviation."""
    divisor = len(values) - (function in (FUNCTIONS["variance"], FUNCTIONS["stddev"]))
    if divisor <= 0:
        return None
    mean = sum(map(Fraction, values), Fraction(0)) / len(values)
    exact = sum(((Fraction(value) - mean) ** 2 for value in values), Fraction(0)) / divisor
    roots = (FUNCTIONS["stddev"], FUNCTIONS["stddev_pop"])
    return math.sqrt(rounded(exact)) if function in roots else rounded(exact)


@pytest.mark.parametrize("kind", VALUES)
@settings(PROPERTY, max_examples=100)
@given(data=st.data())
def test_variances_are_the_exact_ones_rounded_once(kind: str, data: st.DataObject) -> None:
    """Rules A6, G1 and G2: null below one value, or two of a sample."""
    case = data.draw(windowed(VALUES[kind]))
    for function in VARIANCES:
        found = case.aggregated(function, kind).to_pylist()
        assert texts(found) == texts([variance(function, values) for values in present(case)])


@pytest.mark.parametrize("kind", ["tinyint", "int", "float", "double"])
@settings(PROPERTY, max_examples=60)
@given(data=st.data())
def test_sums_and_means_of_widened_numbers(kind: str, data: st.DataObject) -> None:
    """Rules A6 and G2: a mean is the sum, rounded if of doubles, by the count."""
    case = data.draw(windowed(VALUES[kind]))
    values = present(case)
    exact = [sum(map(Fraction, each), Fraction(0)) for each in values]
    sums = [int(total) if kind.endswith("int") else rounded(total) for total in exact]
    # A sum beyond the largest double has a mean all the same.
    scale = 2**64
    means = [
        rounded(total / scale) / len(each) * scale
        if math.isinf(rounded(total))
        else sums[window] / max(len(each), 1)
        for window, (total, each) in enumerate(zip(exact, values, strict=True))
    ]
    found = case.aggregated(FUNCTIONS["sum"], kind).to_pylist()
    assert texts(found) == texts([sums[i] if each else None for i, each in enumerate(values)])
    found = case.aggregated(FUNCTIONS["avg"], kind).to_pylist()
    assert texts(found) == texts([means[i] if each else None for i, each in enumerate(values)])


@pytest.mark.parametrize("function", [FUNCTIONS["sum"], FUNCTIONS["avg"]])
@pytest.mark.parametrize(
    ("kind", "result"),
    [
        ("decimal(5,2)", {FUNCTIONS["sum"]: (15, 2), FUNCTIONS["avg"]: (9, 6)}),
        ("decimal(18,0)", {FUNCTIONS["sum"]: (28, 0), FUNCTIONS["avg"]: (22, 4)}),
        ("decimal(30,30)", {FUNCTIONS["sum"]: (38, 30), FUNCTIONS["avg"]: (34, 34)}),
        ("decimal(38,6)", {FUNCTIONS["sum"]: (38, 6), FUNCTIONS["avg"]: (38, 10)}),
        ("decimal(38,38)", {FUNCTIONS["sum"]: (38, 38), FUNCTIONS["avg"]: (38, 38)}),
    ],
)
@settings(PROPERTY, max_examples=100)
@given(data=st.data())
def test_decimal_sums_and_means_are_exact_or_refused(
    kind: str, result: dict[Function, tuple[int, int]], function: Function, data: st.DataObject
) -> None:
    """Rules A6 and G2: a mean is rounded once, half up; its sum may be beyond 38 digits."""
    precision, scale = result[function]
    assert Aggregate("r", function, "value").result_type(kind) == f"decimal({precision},{scale})"
    case = data.draw(windowed(VALUES[kind]))
    wanted = []
    for values in present(case):
        total = sum(map(Fraction, values), Fraction(0))
        parts = 1 if function is FUNCTIONS["sum"] else max(len(values), 1)
        wanted.append(half_up(total / parts, scale) if values else None)
    most = Decimal(10**precision - 1).scaleb(-scale, EXACT)
    too_large = [i for i, each in enumerate(wanted) if each is not None and each.copy_abs() > most]
    if too_large:
        text = f"{function}(value) overflows decimal({precision},{scale}) in window {too_large[0]};"
        message = rf"^{re.escape(text)}.* an error \(rule G2\): make the column a double, or"
        with pytest.raises(ArithmeticError, match=message):
            case.aggregated(function, kind)
    else:
        assert texts(case.aggregated(function, kind).to_pylist()) == texts(wanted)


@PROPERTY
@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=7))
@example([2**53 + 1, 2**53 + 2, 2**53 + 3])
@example([2**62, 1, 2])
def test_the_mean_of_large_integers_is_rounded_once(values: list[int]) -> None:
    """Rule G2: Python divides whole numbers exactly, then rounds."""
    found = one_window(values).aggregated(FUNCTIONS["avg"], "bigint").to_pylist()
    assert found == [sum(values) / len(values)]


def test_a_partial_sum_may_have_more_than_38_digits() -> None:
    """Rule G2: no partial sum overflows."""
    most = Decimal("9" * 38)
    case = one_window([most] * 1000 + [most.copy_negate()] * 1000 + [Decimal(1)])
    assert case.aggregated(FUNCTIONS["sum"], "decimal(38,0)").to_pylist() == [Decimal(1)]


def test_an_overflow_names_aggregate_and_window() -> None:
    """Rule G2: an error, never a wrapped number."""
    most = Decimal("9" * 38)
    too_large: dict[str, list[Any]] = {
        "decimal(38,0)": [most, Decimal(1)],
        "bigint": [2**63 - 1, 1],
    }
    for kind, values in too_large.items():
        message = (
            r"^sum\(value\) overflows .* in window 0; .* an error \(rule G2\): make the column a"
        )
        with pytest.raises(ArithmeticError, match=message):
            one_window(values).aggregated(FUNCTIONS["sum"], kind)
    # Four digits more after the point leave no room for 38 before it, in Spark's own type.
    with pytest.raises(
        ArithmeticError, match=r"avg\(value\) overflows decimal\(38,4\) in window 0;"
    ):
        one_window([most]).aggregated(FUNCTIONS["avg"], "decimal(38,0)")


@PROPERTY
@given(windowed(st.sampled_from((1.0, 2.0, 1e300, math.nan, math.inf, -math.inf))))
def test_nan_and_infinities_leave_with_their_record(case: WindowedCase) -> None:
    """Rule G2: NaN in windows that hold NaN or an infinity, and in no other."""
    for function in VARIANCES:
        found = case.aggregated(function, "double").to_pylist()
        for result, values in zip(found, present(case), strict=True):
            finite = values if all(map(math.isfinite, values)) else [0.0] * len(values)
            wanted = variance(function, finite)
            if wanted is not None and finite is not values:
                wanted = math.nan
            assert repr(result) == repr(wanted)
