"""Single values of a window: the smallest and largest, the first and last."""

from __future__ import annotations

from windows_pipeline.aggregates.aggregation import Aggregation, ColumnOrName, aggregation_of
from windows_pipeline.aggregates.function import Function, same_type

MIN = Function("min", same_type, other_names=("minimum", "least", "smallest", "lowest"))
MAX = Function("max", same_type, other_names=("maximum", "greatest", "largest", "highest"))
FIRST = Function("first", same_type, other_names=("firstvalue", "earliest", "head", "anyvalue"))
LAST = Function("last", same_type, other_names=("lastvalue", "latest", "tail"))


def min_(column: ColumnOrName) -> Aggregation:
    """The smallest value, of any type that has an order; NaN is the largest number."""
    return aggregation_of(MIN, column)


def max_(column: ColumnOrName) -> Aggregation:
    """The largest value, of any type that has an order; NaN is the largest number."""
    return aggregation_of(MAX, column)


def first(column: ColumnOrName) -> Aggregation:
    """The first non-null value by event time; of values at one time, the smallest."""
    return aggregation_of(FIRST, column)


def last(column: ColumnOrName) -> Aggregation:
    """The last non-null value by event time; of values at one time, the largest."""
    return aggregation_of(LAST, column)
