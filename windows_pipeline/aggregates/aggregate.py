"""Aggregates by name: what they take and what they give."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

_CALL = re.compile(r"\s*(?P<function>\w+)\s*\(\s*(?P<column>\w+|\*)\s*\)\s*")


class Function(StrEnum):
    """The aggregate functions (rule G1)."""

    COUNT = "count"
    SUM = "sum"
    MIN = "min"
    MAX = "max"
    AVG = "avg"


@dataclass(frozen=True, slots=True)
class Aggregate:
    """A function of one column's values in a window, under the name of its result.

    Nulls are skipped, as in SQL (rule A6); of no value at all the count is 0 and the
    rest is null.

    Attributes:
        name: The result's column.
        function: What is computed.
        column: The value column.
    """

    name: str
    function: Function
    column: str

    def __str__(self) -> str:
        return f"{self.function.value}({self.column})"

    def result_type(self, column_type: str) -> str:
        """The Spark type of the result for a column of this type (bigint or double).

        Raises:
            ValueError: The function does not take such a column.
        """
        if self.function is Function.COUNT:
            return "bigint"
        if column_type not in ("bigint", "double"):
            raise ValueError(
                f"{self}: column {self.column!r} is of type {column_type}; "
                f"{self.function.value} takes bigint or double"
            )
        return "double" if self.function is Function.AVG else column_type


def parse_aggregate(name: str, text: str) -> Aggregate:
    """Reads an aggregate from text such as ``'avg(dep_delay)'``.

    Raises:
        ValueError: No call of a function, or an unknown one; names the value and the cure.
    """
    known = ", ".join(function.value for function in Function)
    call = _CALL.fullmatch(text)
    if call is None:
        raise ValueError(
            f"{text!r} is no aggregate; write one as 'avg(column)', with one of {known}"
        )
    if call["function"].lower() not in set(Function):
        raise ValueError(f"{text!r}: unknown aggregate {call['function']!r}; use one of {known}")
    if call["column"] == "*":
        raise ValueError(f"{text!r}: record_count is there without asking; name a column")
    return Aggregate(name, Function(call["function"].lower()), call["column"])
