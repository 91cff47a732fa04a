"""An aggregate of a column: its function, the types that it takes and the type of its result."""

from __future__ import annotations

from dataclasses import dataclass

from windows_pipeline.aggregates.column_type import parse_type
from windows_pipeline.aggregates.function import Function
from windows_pipeline.aggregates.user_aggregate import UserAggregate


@dataclass(frozen=True, slots=True)
class Aggregate:
    """A function of one column's values in a window, with the name of its result.

    The function skips nulls, as SQL does (rule A6). Without any value, counts are 0, a list is
    empty and other results are null; the variance of a sample of one value is null too.

    Attributes:
        name: The result's column.
        function: The function to compute.
        column: The value column.
        percentage: The fraction of a `percentile`, from 0 to 1; None for other functions.
        written: The user's text for the column or expression, where `column` is a name of the
            engine's.
        by: The user's text for what decides which value is the result; `column` then has structs
            of `value` and `by`, null where `by` is. None for functions without such an argument.
        condition: The user's text for a condition: `column` is null where it is not true.
        over: The name of the frame that holds the values, in windows of several frames.
        computed_as: The engine's column of the result, until the last select gives it `name`,
            which may be the name of another column of the engine; None for `name`.

    Raises:
        ValueError: The second argument is missing, out of range, or the function takes none.
    """

    name: str
    function: Function | UserAggregate
    column: str
    percentage: float | None = None
    written: str | None = None
    condition: str | None = None
    over: str | None = None
    computed_as: str | None = None
    by: str | None = None

    def __post_init__(self) -> None:
        """Checks the second argument."""
        check_second(self.function, self.percentage, self.by)

    def __str__(self) -> str:
        arguments = [self.written or self.column]
        second = self.percentage if self.by is None else self.by
        if second is not None:
            arguments.append(str(second))
        call = f"{self.function.name}({', '.join(arguments)})"
        if self.condition is not None:
            call += f" where {self.condition}"
        return call if self.over is None else f"{call} over {self.over}"

    @property
    def texts(self) -> list[str]:
        """The user's texts for expressions and for the condition."""
        texts = (self.written, self.by, self.condition)
        return [text for text in texts if text is not None and text != "*"]

    @property
    def result_column(self) -> str:
        """The column of the result while the engine computes."""
        return self.computed_as or self.name

    def result_type(self, column_type: str) -> str:
        """Returns the Spark type of the result for a column of this type.

        Args:
            column_type: The column's type as Spark writes it: 'bigint', 'decimal(10,2)'.

        Raises:
            ValueError: The function does not take such a column.
        """
        if not self.function.takes.fits(column_type):
            columns = [self.written or self.column, *([] if self.by is None else [self.by])]
            raise ValueError(
                f"{self}: column {' and '.join(map(repr, columns))} is of type {column_type}; "
                f"{self.function.name} takes {self.function.takes.value}"
            )
        return self.function.result_of(column_type)

    def may_overflow(self, result_type: str) -> bool:
        """Whether a result may not fit its type, for a result of this type (rule G2)."""
        return self.function.may_overflow and result_type != "double"

    def overflow(self, result_type: str, window: str | None = None) -> str:
        """Says that a result does not fit its type, and what to do (rule G2).

        Args:
            result_type: The type: 'bigint' or 'decimal(38,2)'.
            window: The name of the window for the text of an error; None for a text without it.
        """
        fix = "make the column a decimal or a double"
        if result_type != "bigint":
            fix = "make the column a double"
            if parse_type(result_type).scale > self.function.more_digits:
                fix += ", or a decimal with fewer digits after the point"
        if window is None:
            return f"{self} overflows {result_type}: {fix}"
        return (
            f"{self} overflows {result_type} in {window}; what does not fit its type is an error "
            f"(rule G2): {fix}"
        )


def check_second(
    function: Function | UserAggregate, percentage: float | None, by: object | None
) -> None:
    """Checks that a function has the second argument that it takes: a percentage from 0 to 1, a by.

    Raises:
        ValueError: The argument does not fit; the message has it.
    """
    if function.second != "by" and by is not None:
        raise ValueError(f"by: {function.name} takes none, not {by!r}; leave it out")
    if function.second == "by" and by is None:
        raise ValueError(
            "by: is missing; write the column that decides which value is the result, as in "
            f"{function.name}(value, by)"
        )
    if function.second != "percentage":
        if percentage is not None:
            raise ValueError(
                f"percentage: {function.name} takes none, not {percentage!r}; leave it out"
            )
    elif isinstance(percentage, (list, tuple)):
        raise ValueError(
            f"percentage: must be one number, not {percentage!r}; write one aggregate for each "
            "percentage, as in percentile('x', 0.5), percentile('x', 0.95)"
        )
    elif percentage is None:
        raise ValueError("percentage: is missing; write one from 0 to 1")
    elif isinstance(percentage, bool) or not isinstance(percentage, (int, float)):
        raise ValueError(f"percentage: {percentage!r} is not a number; write one from 0 to 1")
    elif not 0 <= percentage <= 1:
        raise ValueError(
            f"percentage: {percentage!r} is not from 0 to 1; write a fraction, such as 0.5 for the "
            "median"
        )
