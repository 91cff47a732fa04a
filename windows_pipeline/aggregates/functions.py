"""The aggregate functions of the DataFrame API: `sum_("amount").where("amount > 0")`."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any, Protocol, Self

from windows_pipeline.aggregates.aggregate import Function, check_percentage, function_name
from windows_pipeline.aggregates.user_aggregate import UserAggregate

_PLAIN_NAME = re.compile(r"\w+")


class Expression(Protocol):
    """The type of PySpark's Column, classic or Spark Connect's, without an import of PySpark."""

    def alias(self, *alias: str, **kwargs: Any) -> Any:
        """Gives the expression a name."""


ColumnOrName = Expression | str


@dataclass(frozen=True, slots=True)
class Aggregation:
    """An aggregate of a column or an expression, with a name and maybe a condition.

    Make one with the functions of this module.

    Attributes:
        function: The function to compute (rule G1).
        column: The name of the value column, or an expression; None to count records.
        percentage: The fraction of a `percentile`, from 0 to 1; None for other functions.
        name: The result's column; None for an aggregate that needs an `alias`.
        condition: SQL or an expression; the function sees records for which it is true.
    """

    function: Function | UserAggregate
    column: ColumnOrName | None = None
    percentage: float | None = None
    name: str | None = None
    condition: ColumnOrName | None = None

    def __post_init__(self) -> None:
        """Checks the arguments."""
        check_percentage(self.function, self.percentage)
        if self.column is None and self.function is not Function.COUNT:
            raise ValueError(
                f"column: {function_name(self.function)} needs a column, not None; pass the "
                "column's name, or a Column"
            )

    def alias(self, name: str) -> Self:
        """Returns this aggregate with another name for its result.

        Raises:
            ValueError: The name is empty, not text, or has a backtick, Spark's quote of names.
        """
        if not isinstance(name, str) or not name or "`" in name:
            raise ValueError(f"name: {name!r} is not a name; pass text without backticks")
        return replace(self, name=name)

    def where(self, condition: ColumnOrName) -> Self:
        """Returns this aggregate over those records for which a condition is true.

        Args:
            condition: SQL over the records' columns, such as 'amount > 0', or a Column. A
                record for which it is false or null does not count.

        Raises:
            ValueError: The condition is neither SQL nor a Column, the aggregate already has a
                condition, or is a user's aggregate that takes nulls.
        """
        if not _is_expression(condition):
            raise ValueError(
                f"condition: {condition!r} is not a condition; pass SQL as text, or a Column"
            )
        if self.condition is not None:
            raise ValueError(
                f"condition: the aggregate already has one, {self.condition!s}; join both with "
                "AND in one condition"
            )
        if isinstance(self.function, UserAggregate) and not self.function.skip_nulls:
            # Records that the condition leaves out reach the function as nulls.
            raise ValueError(
                "condition: an aggregate with skip_nulls=False cannot have one; set "
                "skip_nulls=True, or filter the records before"
            )
        return replace(self, condition=condition)

    @property
    def counts_records(self) -> bool:
        """Whether the aggregate is the number of all records in the window."""
        return self.column is None and self.condition is None

    @property
    def written(self) -> str:
        """The user's text for the column; for an expression, the name of the result."""
        if self.column is None:
            return "*"
        return self.column if isinstance(self.column, str) else self.result_name

    @property
    def result_name(self) -> str:
        """The name of the result's column.

        Raises:
            ValueError: The aggregate is of an expression and has no alias.
        """
        if self.name is None:
            raise ValueError(
                f"{function_name(self.function)} of {self.column!s} has no name; "
                "give it one with .alias('...')"
            )
        return self.name


def count(column: ColumnOrName | None = None) -> Aggregation:
    """Counts the records, or the values of a column that are not null: bigint.

    `count("*")` is `count()`.
    """
    if column is None or (isinstance(column, str) and column == "*"):
        return Aggregation(Function.COUNT, name="count")
    return _of(Function.COUNT, column)


