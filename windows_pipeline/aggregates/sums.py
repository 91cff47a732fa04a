"""Sums and means of numbers."""

from __future__ import annotations

from windows_pipeline.aggregates.aggregation import Aggregation, ColumnOrName, aggregation_of
from windows_pipeline.aggregates.column_type import MAX_DECIMAL_DIGITS, parse_type
from windows_pipeline.aggregates.function import Function, Takes

_MEAN_DIGITS = 4


def _sum_type(column_type: str) -> str:
    kind = parse_type(column_type)
    if kind.is_integer:
        return "bigint"
    if kind.name == "decimal":
        return _decimal(kind.precision + 10, kind.scale)
    return "double"


def _mean_type(column_type: str) -> str:
    kind = parse_type(column_type)
    if kind.name == "decimal":
        return _decimal(kind.precision + _MEAN_DIGITS, kind.scale + _MEAN_DIGITS)
    return "double"


def _decimal(precision: int, scale: int) -> str:
    """A decimal that grew as Spark's do."""
    return f"decimal({min(MAX_DECIMAL_DIGITS, precision)},{min(MAX_DECIMAL_DIGITS, scale)})"


SUM = Function(
    "sum", _sum_type, takes=Takes.NUMBERS, other_names=("total", "add"), may_overflow=True
)
AVG = Function(
    "avg",
    _mean_type,
    takes=Takes.NUMBERS,
    other_names=("mean", "average"),
    may_overflow=True,
    more_digits=_MEAN_DIGITS,
)


def sum_(column: ColumnOrName) -> Aggregation:
    """The sum: bigint, double or a decimal of up to ten more digits; overflow is an error (G2)."""
    return aggregation_of(SUM, column)


def avg(column: ColumnOrName) -> Aggregation:
    """The mean: double, or a decimal with up to four more digits, rounded half up (rule G2)."""
    return aggregation_of(AVG, column)
