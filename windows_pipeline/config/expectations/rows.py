"""Expectations of each row by itself: of a column's value, or of two columns."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping

from pydantic import StrictBool

from windows_pipeline.config.expectations.base import Expectation, RowRule, bounds_problems
from windows_pipeline.config.expectations.values import (
    NUMBERS,
    TIMES,
    Bound,
    Length,
    Regex,
    Share,
    Values,
    column_sql,
    read_value,
    text_sql,
    type_name,
    value_sql,
)
from windows_pipeline.config.fields import ColumnReference
from windows_pipeline.text.problems import Problem

MOST_MATCHED = 1_000
"""The longest value that a regular expression is matched with; a longer one breaks the rule."""


class OfColumn(Expectation):
    """What is expected of each value of a column.

    Attributes:
        column: The column.
        mostly: The least share of a day's values that must be as expected.
    """

    column: ColumnReference
    mostly: Share = 1.0

    @property
    def columns(self) -> dict[tuple[str, ...], str]:
        """The column."""
        return {("column",): self.column}

    def rule(self, types: Mapping[str, str]) -> RowRule:
        """Judges the rows that have a value."""
        sql = column_sql(self.column)
        return RowRule(f"{sql} IS NOT NULL", self._breaks(sql, types[self.column]), self.mostly)

    @abstractmethod
    def _breaks(self, sql: str, column_type: str) -> str:
        """True for a value, which is not null, that is not as expected."""


class NotNull(OfColumn):
    """Each row has a value in a column."""

    def rule(self, types: Mapping[str, str]) -> RowRule:
        """Judges every row."""
        return RowRule("TRUE", f"{column_sql(self.column)} IS NULL", self.mostly)

    def _breaks(self, sql: str, column_type: str) -> str:
        raise NotImplementedError


class Null(NotNull):
    """No row has a value in a column."""

    def rule(self, types: Mapping[str, str]) -> RowRule:
        """Judges every row."""
        return RowRule("TRUE", f"{column_sql(self.column)} IS NOT NULL", self.mostly)


class Between(OfColumn):
    """Each value lies between two bounds, or beyond one.

    Attributes:
        min_value: The least value: a number, a day, or a time with its zone.
        max_value: The largest value.
        strict_min: Whether values must be above `min_value`, not only at least that.
        strict_max: Whether values must be below `max_value`, not only at most that.
    """

    takes = (*NUMBERS, *TIMES)
    min_value: Bound | None = None
    max_value: Bound | None = None
    strict_min: StrictBool = False
    strict_max: StrictBool = False

    @property
    def values(self) -> dict[tuple[str, ...], object]:
        """The bounds."""
        bounds = {("min_value",): self.min_value, ("max_value",): self.max_value}
        return {path: bound for path, bound in bounds.items() if bound is not None}

    def problems(self, types: Mapping[str, str]) -> Iterator[Problem]:
        """Yields what is wrong with the bounds, too."""
        found = list(super().problems(types))
        yield from found
        if not found:
            kind = types[self.column]
            read = {path: read_value(bound, kind) for path, bound in self.values.items()}
            yield from bounds_problems(read.get(("min_value",)), read.get(("max_value",)))

    def _breaks(self, sql: str, column_type: str) -> str:
        below = "<=" if self.strict_min else "<"
        above = ">=" if self.strict_max else ">"
        return " OR ".join(
            f"{sql} {sign} {value_sql(bound, column_type)}"
            for sign, bound in ((below, self.min_value), (above, self.max_value))
            if bound is not None
        )


class InSet(OfColumn):
    """Each value is one of a list.

    Attributes:
        value_set: The values, of the column's type.
    """

    value_set: Values

    @property
    def values(self) -> dict[tuple[str, ...], object]:
        """The list's values."""
        return {("value_set", str(at)): value for at, value in enumerate(self.value_set)}

    def _breaks(self, sql: str, column_type: str) -> str:
        return f"NOT {self._is_in(sql, column_type)}"

    def _is_in(self, sql: str, column_type: str) -> str:
        return f"{sql} IN ({', '.join(value_sql(each, column_type) for each in self.value_set)})"


