"""Checks of a pipeline's own: what a file may say, and each mistake with line, value and fix."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.pipeline_texts import FLIGHTS, changed, line_of, load_text, problems_of
from windows_pipeline.checks.firing_rules import (
    closed_checks,
    early_warning_checks,
    firing_checks,
)
from windows_pipeline.checks.own_checks import own_checks_of_records, own_checks_of_results
from windows_pipeline.checks.table_rules import final_windows_checks, raw_events_checks
from windows_pipeline.config import Pipeline, definition_digest, load_pipeline, table_definition
from windows_pipeline.config.expectations.regexes import require_portable
from windows_pipeline.config.expectations.values import text_sql
from windows_pipeline.config.own_checks import BUILT_IN

PIPELINES = Path(__file__).parents[2] / "pipelines"
BETWEEN = "expect_column_values_to_be_between"
NOT_NULL = "expect_column_values_to_not_be_null"
IN_SET = "expect_column_values_to_be_in_set"
REGEX = "expect_column_values_to_match_regex"


def of_records(check: str) -> str:
    """The flights with a check `mine` of records, on a line of its own."""
    return changed("\nwindows:\n", f"\nchecks:\n  mine: {check}\nwindows:\n")


def of_results(check: str) -> str:
    """The flights with a check `mine` of results."""
    return changed(
        "    emit_empty: true", f"    checks:\n      mine: {check}\n    emit_empty: true"
    )


MISTAKES = [
    # An unknown expectation or argument has the nearest name.
    (
        "{expect_column_values_to_be_betwen: {column: dep_delay, min_value: 0}}",
        (
            ".expect_column_values_to_be_betwen: 'expect_column_values_to_be_betwen' is not a "
            f"field here; did you mean '{BETWEEN}'?"
        ),
    ),
    (
        f"{{{BETWEEN}: {{column: dep_delay, minvalue: 0, max_value: 1}}}}",
        f".{BETWEEN}.minvalue: 'minvalue' is not a field here; did you mean 'min_value'?",
    ),
    (
        f"{{{NOT_NULL}: {{column: dest, row_condition: '1 = 1'}}}}",
        (
            f".{NOT_NULL}.row_condition: 'row_condition' is not a field here; write it beside the "
            "expectation as 'where: ...', SQL as in rules"
        ),
    ),
    (
        "{unexpected_rows_query: select 1}",
        (
            ".unexpected_rows_query: 'unexpected_rows_query' is not a field here; remove it; the "
            "fields are severity, where, that, expect_"
        ),
    ),
    # Which rule, and how many.
    ("{}", ": checks nothing; write 'that: ...' or one expectation, 'expect_...: {...}'"),
    ("", ": '' has no value; write 'mine:' with 'that: ...' or 'expect_...: ...' under it"),
    (
        f"{{that: dep_delay > 0, {NOT_NULL}: {{column: dest}}}}",
        f".{NOT_NULL}: is a second rule, after that; move it to a check of its own",
    ),
    ("{severity: fatal, that: dep_delay > 0}", ".severity: 'fatal' is not a known value; use"),
    # Columns and values.
    (
        f"{{{NOT_NULL}: {{column: dep_dely}}}}",
        f".{NOT_NULL}.column: 'dep_dely' is not a column here; did you mean 'dep_delay'?",
    ),
    (
        f"{{{BETWEEN}: {{column: carrier, min_value: 1}}}}",
        f".{BETWEEN}.column: 'carrier' is of type string; name a column of type bigint or",
    ),
    (
        f"{{{BETWEEN}: {{column: dep_delay}}}}",
        f".{BETWEEN}.min_value: is missing, and so is max_value; write one of them, or both",
    ),
    (
        f"{{{BETWEEN}: {{column: dep_delay, min_value: 5, max_value: 1.5}}}}",
        f".{BETWEEN}.max_value: '1.5' is below min_value, 5; exchange them",
    ),
    (
        f"{{{BETWEEN}: {{column: dep_delay, min_value: early}}}}",
        f".{BETWEEN}.min_value: 'early' is not a number, but the column is of type double",
    ),
    (
        f"{{{BETWEEN}: {{column: dep_delay, min_value: .inf}}}}",
        f".{BETWEEN}.min_value: '.inf' is not finite; write a number",
    ),
    (
        f"{{{BETWEEN}: {{column: departed_at, min_value: 2013-01-01 00:00:00}}}}",
        f".{BETWEEN}.min_value: '2013-01-01 00:00:00' has no time zone; write a time with its zone",
    ),
    (
        f"{{{IN_SET}: {{column: carrier, value_set: [AA, 7]}}}}",
        f".{IN_SET}.value_set.1: '7' is not text, but the column is of type string; put it in",
    ),
    (
        f"{{{IN_SET}: {{column: carrier, value_set: AA}}}}",
        f".{IN_SET}.value_set: 'AA' is not a list of values; write one, as in [a, b]",
    ),
    (
        f"{{{NOT_NULL}: {{column: dest, mostly: 95}}}}",
        f".{NOT_NULL}.mostly: '95' is not a share; write a number above 0 and up to 1, as 0.95",
    ),
    (
        "{expect_table_row_count_to_be_between: {min_value: -1}}",
        ".expect_table_row_count_to_be_between.min_value: '-1' is not a whole number from 0 to",
    ),
    (
        "{expect_compound_columns_to_be_unique: {column_list: [dest]}}",
        ".expect_compound_columns_to_be_unique.column_list: ['dest'] is not a list of 2 to 20",
    ),
    (
        "{expect_column_pair_values_to_be_equal: {column_A: carrier, column_B: flight}}",
        ".expect_column_pair_values_to_be_equal.column_B: 'flight' is of type bigint, and column_A",
    ),
    # Regular expressions.
    (f"{{{REGEX}: {{column: dest, regex: ''}}}}", f".{REGEX}.regex: '' is empty; write a regular"),
    (
        f"{{{REGEX}: {{column: dest, regex: {'a' * 201}}}}}",
        f".{REGEX}.regex: '{'a' * 201}' is longer than 200 characters; make it shorter",
    ),
    (f"{{{REGEX}: {{column: dest, regex: '(a'}}}}", "is not a regular expression (missing )"),
    # SQL.
    ("{that: dep_dely > 0}", ".that: 'dep_dely > 0': there is no column 'dep_dely'; did you mean"),
    ("{that: reflect('a')}", ".that: \"reflect('a')\" uses reflect(), which rules cannot use"),
    ("{that: 'true; select 1'}", ".that: 'true; select 1' "),
    ("{that: dep_delay}", ".that: 'dep_delay' must be a boolean, not a number"),
    (
        f"{{where: dep_delay => 1, {NOT_NULL}: {{column: dest}}}}",
        ".where: 'dep_delay => 1' has '=>', which is not an operator; write '>='",
    ),
]


@pytest.mark.parametrize(("check", "problem"), MISTAKES)
def test_a_mistake_has_its_line_value_and_fix(tmp_path: Path, check: str, problem: str) -> None:
    text = of_records(check)
    found = problems_of(tmp_path, text)
    assert len(found) == 1, found
    at = f"{tmp_path / 'flights.yaml'}:{line_of(text, '  mine:')}: checks.mine"
    assert found[0].startswith(at)
    assert problem in found[0].removeprefix(at)


def test_mistakes_of_a_definitions_checks_name_the_definition(tmp_path: Path) -> None:
    text = of_results("{table: firings, that: record_count > 0}")
    (problem,) = problems_of(tmp_path, text)
    assert problem == (
        f"{tmp_path / 'flights.yaml'}:{line_of(text, '      mine:')}: windows.hourly.checks.mine"
        ".table: 'firings' are of windows with a trigger; declare one, or check final_windows"
    )
    (problem,) = problems_of(tmp_path, of_results("{that: dep_delay > 0}"))
    assert ".checks.mine.that: 'dep_delay > 0': there is no column 'dep_delay'; did" in problem
    (problem,) = problems_of(tmp_path, of_results("{tabel: firings, that: record_count > 0}"))
    assert "checks.mine.tabel: 'tabel' is not a field here; did you mean 'table'?" in problem


@pytest.mark.parametrize("name", sorted(BUILT_IN))
def test_no_check_has_the_name_of_one_that_is_always_there(tmp_path: Path, name: str) -> None:
    text = of_records("{that: dep_delay > 0}").replace("  mine:", f"  {name}:")
    (problem,) = problems_of(tmp_path, text)
    assert f"checks.{name}: {name!r} is the name of a check that every pipeline has; use" in problem


def test_the_names_that_are_always_there_are_those_of_the_tables_checks() -> None:
    """Checks of one table have distinct names in Dagster."""
    pipeline = load_pipeline(PIPELINES / "flights.yaml")
    topic = pipeline.source.model_copy(update={"format": "kafka"})
    windows = pipeline.windows["by_hour"]
    assert windows.trigger is not None
    checks = [
        *raw_events_checks(pipeline),
        *raw_events_checks(pipeline.model_copy(update={"source": topic})),
        *final_windows_checks(windows),
        *firing_checks(windows.trigger),
        *closed_checks(windows.trigger),
        *early_warning_checks(windows, windows.result_columns(pipeline.source)),
    ]
    assert {check.name for check in checks} == BUILT_IN


def tables_of(pipeline: Pipeline) -> dict[str, str]:
    """The digest of each table's definition."""
    of_windows = ("keyed_windows", "late_records", "final_windows", "corrections", "alerts")
    of_firings = ("firings", "early_warnings", "failed_windows")
    return {
        **{
            table: definition_digest(table_definition(pipeline, None, table))
            for table in ("raw_events", "rejected_records", "arrival_log")
        },
        **{
            table: definition_digest(table_definition(pipeline, "hourly", table))
            for table in (*of_windows, *of_firings)
        },
    }


