"""The contract's aggregates in slow, plain Python (rules A6, G1 and G2)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any

Number = int | float
Value = bool | int | float | Decimal | str | date | datetime | dict[str, Any]

LARGEST_DECIMAL_SCALE = 38
_LARGEST_BIGINT = 2**63 - 1


class AggregateFailedError(Exception):
    """A result does not fit its type (rule G3)."""


def aggregate(
    function: str,
    values: Sequence[Value | None],
    times: Sequence[int] | None = None,
    kind: str | None = None,
) -> Any:
    """One aggregate of a window's values; nulls are skipped, -0.0 is 0.0.

    Args:
        function: count, count_distinct, sum, min, max, avg, variance, stddev (of a sample),
            var_pop, stddev_pop, percentile(p) with p from 0 to 1, median, first, last,
            collect_list, min_by, max_by; the last two of dicts of `value` and `by`.
        values: One column's, of one type; of decimals of one scale.
        times: Their event times, for first, last and collect_list.
        kind: The column's type, 'bigint' or 'decimal(38,0)', if a result may not fit its own;
            None for integers and decimals without bounds.

    Returns:
        An int, a float, a Decimal, a value or a list of them. Of no value: 0 for the counts,
        [] for collect_list, else None. Integers and decimals are exact.

    Raises:
        AggregateFailedError: The result does not fit its type.
    """
    result = _unbounded(function, values, times)
    if kind is not None and function in ("sum", "avg") and not _fits(result, kind):
        raise AggregateFailedError
    return result


def _fits(result: Any, kind: str) -> bool:
    """Whether a sum or mean of a column of a type fits its type: bigint, or 38 digits."""
    if kind == "bigint":
        return not isinstance(result, int) or -_LARGEST_BIGINT - 1 <= result <= _LARGEST_BIGINT
    if kind.startswith("decimal(38") and isinstance(result, Decimal):
        return len(result.as_tuple().digits) <= 38
    return True


def _unbounded(function: str, values: Sequence[Value | None], times: Sequence[int] | None) -> Any:
    present = [_plain(value) for value in values if value is not None]
    if function == "count":
        return len(present)
    if function == "count_distinct":
        return len({spark_order(value) for value in present})
    if function == "collect_list":
        return _by_time(values, times)
    if not present:
        return None
    if function in ("min_by", "max_by"):
        return _by_another(function, values, times)
    if function in ("first", "last"):
        return _by_time(values, times)[0 if function == "first" else -1]
    if function.startswith("percentile("):
        return _percentile(present, float(function[len("percentile(") : -1]))
    return _OF_VALUES[function](present)


def spark_order(value: Any) -> tuple[int, Any]:
    """Sorts as Spark does: null below all values, NaN above them and equal to itself."""
    if value is None:
        return (0, 0)
    return (2, 0) if isinstance(value, float) and math.isnan(value) else (1, value)


def _plain(value: Any) -> Any:
    return value + 0.0 if isinstance(value, float) else value  # + 0.0: -0.0 becomes 0.0


def _by_time(values: Sequence[Value | None], times: Sequence[int] | None) -> list[Any]:
    """The values by event time; what ties by value, so that arrival order does not count."""
    assert times is not None
    present = [
        (time, _plain(value))
        for time, value in zip(times, values, strict=True)
        if value is not None
    ]
    return [value for _, value in sorted(present, key=lambda p: (p[0], spark_order(p[1])))]


def _by_another(function: str, pairs: Sequence[Any], times: Sequence[int] | None) -> Any:
    """Rule G1: of equal `by` the first or the last by time, then the smallest or largest value.

    Where arrival decides, `by` is a tuple that ends with it.
    """
    assert times is not None
    ranked = {
        (spark_order(_plain(pair["by"])), time, spark_order(_plain(pair["value"]))): pair
        for pair, time in zip(pairs, times, strict=True)
        if pair is not None
    }
    decisive = min(ranked) if function == "min_by" else max(ranked)
    return _plain(ranked[decisive]["value"])


def _sum(values: Sequence[Any]) -> Any:
    """Exact of integers and decimals, else rounded once; infinities and NaN as IEEE (rule G2)."""
    if isinstance(values[0], int):
        return sum(values)
    if isinstance(values[0], Decimal):
        return _decimal(sum(map(Fraction, values), Fraction(0)), _scale(values))
    special = [value for value in values if not math.isfinite(value)]
    return sum(special) if special else _double(sum(map(Fraction, values), Fraction(0)))


def _average(values: Sequence[Any]) -> Any:
    if isinstance(values[0], Decimal):
        exact = sum(map(Fraction, values), Fraction(0)) / len(values)
        return _decimal(exact, min(LARGEST_DECIMAL_SCALE, _scale(values) + 4))
    total = _sum(values)
    if all(map(math.isfinite, values)) and math.isinf(total):
        # The sum is beyond the largest double, its mean is not: a power of two less, and again.
        smaller = _double(sum(map(Fraction, values), Fraction(0)) / 2**64)
        return smaller / len(values) * 2.0**64
    return total / len(values)


def _variance(values: Sequence[Any], fewer: int) -> float | None:
    """The exact sum of squared deviations by the count less `fewer`, rounded once."""
    freedom = len(values) - fewer
    if freedom == 0:
        return None
    if not all(map(math.isfinite, values)):
        return math.nan
    exact = list(map(Fraction, values))
    mean = sum(exact, Fraction(0)) / len(exact)
    return _double(sum(((value - mean) ** 2 for value in exact), Fraction(0)) / freedom)


def _root(variance: float | None) -> float | None:
    return None if variance is None else math.sqrt(variance)


def _percentile(values: Sequence[Any], percentage: float) -> float:
    """Between the two values around (n - 1) * percentage, in doubles, as Spark weighs them."""
    ordered = sorted(values, key=spark_order)
    position = (len(ordered) - 1) * percentage
    lower, upper = math.floor(position), math.ceil(position)
    low, high = float(ordered[lower]), float(ordered[upper])
    if ordered[lower] == ordered[upper]:  # as at a whole position, where they are the same one
        return low
    return (upper - position) * low + (position - lower) * high


def _double(exact: Fraction) -> float:
    """Correctly rounded."""
    try:
        return float(exact)
    except OverflowError:  # beyond the largest double
        return math.inf if exact > 0 else -math.inf


def _scale(values: Sequence[Decimal]) -> int:
    exponents = [value.as_tuple().exponent for value in values]
    return max(0, *(-exponent for exponent in exponents if isinstance(exponent, int)))


def _decimal(exact: Fraction, scale: int) -> Decimal:
    """Rounded half away from zero, as Spark's HALF_UP."""
    units = math.floor(abs(exact) * 10**scale + Fraction(1, 2))
    return Decimal(f"{units if exact >= 0 else -units}e-{scale}")


_OF_VALUES: Mapping[str, Callable[[Sequence[Any]], Any]] = {
    "sum": _sum,
    "min": lambda values: min(values, key=spark_order),
    "max": lambda values: max(values, key=spark_order),
    "avg": _average,
    "variance": lambda values: _variance(values, 1),
    "stddev": lambda values: _root(_variance(values, 1)),
    "var_pop": lambda values: _variance(values, 0),
    "stddev_pop": lambda values: _root(_variance(values, 0)),
    "median": lambda values: _percentile(values, 0.5),
}
