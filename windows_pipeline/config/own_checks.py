"""The model of a user's own check, and the rules between its fields."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Annotated, Literal, NamedTuple, Self

from pydantic import AfterValidator, BeforeValidator, model_validator

from windows_pipeline.alerts.rule_sql import RuleError, columns_read, compile_rule
from windows_pipeline.config.columns.key import Key, key_columns
from windows_pipeline.config.fields import ColumnReference, Condition, Identifier, looks
from windows_pipeline.config.strict import Strict, refuse
from windows_pipeline.text.problems import Problem, listed, nearest

_MOST_ROWS = 2**53
_SHARE_DIGITS = 6
_RULES = ("that", "unique", "rows", "distinct")
"""The fields of which a check has exactly one."""
BUILT_IN = frozenset(
    {
        *("offsets_without_gap", "offsets_once", "running_max_is_stream_time"),
        *("landed_is_accepted_or_rejected", "rejected_within_limit", "columns_have_values"),
        *("final_is_closed", "final_once", "final_never_changed"),
        *("firings_numbered", "firing_reasons_in_order", "final_firing_is_final"),
        *("on_time_once", "last_firing_shows_final"),
        *("early_warning_breaks_its_rule", "early_warning_agrees_with_final"),
        "early_warning_once",
    }
)
"""The names of the built-in checks of the same tables."""
FIRING_COLUMNS = {
    "firing_id": "bigint",
    "reason": "string",
    "cause": "string",
    "stream_time": "timestamp",
    "is_final": "boolean",
}
"""The columns of a firing besides those of a result, with their types."""


class ArrivalUnitRule(NamedTuple):
    """What the rows of an arrival unit must keep together, as SQL.

    Attributes:
        numbers: Aggregates over the arrival unit's rows that are whole numbers, by name.
        breaks: The condition that the arrival unit breaks the rule; `{name}` stands for a number.
    """

    numbers: Mapping[str, str]
    breaks: str


def _not_built_in(name: str) -> str:
    if name in BUILT_IN:
        raise ValueError("is the name of a check that every pipeline has; use another name")
    return name


def _share(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value <= 1:
        raise ValueError("is not a share; write a number above 0 and up to 1, as 0.95")
    if round(value, _SHARE_DIGITS) != value:
        raise ValueError(f"has more than {_SHARE_DIGITS} digits after the point; write fewer")
    return float(value)


def _number_of_rows(value: object) -> int:
    if type(value) is not int or not 0 <= value <= _MOST_ROWS:
        raise ValueError(f"is not a whole number from 0 to {_MOST_ROWS}; write such a number")
    return value


def _some_columns(key: str | tuple[str, ...]) -> str | tuple[str, ...]:
    if not key_columns(key):
        raise ValueError("names no column; name one, or several as in [carrier, flight]")
    return key


CheckName = Annotated[Identifier, AfterValidator(_not_built_in)]
Share = Annotated[
    float,
    BeforeValidator(_share),
    looks("share", 0.95, type="number", exclusiveMinimum=0, maximum=1),
]
Rows = Annotated[
    int,
    BeforeValidator(_number_of_rows),
    looks("number of rows", 1000, type="integer", minimum=0, maximum=_MOST_ROWS),
]


class RowsOfDay(Strict):
    """How many rows a day has: two bounds, or one of them.

    Attributes:
        least: The least number.
        most: The largest number.
    """

    least: Rows | None = None
    most: Rows | None = None

    @model_validator(mode="after")
    def _bounds_in_order(self) -> Self:
        if self.least is None and self.most is None:
            text = "is missing, and so is most; write one of them, or both"
            refuse([Problem(("least",), None, text)])
        if self.least is not None and self.most is not None and self.most < self.least:
            text = f"is below least, {self.least}; exchange them"
            refuse([Problem(("most",), self.most, text)])
        return self

    def __str__(self) -> str:
        """Returns the fields in the file's words."""
        written = self.model_dump(exclude_none=True)
        return ", ".join(f"{field} {value}" for field, value in sorted(written.items()))

    def rule(self, where: str) -> ArrivalUnitRule:
        """The rule of an arrival unit's rows for which a condition holds, as SQL."""
        return self._between("rows", f"count_if({where})")

    def _between(self, name: str, number: str) -> ArrivalUnitRule:
        bounds = (("<", self.least), (">", self.most))
        outside = [f"{{{name}}} {sign} {bound}" for sign, bound in bounds if bound is not None]
        return ArrivalUnitRule({name: number}, " OR ".join(outside))


