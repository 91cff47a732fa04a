"""Expectations of a day's rows together: how many, how many distinct values, none twice."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated

from pydantic import BeforeValidator

from windows_pipeline.config.expectations.base import ArrivalUnitRule, Expectation, bounds_problems
from windows_pipeline.config.expectations.values import Rows, column_sql
from windows_pipeline.config.fields import ColumnReference, looks
from windows_pipeline.text.problems import Problem

_MOST_COLUMNS = 20


def _several(value: object) -> object:
    if not isinstance(value, list) or not 2 <= len(value) <= _MOST_COLUMNS:
        raise ValueError(
            f"is not a list of 2 to {_MOST_COLUMNS} columns; write one, as in [first, second]"
        )
    return value


class CountBetween(Expectation):
    """The number of rows of a day lies between two bounds, or beyond one.

    Attributes:
        min_value: The least number.
        max_value: The largest number.
    """

    min_value: Rows | None = None
    max_value: Rows | None = None

    def problems(self, types: Mapping[str, str]) -> Iterator[Problem]:
        """Yields what is wrong with the bounds, too."""
        yield from super().problems(types)
        yield from bounds_problems(self.min_value, self.max_value)

    def rule(self, types: Mapping[str, str]) -> ArrivalUnitRule:
        """The number of rows lies between the bounds."""
        return self._number("rows", "count_if({where})")

    def _number(self, name: str, sql: str) -> ArrivalUnitRule:
        outside = [
            f"{{{name}}} {sign} {bound}"
            for sign, bound in (("<", self.min_value), (">", self.max_value))
            if bound is not None
        ]
        return ArrivalUnitRule({name: sql}, " OR ".join(outside))


class DistinctValues(CountBetween):
    """The number of distinct values of a column in a day lies between two bounds.

    Attributes:
        column: The column.
    """

    column: ColumnReference

    @property
    def columns(self) -> dict[tuple[str, ...], str]:
        """The column."""
        return {("column",): self.column}

    def rule(self, types: Mapping[str, str]) -> ArrivalUnitRule:
        """The number of distinct values lies between the bounds."""
        return self._number("distinct", _distinct(column_sql(self.column)))


class UniqueValues(Expectation):
    """No two rows of a day have the same value in a column.

    Attributes:
        column: The column.
    """

    column: ColumnReference

    @property
    def columns(self) -> dict[tuple[str, ...], str]:
        """The column."""
        return {("column",): self.column}

    def rule(self, types: Mapping[str, str]) -> ArrivalUnitRule:
        """As many distinct values as values."""
        sql = column_sql(self.column)
        values = f"count_if({{where}} AND {sql} IS NOT NULL)"
        return ArrivalUnitRule(
            {"values": values, "distinct": _distinct(sql)}, "{distinct} < {values}"
        )


class UniqueRows(Expectation):
    """No two rows of a day have the same values in several columns.

    Attributes:
        column_list: The columns, two or more. A row in which all are null is skipped.
    """

    column_list: Annotated[
        list[ColumnReference],
        BeforeValidator(_several),
        looks(
            "list of columns",
            ["first", "second"],
            type="array",
            items={"type": "string"},
            minItems=2,
            maxItems=_MOST_COLUMNS,
        ),
    ]

    @property
    def columns(self) -> dict[tuple[str, ...], str]:
        """The columns."""
        return {("column_list", str(at)): name for at, name in enumerate(self.column_list)}

    def rule(self, types: Mapping[str, str]) -> ArrivalUnitRule:
        """As many distinct groups of values as groups."""
        names = [column_sql(name) for name in self.column_list]
        group = f"struct({', '.join(names)})"
        some = f"coalesce({', '.join(f'string({name})' for name in names)}) IS NOT NULL"
        return ArrivalUnitRule(
            {
                "values": f"count_if({{where}} AND {some})",
                "distinct": _distinct(f"CASE WHEN {some} THEN {group} END"),
            },
            "{distinct} < {values}",
        )


def _distinct(sql: str) -> str:
    return f"count(DISTINCT CASE WHEN {{where}} THEN {sql} END)"