@pytest.mark.parametrize("severity", ["warning", "blocking"])
@pytest.mark.parametrize("with_check", [of_records, of_results])
def test_a_check_changes_no_definition(
    tmp_path: Path, severity: str, with_check: Callable[[str], str]
) -> None:
    """Rule H1: a check decides no row, so tables stay those of the same definition."""
    column = "dep_delay" if with_check is of_records else "avg_dep_delay"
    text = with_check(f"{{severity: {severity}, that: {column} > 0}}")
    assert tables_of(load_text(tmp_path, text)) == tables_of(load_text(tmp_path, FLIGHTS))


def test_severity_decides_whether_days_are_held(tmp_path: Path) -> None:
    pipeline = load_text(tmp_path, of_records("{that: dep_delay > 0}"))
    (check,) = own_checks_of_records(pipeline).checks
    assert (check.name, check.blocking, check.is_warning) == ("mine", False, True)
    pipeline = load_text(tmp_path, of_results("{severity: blocking, that: record_count > 0}"))
    windows = pipeline.windows["hourly"]
    (check,) = own_checks_of_results(
        windows, windows.result_columns(pipeline.source), "final_windows"
    ).checks
    assert (check.blocking, check.is_warning) == (True, False)
    assert check.description.startswith("record_count > 0 (")


