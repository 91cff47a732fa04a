"""An aggregate as a user of the DataFrame API writes it: `sum_("amount").where("amount > 0")`."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any, Protocol, Self

from windows_pipeline.aggregates.aggregate import check_second
from windows_pipeline.aggregates.function import Function
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

    The library's functions make one: `sum_`, `count` and so on, each beside its `Function`.

    Attributes:
        function: The function to compute (rule G1).
        column: The name of the value column, or an expression; None to count records.
        percentage: The fraction of a `percentile`, from 0 to 1; None for other functions.
        name: The result's column; None for an aggregate that needs an `alias`.
        condition: SQL or an expression; the function sees records for which it is true.
        by: What decides which value is the result; None for functions without such an argument.
    """

    function: Function | UserAggregate
    column: ColumnOrName | None = None
    percentage: float | None = None
    name: str | None = None
    condition: ColumnOrName | None = None
    by: ColumnOrName | None = None

    def __post_init__(self) -> None:
        """Checks the arguments."""
        check_second(self.function, self.percentage, self.by)
        if self.column is None and not self.function.counts_records:
            raise ValueError(
                f"column: {self.function.name} needs a column, not None; pass the "
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
    def written_by(self) -> str | None:
        """The user's text for `by`; for an expression, the name of the result."""
        return self.by if self.by is None or isinstance(self.by, str) else self.result_name

    @property
    def result_name(self) -> str:
        """The name of the result's column.

        Raises:
            ValueError: The aggregate is of an expression and has no alias.
        """
        if self.name is None:
            raise ValueError(
                f"{self.function.name} of {self.column!s} has no name; "
                "give it one with .alias('...')"
            )
        return self.name


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
    return aggregation_of(aggregate, column)


def aggregation_of(
    function: Function | UserAggregate,
    column: ColumnOrName,
    percentage: float | None = None,
    by: ColumnOrName | None = None,
) -> Aggregation:
    """An aggregate of a column, named after it; without a name if it is an expression.

    Raises:
        ValueError: An argument is not what the function takes.
    """
    columns = {"column": column} if by is None else {"column": column, "by": by}
    for argument, value in columns.items():
        if not _is_expression(value):
            raise ValueError(
                f"{argument}: {value!r} is not a column; pass a column's name, or a Column"
            )
    are_plain = all(isinstance(c, str) and _PLAIN_NAME.fullmatch(c) for c in columns.values())
    suffix = "" if percentage is None else f"_{percentage}".replace(".", "_")
    name = "_".join([function.name, *map(str, columns.values())]) + suffix
    return Aggregation(function, column, percentage, name if are_plain else None, by=by)


def _is_expression(value: object) -> bool:
    # Recognizes a Column by its `alias` method, so that this package needs no Spark.
    is_column = hasattr(value, "alias") and not isinstance(value, Aggregation)
    return isinstance(value, str) or is_column
