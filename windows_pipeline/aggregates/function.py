"""What an aggregate function answers about itself; `registry` lists the functions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Literal

from windows_pipeline.aggregates.column_type import parse_type


class Takes(Enum):
    """The types of columns that a function takes, in the words of an error."""

    ANY = "any type"
    ORDERED = "types with an order: numbers, text, times, booleans, binary, structs of these"
    NUMBERS = "numbers: tinyint to bigint, float, double, decimal"
    PAIRS = "a value and what it goes by, both of types with an order"

    def fits(self, column_type: str) -> bool:
        """Whether a column's type, as Spark writes it, is one of these."""
        if self is Takes.ANY:
            return True
        try:
            kind = parse_type(column_type)
        except ValueError:
            return False
        if self is Takes.PAIRS:
            return [name for name, _ in kind.fields] == ["value", "by"] and kind.is_orderable
        return kind.is_number if self is Takes.NUMBERS else kind.is_orderable


@dataclass(frozen=True, slots=True)
class Function:
    """An aggregate function (rule G1).

    Attributes:
        name: The name in SQL, in pipelines and in names of results.
        result_of: Returns the type of a result for the type of a column that the function takes,
            both as Spark writes them.
        takes: The types of columns that the function takes.
        second: What the second argument is: a percentage, or what decides which value is the
            result; None for a function of one argument.
        synonyms: Other names by which the function may be called.
        other_names: Its names in other tools, in lower case and without underscores, so that
            errors can suggest the function.
        may_overflow: Whether a result other than a double may not fit its type (rule G2).
        more_digits: How many digits after the point decimal results have more than the values.
        counts_records: Whether the function may be called without a column.
        lists_values: Whether a result is as long as its window, so that many need much memory.
    """

    name: str
    result_of: Callable[[str], str]
    takes: Takes = Takes.ORDERED
    second: Literal["percentage", "by"] | None = None
    synonyms: tuple[str, ...] = ()
    other_names: tuple[str, ...] = ()
    may_overflow: bool = False
    more_digits: int = 0
    counts_records: bool = False
    lists_values: bool = False

    def __repr__(self) -> str:
        return self.name


def bigint(_: str) -> str:
    """The type of a count."""
    return "bigint"


def double(_: str) -> str:
    """The type of a result that is a double whatever the values are."""
    return "double"


def value_type(column_type: str) -> str:
    """The type of a result that is the value of one of the pairs in a column."""
    value, _ = parse_type(column_type).fields
    return str(value[1])


def same_type(column_type: str) -> str:
    """The type of a result that is one of the values."""
    return column_type