class NotInSet(InSet):
    """No value is one of a list.

    Attributes:
        value_set: The values, of the column's type.
    """

    def _breaks(self, sql: str, column_type: str) -> str:
        return self._is_in(sql, column_type)


class MatchRegex(OfColumn):
    """A part of each text matches a regular expression; a text of over 1,000 characters fails.

    Attributes:
        regex: The regular expression, of at most 200 characters; ^ and $ stand for the ends.
    """

    takes = ("string",)
    regex: Regex

    def _breaks(self, sql: str, column_type: str) -> str:
        return f"{_too_long(sql)} OR NOT {sql} RLIKE {text_sql(self.regex)}"


class NotMatchRegex(MatchRegex):
    """No part of a text matches a regular expression; a text of over 1,000 characters fails.

    Attributes:
        regex: The regular expression, of at most 200 characters; ^ and $ stand for the ends.
    """

    def _breaks(self, sql: str, column_type: str) -> str:
        return f"{_too_long(sql)} OR {sql} RLIKE {text_sql(self.regex)}"


class LengthsBetween(OfColumn):
    """Each text has a number of characters between two bounds, or beyond one.

    Attributes:
        min_value: The least number of characters.
        max_value: The largest number of characters.
    """

    takes = ("string",)
    min_value: Length | None = None
    max_value: Length | None = None

    def problems(self, types: Mapping[str, str]) -> Iterator[Problem]:
        """Yields what is wrong with the bounds, too."""
        yield from super().problems(types)
        yield from bounds_problems(self.min_value, self.max_value)

    def _breaks(self, sql: str, column_type: str) -> str:
        return " OR ".join(
            f"char_length({sql}) {sign} {bound}"
            for sign, bound in (("<", self.min_value), (">", self.max_value))
            if bound is not None
        )


class LengthsEqual(OfColumn):
    """Each text has one number of characters.

    Attributes:
        value: The number of characters.
    """

    takes = ("string",)
    value: Length

    def _breaks(self, sql: str, column_type: str) -> str:
        return f"char_length({sql}) <> {self.value}"


class Pair(Expectation):
    """What is expected of two columns in each row.

    Attributes:
        column_A: The first column.
        column_B: The second column, of a type that can be compared with the first one's.
        mostly: The least share of a day's rows that must be as expected.
    """

    column_A: ColumnReference  # noqa: N815  Great Expectations' name
    column_B: ColumnReference  # noqa: N815  as above
    mostly: Share = 1.0

    @property
    def columns(self) -> dict[tuple[str, ...], str]:
        """Both columns."""
        return {("column_A",): self.column_A, ("column_B",): self.column_B}

    def problems(self, types: Mapping[str, str]) -> Iterator[Problem]:
        """Yields what is wrong with the types, too."""
        found = list(super().problems(types))
        yield from found
        if found:
            return
        first, second = types[self.column_A], types[self.column_B]
        kinds = {type_name(first), type_name(second)}
        if len(kinds) > 1 and not kinds <= set(NUMBERS):
            text = f"is of type {second}, and column_A of type {first}; name columns of one kind"
            yield Problem(("column_B",), self.column_B, text)


class PairGreater(Pair):
    """The first of two columns is greater than the second, where neither is null.

    Attributes:
        or_equal: Whether equal values are as expected, too.
    """

    or_equal: StrictBool = False

    def rule(self, types: Mapping[str, str]) -> RowRule:
        """Judges the rows that have a value; with a null beside it, none breaks the rule."""
        first, second = column_sql(self.column_A), column_sql(self.column_B)
        sign = "<" if self.or_equal else "<="
        judged = f"({first} IS NOT NULL OR {second} IS NOT NULL)"
        return RowRule(judged, f"{first} {sign} {second}", self.mostly)


class PairEqual(Pair):
    """Two columns are equal; a row in which both are null is skipped."""

    def rule(self, types: Mapping[str, str]) -> RowRule:
        """Judges the rows that have a value; a null equals no value."""
        first, second = column_sql(self.column_A), column_sql(self.column_B)
        judged = f"({first} IS NOT NULL OR {second} IS NOT NULL)"
        return RowRule(judged, f"NOT {first} <=> {second}", self.mostly)


def _too_long(sql: str) -> str:
    return f"char_length({sql}) > {MOST_MATCHED}"