def count_distinct(column: ColumnOrName) -> Aggregation:
    """Counts the distinct values, exactly: bigint."""
    return _of(Function.COUNT_DISTINCT, column)


def sum_(column: ColumnOrName) -> Aggregation:
    """The sum: bigint, double or a decimal of up to ten more digits; overflow is an error (G2)."""
    return _of(Function.SUM, column)


def min_(column: ColumnOrName) -> Aggregation:
    """The smallest value, of any type that has an order; NaN is the largest number."""
    return _of(Function.MIN, column)


def max_(column: ColumnOrName) -> Aggregation:
    """The largest value, of any type that has an order; NaN is the largest number."""
    return _of(Function.MAX, column)


def avg(column: ColumnOrName) -> Aggregation:
    """The mean: double, or a decimal with up to four more digits, rounded half up (rule G2)."""
    return _of(Function.AVG, column)


def variance(column: ColumnOrName) -> Aggregation:
    """The variance of a sample (divisor n - 1): double, rounded from the exact value (rule G2)."""
    return _of(Function.VARIANCE, column)


def var_pop(column: ColumnOrName) -> Aggregation:
    """The variance of a population (divisor n): double, rounded from the exact value (rule G2)."""
    return _of(Function.VAR_POP, column)


def stddev(column: ColumnOrName) -> Aggregation:
    """The standard deviation of a sample: double, the square root of `variance`."""
    return _of(Function.STDDEV, column)


def stddev_pop(column: ColumnOrName) -> Aggregation:
    """The standard deviation of a population: double, the square root of `var_pop`."""
    return _of(Function.STDDEV_POP, column)


def first(column: ColumnOrName) -> Aggregation:
    """The first non-null value by event time; of values at one time, the smallest."""
    return _of(Function.FIRST, column)


def last(column: ColumnOrName) -> Aggregation:
    """The last non-null value by event time; of values at one time, the largest."""
    return _of(Function.LAST, column)


def collect_list(column: ColumnOrName) -> Aggregation:
    """All non-null values, ordered by event time and, at one time, by value: an array."""
    return _of(Function.COLLECT_LIST, column)


def percentile(column: ColumnOrName, percentage: float) -> Aggregation:
    """The exact percentile of numbers, interpolated between neighbours as Spark does: double.

    Args:
        column: A column of numbers.
        percentage: The fraction of values below the result, from 0 to 1; 0.5 is the median.
    """
    of_all = _of(Function.PERCENTILE, column, percentage)
    if of_all.name is None:
        return of_all
    return of_all.alias(f"{of_all.name}_{percentage}".replace(".", "_"))


def median(column: ColumnOrName) -> Aggregation:
    """The exact median of numbers: double; of an even number, the mean of the middle two."""
    return _of(Function.MEDIAN, column)


def user_aggregate(column: ColumnOrName, aggregate: UserAggregate) -> Aggregation:
    """A user's own aggregate of values that have an order.

    Raises:
        ValueError: The column is not a column, or the aggregate not a `UserAggregate`.
    """
    if not isinstance(aggregate, UserAggregate):
        raise ValueError(
            f"aggregate: must be a UserAggregate, not {aggregate!r}; pass "
            "UserAggregate(create, ...)"
        )
    return _of(aggregate, column)


def _of(
    function: Function | UserAggregate, column: ColumnOrName, percentage: float | None = None
) -> Aggregation:
    if not _is_expression(column):
        raise ValueError(f"column: {column!r} is not a column; pass a column's name, or a Column")
    is_plain = isinstance(column, str) and _PLAIN_NAME.fullmatch(column) is not None
    name = f"{function_name(function)}_{column}" if is_plain else None
    return Aggregation(function, column, percentage, name)


def _is_expression(value: object) -> bool:
    # Recognizes a Column by its `alias` method, so that this package needs no Spark.
    is_column = hasattr(value, "alias") and not isinstance(value, Aggregation)
    return isinstance(value, str) or is_column