class DistinctOfDay(RowsOfDay):
    """How many distinct values a column has in a day; null does not count.

    Attributes:
        column: The column.
    """

    column: ColumnReference

    def rule(self, where: str) -> ArrivalUnitRule:
        """The rule of an arrival unit's rows for which a condition holds, as SQL."""
        return self._between("distinct", _distinct_sql(where, f"`{self.column}`"))


class OwnCheck(Strict):
    """A check of rows: a condition for each row, or a rule for the rows of a day together.

    Attributes:
        severity: Whether failing rows are a `warning`, or keep the days from being published
            (`blocking`).
        where: SQL over the columns: the check looks only at rows for which it is true.
        that: SQL over the columns that must not be false for any row.
        mostly: The least share of a day's rows that must keep `that`.
        unique: A column, or several, whose values no two rows of a day share. A row without a value
            in any of them is skipped.
        rows: How many rows a day has.
        distinct: How many distinct values a column has in a day.
    """

    severity: Literal["warning", "blocking"] = "warning"
    where: Condition | None = None
    that: Condition | None = None
    mostly: Share = 1.0
    unique: Annotated[Key, AfterValidator(_some_columns)] | None = None
    rows: RowsOfDay | None = None
    distinct: DistinctOfDay | None = None

    @model_validator(mode="after")
    def _one_rule(self) -> Self:
        written = [name for name in _RULES if name in self.model_fields_set]
        empty = next((name for name in written if getattr(self, name) is None), None)
        if empty is not None:
            text = "has no value; write what it takes, or remove the line"
            refuse([Problem((empty,), None, text)])
        if not written:
            text = (
                "checks nothing; write 'that: ...', 'unique: ...', 'rows: ...' or 'distinct: ...'"
            )
            refuse([Problem((), None, text)])
        if len(written) > 1:
            text = f"has more rules than one, {' and '.join(written)}; write a check for each"
            refuse([Problem((), None, text)])
        if "mostly" in self.model_fields_set and self.that is None:
            text = f"is a share of rows that keep 'that', but the rule is {written[0]}; remove it"
            refuse([Problem(("mostly",), self.mostly, text)])
        return self

    @property
    def is_blocking(self) -> bool:
        """Whether failing rows keep the days from being published."""
        return self.severity == "blocking"

    @property
    def reads(self) -> list[str]:
        """The columns that the check reads, in the order of their names."""
        conditions = [text for text in (self.where, self.that) if text is not None]
        read = {name for text in conditions for name in columns_read(text)}
        return sorted({*read, *(name for _, name in self._counted)})

    @property
    def text(self) -> str:
        """What must hold, in the file's words."""
        if self.that is not None:
            rule = self.that if self.mostly == 1 else f"{self.that} (mostly: {self.mostly})"
        elif self.unique is not None:
            rule = f"unique: {', '.join(key_columns(self.unique))}"
        elif self.distinct is not None:
            rule = f"distinct: {self.distinct}"
        else:
            rule = f"rows: {self.rows}"
        return rule if self.where is None else f"where {self.where}: {rule}"

    def problems(self, types: Mapping[str, str]) -> Iterator[Problem]:
        """Yields what is wrong with the check for rows with columns of these types."""
        for name in ("where", "that"):
            condition: str | None = getattr(self, name)
            if condition is not None:
                yield from _condition_problems(name, condition, types)
        for path, column in self._counted:
            if column not in types:
                fix = nearest(column, types, f"use one of {listed(types)}")
                yield Problem(path, column, f"is not a column here; {fix}")

    def failing_sql(self, types: Mapping[str, str]) -> str | None:
        """Compiles the condition that a row fails; None if only a whole day's rows can."""
        if self.that is None or self.mostly < 1:
            return None
        return self._fails_sql(self.that, types)

    def arrival_unit_rule(self, types: Mapping[str, str]) -> ArrivalUnitRule | None:
        """Compiles what a day's rows must keep together; None if each row is checked by itself."""
        where = self._where_sql(types)
        if self.that is not None:
            if self.mostly == 1:
                return None
            return _share_rule(where, self._fails_sql(self.that, types), self.mostly)
        if self.unique is not None:
            return _unique_rule(where, key_columns(self.unique))
        counted = self.rows or self.distinct
        return None if counted is None else counted.rule(where)

    @property
    def _counted(self) -> list[tuple[tuple[str, ...], str]]:
        """The columns whose distinct values are counted, each with its place in the check."""
        if self.distinct is not None:
            return [(("distinct", "column"), self.distinct.column)]
        if isinstance(self.unique, tuple):
            return [(("unique", str(at)), name) for at, name in enumerate(self.unique)]
        return [(("unique",), self.unique)] if self.unique else []

    def _where_sql(self, types: Mapping[str, str]) -> str:
        return "TRUE" if self.where is None else f"coalesce({_compiled(self.where, types)}, FALSE)"

    def _fails_sql(self, that: str, types: Mapping[str, str]) -> str:
        # As in a CHECK of SQL, a row for which the condition is unknown keeps it.
        return f"{self._where_sql(types)} AND NOT coalesce({_compiled(that, types)}, TRUE)"


