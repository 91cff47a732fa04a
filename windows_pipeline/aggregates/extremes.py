"""Single values of a window: the smallest, the first, the one where another is smallest."""

from __future__ import annotations

from windows_pipeline.aggregates.aggregation import Aggregation, ColumnOrName, aggregation_of
from windows_pipeline.aggregates.function import Function, Takes, same_type, value_type

MIN = Function("min", same_type, other_names=("minimum", "least", "smallest", "lowest"))
MAX = Function("max", same_type, other_names=("maximum", "greatest", "largest", "highest"))
FIRST = Function("first", same_type, other_names=("firstvalue", "earliest", "head", "anyvalue"))
LAST = Function("last", same_type, other_names=("lastvalue", "latest", "tail"))
MIN_BY = Function(
    "min_by", value_type, Takes.PAIRS, second="by", other_names=("argmin", "idxmin", "minwhere")
)
MAX_BY = Function(
    "max_by", value_type, Takes.PAIRS, second="by", other_names=("argmax", "idxmax", "maxwhere")
)


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


def min_by(column: ColumnOrName, by: ColumnOrName) -> Aggregation:
    """The value, null or not, of the record with the smallest `by`; of equal ones the first.

    The first is the first to arrive. Without an order of arrival it is the first by event time; at
    one time, the smallest value.

    Args:
        column: The value, of a type that has an order.
        by: What decides, of a type that has an order; records in which it is null do not count.
    """
    return aggregation_of(MIN_BY, column, by=by)


def max_by(column: ColumnOrName, by: ColumnOrName) -> Aggregation:
    """The value, null or not, of the record with the largest `by`; of equal ones the last.

    The last is the last to arrive. Without an order of arrival it is the last by event time; at
    one time, the largest value.

    Args:
        column: The value, of a type that has an order.
        by: What decides, of a type that has an order; records in which it is null do not count.
    """
    return aggregation_of(MAX_BY, column, by=by)
