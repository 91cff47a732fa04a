"""What an expectation is: its columns, its mistakes, and its rule as SQL.

Names, arguments and meaning are those of Great Expectations. A null value is skipped, except by
the two expectations about nulls.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import ClassVar, NamedTuple

from windows_pipeline.config.expectations.values import COMPARABLE, type_name, value_sql
from windows_pipeline.config.strict import Strict
from windows_pipeline.text.problems import Problem, listed, nearest


@dataclass(frozen=True)
class RowRule:
    """What each row must keep by itself, as SQL.

    Attributes:
        judged: True for rows that the rule judges.
        breaks: True for judged rows that break it; of no meaning for others.
        mostly: The least share of an arrival unit's judged rows that must keep the rule.
    """

    judged: str
    breaks: str
    mostly: float = 1.0

    @property
    def failing(self) -> str:
        """True for rows that break the rule."""
        return f"({self.judged}) AND ({self.breaks})"

    @property
    def of_arrival_unit(self) -> ArrivalUnitRule:
        """The rule that a share of the rows must keep this rule."""
        numbers = {
            "judged": f"count_if({{where}} AND ({self.judged}))",
            "failing": f"count_if({{where}} AND {self.failing})",
        }
        share = f"{Decimal(repr(self.mostly)):f}BD"
        return ArrivalUnitRule(numbers, f"{{judged}} - {{failing}} < {{judged}} * {share}")


class ArrivalUnitRule(NamedTuple):
    """What the rows of an arrival unit must keep together, as SQL.

    Attributes:
        numbers: Aggregates over the arrival unit's rows that are whole numbers, by name; `{where}`
            stands for the condition that the check looks at a row.
        breaks: The condition that the arrival unit breaks the rule; `{name}` stands for a number.
    """

    numbers: Mapping[str, str]
    breaks: str


class Expectation(Strict):
    """What a check expects of one or more columns."""

    takes: ClassVar[tuple[str, ...]] = COMPARABLE

    @property
    def columns(self) -> dict[tuple[str, ...], str]:
        """The columns that the expectation reads, by the path of the argument that names them."""
        return {}

    @property
    def values(self) -> dict[tuple[str, ...], object]:
        """The values that must fit the type of the first column, by the path of the argument."""
        return {}

    def problems(self, types: Mapping[str, str]) -> Iterator[Problem]:
        """Yields what is wrong between arguments, or with columns of these types."""
        for path, column in self.columns.items():
            if column not in types:
                fix = nearest(column, types, f"use one of {listed(types)}")
                yield Problem(path, column, f"is not a column here; {fix}")
                return
            if type_name(types[column]) not in self.takes:
                text = (
                    f"is of type {types[column]}; name a column of type {' or '.join(self.takes)}"
                )
                yield Problem(path, column, text)
                return
        if self.values:
            kind = types[next(iter(self.columns.values()))]
            for path, value in self.values.items():
                try:
                    value_sql(value, kind)
                except ValueError as error:
                    yield Problem(path, value, str(error))

    @abstractmethod
    def rule(self, types: Mapping[str, str]) -> RowRule | ArrivalUnitRule:
        """Returns the rule as SQL over columns of these types, which `problems` has accepted."""


def bounds_problems(least: object, largest: object) -> Iterator[Problem]:
    """Yields what is wrong between two bounds, one of which must be there."""
    if least is None and largest is None:
        text = "is missing, and so is max_value; write one of them, or both"
        yield Problem(("min_value",), None, text)
    elif least is not None and largest is not None and not least <= largest:  # type: ignore[operator]
        yield Problem(("max_value",), largest, f"is below min_value, {least}; exchange them")
