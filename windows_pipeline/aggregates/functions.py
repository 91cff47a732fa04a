"""Aggregates as a user of the library writes them: `sum_("amount").where("amount > 0")`."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

from windows_pipeline.aggregates.aggregate import Function, check_percentage, function_name
from windows_pipeline.aggregates.user_aggregate import UserAggregate

if TYPE_CHECKING:
    from pyspark.sql import Column

    ColumnOrName = Column | str

_PLAIN_NAME = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class Aggregation:
    """An aggregate over a column or an expression, with a name and maybe a condition.

    Made by the functions of this module.

    Attributes:
        function: What is computed (rule G1).
        column: The value column's name, or an expression; None to count records.
        percentage: For `percentile`: which, from 0 to 1.
        name: The result's column; None where it needs an `alias`.
        condition: SQL or an expression; only records for which it is true count.
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
                f"column: {function_name(self.function)} needs one; pass its name or a Column"
            )

    def alias(self, name: str) -> Self:
        """The same under another name.

        Raises:
            ValueError: No name, or one with a backtick, which Spark quotes names with.
        """
        if not isinstance(name, str) or not name or "`" in name:
            raise ValueError(f"name: {name!r} is no name; pass some text without backticks")
        return replace(self, name=name)

    def where(self, condition: ColumnOrName) -> Self:
        """The same over those records only for which a condition is true, not false or null.

        Args:
            condition: SQL over the records' columns, such as 'amount > 0', or a Column.

        Raises:
            ValueError: No condition, there is one already, or a user's aggregate takes nulls.
        """
        if not _is_expression(condition):
            raise ValueError(f"condition: {condition!r} is none; pass SQL as text, or a Column")
        if self.condition is not None:
            raise ValueError("condition: there is one already; join them with AND in one")
        if isinstance(self.function, UserAggregate) and not self.function.skip_nulls:
            # What a condition leaves out comes as null.
            raise ValueError("condition: an aggregate that takes nulls has none; skip nulls")
        return replace(self, condition=condition)

    @property
    def counts_records(self) -> bool:
        """Whether it is the number of all records in the window."""
        return self.column is None and self.condition is None

    @property
    def written(self) -> str:
        """The column as the user wrote it; an expression by the name of its result."""
        if self.column is None:
            return "*"
        return self.column if isinstance(self.column, str) else self.result_name

    @property
    def result_name(self) -> str:
        """The result's column.

        Raises:
            ValueError: An expression without a name.
        """
        if self.name is None:
            raise ValueError(
                f"{function_name(self.function)} of {self.column!s} has no name; "
                "give it one with .alias('...')"
            )
        return self.name


def count(column: ColumnOrName | None = None) -> Aggregation:
    """How many records there are, or how many values of a column that are not null: bigint.

    `count("*")` is `count()`.
    """
    if column is None or (isinstance(column, str) and column == "*"):
        return Aggregation(Function.COUNT, name="count")
    return _of(Function.COUNT, column)


def count_distinct(column: ColumnOrName) -> Aggregation:
    """How many different values there are, exactly: bigint."""
    return _of(Function.COUNT_DISTINCT, column)


def sum_(column: ColumnOrName) -> Aggregation:
    """The sum: bigint, double or a decimal of up to ten digits more; overflow is an error (G2)."""
    return _of(Function.SUM, column)


def min_(column: ColumnOrName) -> Aggregation:
    """The smallest value, of any type that has an order; NaN is the largest number."""
    return _of(Function.MIN, column)


def max_(column: ColumnOrName) -> Aggregation:
    """The largest value, of any type that has an order; NaN is the largest number."""
    return _of(Function.MAX, column)


def avg(column: ColumnOrName) -> Aggregation:
    """The mean: double, or a decimal of up to four more digits, rounded half up (rule G2)."""
    return _of(Function.AVG, column)


def variance(column: ColumnOrName) -> Aggregation:
    """The variance of a sample (divided by n - 1): double, the exact one rounded (rule G2)."""
    return _of(Function.VARIANCE, column)


def var_pop(column: ColumnOrName) -> Aggregation:
    """The variance of a population (divided by n): double, the exact one rounded (rule G2)."""
    return _of(Function.VAR_POP, column)


def stddev(column: ColumnOrName) -> Aggregation:
    """The standard deviation of a sample: double, the square root of `variance`."""
    return _of(Function.STDDEV, column)


def stddev_pop(column: ColumnOrName) -> Aggregation:
    """The standard deviation of a population: double, the square root of `var_pop`."""
    return _of(Function.STDDEV_POP, column)


def first(column: ColumnOrName) -> Aggregation:
    """The first value that is not null by event time; the smallest of equal times."""
    return _of(Function.FIRST, column)


def last(column: ColumnOrName) -> Aggregation:
    """The last value that is not null by event time; the largest of equal times."""
    return _of(Function.LAST, column)


def collect_list(column: ColumnOrName) -> Aggregation:
    """All values that are not null, by event time, by value where times are equal: an array."""
    return _of(Function.COLLECT_LIST, column)


def percentile(column: ColumnOrName, percentage: float) -> Aggregation:
    """The exact percentile of numbers, interpolated between neighbours as Spark does: double.

    Args:
        column: A column of numbers.
        percentage: Which, from 0 to 1: 0.5 is the median.
    """
    of_all = _of(Function.PERCENTILE, column, percentage)
    if of_all.name is None:
        return of_all
    return of_all.alias(f"{of_all.name}_{percentage}".replace(".", "_"))


def median(column: ColumnOrName) -> Aggregation:
    """The exact median of numbers: double, the mean of the middle two of an even number."""
    return _of(Function.MEDIAN, column)


def user_aggregate(column: ColumnOrName, aggregate: UserAggregate) -> Aggregation:
    """A user's own aggregate, of any type that has an order.

    Raises:
        ValueError: No column, or no aggregate.
    """
    if not isinstance(aggregate, UserAggregate):
        raise ValueError(f"aggregate: {aggregate!r} is none; pass UserAggregate(create, ...)")
    return _of(aggregate, column)


def _of(
    function: Function | UserAggregate, column: ColumnOrName, percentage: float | None = None
) -> Aggregation:
    if not _is_expression(column):
        raise ValueError(f"column: {column!r} is none; pass a column's name or a Column")
    named = isinstance(column, str) and _PLAIN_NAME.fullmatch(column) is not None
    name = f"{function_name(function)}_{column}" if named else None
    return Aggregation(function, column, percentage, name)


def _is_expression(value: object) -> bool:
    # A Column says so by having an alias; Spark itself is not needed here.
    is_column = hasattr(value, "alias") and not isinstance(value, Aggregation)
    return isinstance(value, str) or is_column