class ResultCheck(OwnCheck):
    """A check of the results of a definition.

    Attributes:
        table: The results: `final_windows`, or `firings` of windows with a trigger.
    """

    table: Literal["final_windows", "firings"] = "final_windows"


def result_check_problems(
    checks: Mapping[str, ResultCheck], types: Mapping[str, Mapping[str, str]]
) -> Iterator[Problem]:
    """Yields what is wrong with the checks of a definition.

    Args:
        checks: The checks by name.
        types: The columns with their types, by the tables that the definition has.
    """
    for name, check in checks.items():
        if check.table not in types:
            text = "are of windows with a trigger; declare one, or check final_windows"
            yield Problem(("checks", name, "table"), check.table, text)
            continue
        for problem in check.problems(types[check.table]):
            yield Problem(("checks", name, *problem.path), problem.value, problem.text)


def _condition_problems(name: str, text: str, types: Mapping[str, str]) -> Iterator[Problem]:
    try:
        _compiled(text, types)
    except RuleError as error:
        yield Problem((name,), text, error.reason)


def _compiled(text: str, types: Mapping[str, str]) -> str:
    return compile_rule(text, types, "boolean").sql


def _share_rule(judged: str, fails: str, mostly: float) -> ArrivalUnitRule:
    """The rule that a share of the judged rows must not fail."""
    numbers = {"judged": f"count_if({judged})", "failing": f"count_if({fails})"}
    share = f"{Decimal(repr(mostly)):f}BD"
    return ArrivalUnitRule(numbers, f"{{judged}} - {{failing}} < {{judged}} * {share}")


def _unique_rule(where: str, columns: Sequence[str]) -> ArrivalUnitRule:
    """The rule that as many distinct values are there as rows with a value."""
    named = [f"`{name}`" for name in columns]
    has_value = f"{where} AND ({' OR '.join(f'{name} IS NOT NULL' for name in named)})"
    distinct = _distinct_sql(has_value, f"struct({', '.join(named)})")
    numbers = {"values": f"count_if({has_value})", "distinct": distinct}
    return ArrivalUnitRule(numbers, "{distinct} < {values}")


def _distinct_sql(where: str, value: str) -> str:
    return f"count(DISTINCT CASE WHEN {where} THEN {value} END)"
