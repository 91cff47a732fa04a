"""Expressions over one record's columns in slow, plain Python (rules A6, G1, G3).

An expression is a column's name, an int, or a tuple: an operator and its operands. Integers are
bigints: what does not fit fails.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

Expression = Any
_LEAST, _MOST = -(2**63), 2**63 - 1


class Computed(NamedTuple):
    """What an aggregate takes of a record.

    Attributes:
        expression: The argument; None to count records.
        condition: The condition; None for all records.
        by: The second argument, which decides whose value is the result; None without one.
    """

    expression: Expression | None
    condition: Expression | None = None
    by: Expression | None = None

    def of(self, record: Mapping[str, Any], arrival: tuple[int, ...]) -> Any:
        """The value of a record: null where the condition is not true.

        Args:
            record: Its values.
            arrival: Its place in the order of arrival, which decides among equal `by` (rule G1).

        Raises:
            ExpressionFailedError: See `value_of`.
        """
        if self.condition is not None and value_of(self.condition, record) is not True:
            return None
        value = 1 if self.expression is None else value_of(self.expression, record)
        if self.by is None:
            return value
        by = value_of(self.by, record)
        return None if by is None else {"value": value, "by": (by, *arrival)}


class ExpressionFailedError(Exception):
    """A number does not fit its type; the aggregate fails in windows that hold the record."""


def call_of(function: str, column: str | Computed) -> str:
    """An aggregate as a pipeline's file writes it."""
    if isinstance(column, str):
        return f"{function}({column})"
    argument = "*" if column.expression is None else text_of(column.expression)
    argument += "" if column.by is None else f", {text_of(column.by)}"
    where = "" if column.condition is None else f" where {text_of(column.condition)}"
    return f"{function}({argument}){where}"


def text_of(expression: Expression) -> str:
    """The expression as a pipeline's file writes it."""
    match expression:
        case (("+" | "-" | "*" | ">" | "=" | "and") as sign, left, right):
            return f"({text_of(left)} {sign} {text_of(right)})"
        case ("neg", operand):
            return f"(-{text_of(operand)})"
        case ("abs", operand):
            return f"abs({text_of(operand)})"
        case ("coalesce", left, right):
            return f"coalesce({text_of(left)}, {text_of(right)})"
        case ("case", condition, left, right):
            return f"case when {text_of(condition)} then {text_of(left)} else {text_of(right)} end"
        case _:
            return str(expression)


def value_of(expression: Expression, record: Mapping[str, Any]) -> Any:
    """The value for a record; null operands make an operator's result null.

    Raises:
        ExpressionFailedError: A number does not fit a bigint, and the value needs it.
    """
    match expression:
        case ("coalesce", left, right):
            found = value_of(left, record)
            return value_of(right, record) if found is None else found
        case ("case", condition, left, right):
            return value_of(left if value_of(condition, record) else right, record)
        case ("and", left, right):
            first = value_of(left, record)
            if first is False:
                return False
            second = value_of(right, record)
            if second is False:
                return False
            return None if None in (first, second) else True
        case (name, *operands):
            values = [value_of(operand, record) for operand in operands]
            return None if None in values else _fitting(_OF_VALUES[name](*values))
        case str():
            return record[expression]
        case _:
            return expression


def _fitting(value: Any) -> Any:
    if type(value) is int and not _LEAST <= value <= _MOST:
        raise ExpressionFailedError
    return value


_OF_VALUES: Mapping[str, Callable[..., Any]] = {
    "+": lambda left, right: left + right,
    "-": lambda left, right: left - right,
    "*": lambda left, right: left * right,
    ">": lambda left, right: left > right,
    "=": lambda left, right: left == right,
    "neg": lambda value: -value,
    "abs": abs,
}