PORTABLE = [
    *("^[A-Z]{3}$", "a|b", r"\d+(\.\d+)?", r"(?:ab){2,5}c*?", "[^x-z_-]", r"\bA\\", "é+", ".*"),
    *(r"[\w.]+@[\w.]+", "(a{1,20}){1,20}", "()", "a++", r"\é", "[^^]", "x{0,3}?"),
]


def test_no_number_of_a_record_fails_a_condition(tmp_path: Path) -> None:
    """An overflow is null, as is the absolute value that a bigint does not have."""
    pipeline = load_text(tmp_path, of_records("{that: abs(flight) + 1 > abs(abs(-distance))}"))
    (check,) = own_checks_of_records(pipeline).checks
    least = "-9223372036854775808"
    assert f"TRY_ADD(ABS(NULLIF(`flight`, {least})), 1)" in check.failing
    negative = f"ABS(NULLIF(TRY_SUBTRACT(0, `distance`), {least}))"
    assert f"ABS(NULLIF({negative}, {least}))" in check.failing


def test_parts_of_a_key_are_columns(tmp_path: Path) -> None:
    text = of_results("{that: carrier <> '' and record_count > 0}")
    text = text.replace("  key: origin", "  key: [origin, carrier]")
    text = text.replace(
        "\nwindows:\n", f"\nchecks: {{a: {{{NOT_NULL}: {{column: carrier}}}}}}\nwindows:\n"
    )
    pipeline = load_text(tmp_path, text)
    assert own_checks_of_records(pipeline).columns["carrier"] == "`key`.`carrier`"
    windows = pipeline.windows["hourly"]
    own = own_checks_of_results(windows, windows.result_columns(pipeline.source), "final_windows")
    assert own.columns["carrier"] == "`key`.`carrier`"
    assert own.types["carrier"] == "string"
    single = load_text(tmp_path, FLIGHTS)
    assert own_checks_of_records(single).columns["origin"] == "`key`"


@pytest.mark.parametrize("regex", PORTABLE)
def test_usual_regular_expressions_are_accepted(regex: str) -> None:
    require_portable(regex)


@pytest.mark.parametrize(
    "regex",
    [
        # Java and Python read these differently, or one of them refuses them.
        "(?i)a", "(?P<x>a)", "(?<x>a)", "(?=a)", "(?<!a)", r"(a)\1", r"\Qa\E", r"\p{L}", r"\Z",
        "a{", "a{x}", "}", "[a[b]]", "[a&&b]", "[a--b]", r"[\b]", r"\0", r"\x41", "(?#a)", r"\v",
        # No regular expressions.
        "(", ")", "[", "*", "a**", "[z-a]", "a{3,1}", "\\",
        # They may take forever.
        "(a+)+", "(a*)*", "((a+)b)*", "(?:x{2,})+", "(a+)++", "([a-z]+){3,}",
    ],
)  # fmt: skip
def test_others_are_refused_with_a_fix(regex: str) -> None:
    with pytest.raises(ValueError, match=r"; (use|correct|write) "):
        require_portable(regex)


def test_a_text_is_a_literal_without_signs() -> None:
    """Quotes, braces and ${ have a meaning in SQL, in Great Expectations and in Spark."""
    hostile = "a'b\\ \"`${x}{batch}\n;--é😀"
    literal = text_sql(hostile)
    assert re.fullmatch(r"'([A-Za-z0-9 ]|\\u[0-9a-f]{4}|\\U[0-9a-f]{8})*'", literal)
    shown = re.sub(r"\\U([0-9a-f]{8})|\\u([0-9a-f]{4})", _character, literal[1:-1])
    assert shown == hostile


def _character(found: re.Match[str]) -> str:
    return chr(int(found[1] or found[2], 16))
