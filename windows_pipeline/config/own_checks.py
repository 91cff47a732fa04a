"""The model of a user's own check, and the rules between its fields."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Literal, Self, cast, get_args

from pydantic import AfterValidator, model_validator

from windows_pipeline.alerts.rule_hints import hint
from windows_pipeline.alerts.rule_sql import RuleError, columns_read, compile_expression
from windows_pipeline.config.expectations.base import ArrivalUnitRule, Expectation, RowRule
from windows_pipeline.config.expectations.days import (
    CountBetween,
    DistinctValues,
    UniqueRows,
    UniqueValues,
)
from windows_pipeline.config.expectations.rows import (
    Between,
    InSet,
    LengthsBetween,
    LengthsEqual,
    MatchRegex,
    NotInSet,
    NotMatchRegex,
    NotNull,
    Null,
    PairEqual,
    PairGreater,
)
from windows_pipeline.config.fields import Condition, Identifier
from windows_pipeline.config.strict import Strict, refuse
from windows_pipeline.text.limits import MAX_TEXT, TOO_LONG
from windows_pipeline.text.problems import Problem, without_value

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


def _not_built_in(name: str) -> str:
    if name in BUILT_IN:
        raise ValueError("is the name of a check that every pipeline has; use another name")
    return name


CheckName = Annotated[Identifier, AfterValidator(_not_built_in)]


class OwnCheck(Strict):
    """A check of rows: one expectation of Great Expectations, or a condition.

    Attributes:
        severity: Whether failing rows are a `warning`, or keep the days from being published
            (`blocking`).
        where: SQL over the columns: the check looks only at rows for which it is true.
        that: SQL over the columns that must not be false for any row.
        expect_column_values_to_not_be_null: A value in each row.
        expect_column_values_to_be_null: A value in no row.
        expect_column_values_to_be_between: Values between two bounds, or beyond one.
        expect_column_values_to_be_in_set: Values of a list.
        expect_column_values_to_not_be_in_set: No values of a list.
        expect_column_values_to_match_regex: Texts of which a part matches a regular expression.
        expect_column_values_to_not_match_regex: Texts of which no part does.
        expect_column_value_lengths_to_be_between: Texts of some length.
        expect_column_value_lengths_to_equal: Texts of one length.
        expect_column_pair_values_a_to_be_greater_than_b: Two columns in an order.
        expect_column_pair_values_to_be_equal: Two columns with equal values.
        expect_column_values_to_be_unique: No value twice in a day.
        expect_compound_columns_to_be_unique: No values of several columns twice in a day.
        expect_column_unique_value_count_to_be_between: How many distinct values a day has.
        expect_table_row_count_to_be_between: How many rows a day has.
    """

    severity: Literal["warning", "blocking"] = "warning"
    where: Condition | None = None
    that: Condition | None = None
    expect_column_values_to_not_be_null: NotNull | None = None
    expect_column_values_to_be_null: Null | None = None
    expect_column_values_to_be_between: Between | None = None
    expect_column_values_to_be_in_set: InSet | None = None
    expect_column_values_to_not_be_in_set: NotInSet | None = None
    expect_column_values_to_match_regex: MatchRegex | None = None
    expect_column_values_to_not_match_regex: NotMatchRegex | None = None
    expect_column_value_lengths_to_be_between: LengthsBetween | None = None
    expect_column_value_lengths_to_equal: LengthsEqual | None = None
    expect_column_pair_values_a_to_be_greater_than_b: PairGreater | None = None
    expect_column_pair_values_to_be_equal: PairEqual | None = None
    expect_column_values_to_be_unique: UniqueValues | None = None
    expect_compound_columns_to_be_unique: UniqueRows | None = None
    expect_column_unique_value_count_to_be_between: DistinctValues | None = None
    expect_table_row_count_to_be_between: CountBetween | None = None

    @model_validator(mode="after")
    def _one_rule(self) -> Self:
        written = [
            name
            for name in type(self).model_fields
            if name in self.model_fields_set and (name == "that" or name.startswith("expect_"))
        ]
        empty = next((name for name in written if getattr(self, name) is None), None)
        if empty is not None:
            text = "has no value; write what it takes, or remove the line"
            refuse([Problem((empty,), None, text)])
        if not written:
            text = "checks nothing; write 'that: ...' or one expectation, 'expect_...: {...}'"
            refuse([Problem((), None, text)])
        if len(written) > 1:
            text = f"is a second rule, after {written[0]}; move it to a check of its own"
            refuse([Problem((written[1],), None, text)])
        return self

    @property
    def expectation(self) -> tuple[str, Expectation] | None:
        """The expectation with its name; None if the check has a condition."""
        for name in type(self).model_fields:
            value = getattr(self, name)
            if isinstance(value, Expectation):
                return name, value
        return None

    @property
    def is_blocking(self) -> bool:
        """Whether failing rows keep the days from being published."""
        return self.severity == "blocking"

    @property
    def reads(self) -> list[str]:
        """The columns that the check reads, in the order of their names."""
        read = {
            *(columns_read(self.where) if self.where else ()),
            *(columns_read(self.that) if self.that else ()),
            *(self.expectation[1].columns.values() if self.expectation else ()),
        }
        return sorted(read)

    @property
    def text(self) -> str:
        """What must hold, in the file's words."""
        if self.expectation is None:
            rule = f"{self.that}"
        else:
            name, expectation = self.expectation
            written = expectation.model_dump(exclude_unset=True).items()
            rule = f"{name}({', '.join(f'{argument}: {value}' for argument, value in written)})"
        return rule if self.where is None else f"where {self.where}: {rule}"

    def problems(self, types: Mapping[str, str]) -> Iterator[Problem]:
        """Yields what is wrong with the check for rows with columns of these types."""
        for name in ("where", "that"):
            condition: str | None = getattr(self, name)
            if condition is not None:
                yield from _condition_problems(name, condition, types)
        if self.expectation is not None:
            name, expectation = self.expectation
            for problem in expectation.problems(types):
                yield Problem((name, *problem.path), problem.value, problem.text)

    def failing_sql(self, types: Mapping[str, str]) -> str | None:
        """Compiles the condition that a row fails; None if only a whole day's rows can."""
        rule = self._rule(types)
        if isinstance(rule, ArrivalUnitRule) or rule.mostly < 1:
            return None
        return f"{self._where_sql(types)} AND {rule.failing}"

    def arrival_unit_rule(self, types: Mapping[str, str]) -> ArrivalUnitRule | None:
        """Compiles what a day's rows must keep together; None if each row is checked by itself."""
        rule = self._rule(types)
        if isinstance(rule, RowRule):
            if rule.mostly >= 1:
                return None
            rule = rule.of_arrival_unit
        where = self._where_sql(types)
        numbers = {name: sql.replace("{where}", where) for name, sql in rule.numbers.items()}
        return ArrivalUnitRule(numbers, rule.breaks)

    def _where_sql(self, types: Mapping[str, str]) -> str:
        return "TRUE" if self.where is None else f"coalesce({_compiled(self.where, types)}, FALSE)"

    def _rule(self, types: Mapping[str, str]) -> RowRule | ArrivalUnitRule:
        if self.expectation is not None:
            return self.expectation[1].rule(types)
        # As in a CHECK of SQL, a row for which the condition is unknown keeps it.
        return RowRule("TRUE", f"NOT coalesce({_compiled(self.that or '', types)}, TRUE)")


class ResultCheck(OwnCheck):
    """A check of the results of a definition.

    Attributes:
        table: The results: `final_windows`, or `firings` of windows with a trigger.
    """

    table: Literal["final_windows", "firings"] = "final_windows"


def arguments_of(name: str) -> type[Expectation]:
    """Returns the model of an expectation's arguments, by the expectation's name.

    Raises:
        KeyError: The name is not that of an expectation.
    """
    kinds = get_args(OwnCheck.model_fields[name].annotation)
    (arguments,) = (kind for kind in kinds if issubclass(kind, Expectation))
    return cast(type[Expectation], arguments)


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
        if len(text) > MAX_TEXT:
            reason = TOO_LONG
        else:
            reason = hint(text) or without_value(str(error), "", text)
        yield Problem((name,), text, reason)


def _compiled(text: str, types: Mapping[str, str]) -> str:
    return compile_expression(text, types, "boolean", null_if_unfit=True)
