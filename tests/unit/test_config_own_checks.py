"""Checks of a pipeline's own: what a file may say, and each mistake with line, value and fix."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.pipeline_texts import (
    FLIGHTS,
    changed,
    line_of,
    load_text,
    problems_of,
    table_definition,
)
from windows_pipeline.checks.firing_rules import (
    closed_checks,
    early_warning_checks,
    firing_checks,
)
from windows_pipeline.checks.own_checks import own_checks_of_records, own_checks_of_results
from windows_pipeline.checks.table_rules import final_windows_checks, raw_events_checks
from windows_pipeline.config import Pipeline, definition_digest, load_pipeline
from windows_pipeline.config.own_checks import BUILT_IN

PIPELINES = Path(__file__).parents[2] / "pipelines"


def of_records(check: str) -> str:
    """The flights with a check `mine` of records, on a line of its own."""
    return changed("\nwindows:\n", f"\nchecks:\n  mine: {check}\nwindows:\n")


def of_results(check: str) -> str:
    """The flights with a check `mine` of results."""
    return changed(
        "    emit_empty: true", f"    checks:\n      mine: {check}\n    emit_empty: true"
    )


MISTAKES = [
    # A field that does not exist: the nearest name, or all names.
    (
        "{unique: dest, sevrity: blocking}",
        ".sevrity: 'sevrity' is not a field here; did you mean 'severity'?",
    ),
    (
        "{unexpected_rows_query: select 1}",
        (
            ".unexpected_rows_query: 'unexpected_rows_query' is not a field here; remove it; the "
            "fields are severity, where, that, mostly, unique, rows, distinct"
        ),
    ),
    # Which rule, and how many.
    ("{}", ": checks nothing; write 'that: ...', 'unique: ...', 'rows: ...' or 'distinct: ...'"),
    ("", ": '' has no value; write 'mine:' with 'that: ...' or another rule under it"),
    (
        "{that: dep_delay > 0, unique: dest}",
        ": has more rules than one, that and unique; write a check for each",
    ),
    ("{severity: fatal, that: dep_delay > 0}", ".severity: 'fatal' is not a known value; use"),
    # Shares.
    (
        "{that: dep_delay > 0, mostly: 95}",
        ".mostly: '95' is not a share; write a number above 0 and up to 1, as 0.95",
    ),
    (
        "{that: dep_delay > 0, mostly: 0.9999999}",
        ".mostly: '0.9999999' has more than 6 digits after the point; write fewer",
    ),
    (
        "{unique: dest, mostly: 0.9}",
        ".mostly: '0.9' is a share of rows that keep 'that', but the rule is unique; remove it",
    ),
    # Columns and numbers.
    ("{unique: dset}", ".unique: 'dset' is not a column here; did you mean 'dest'?"),
    ("{unique: []}", ".unique: [] names no column; name one, or several as in [carrier, flight]"),
    (
        "{unique: [dest, dest]}",
        ".unique: ['dest', 'dest'] names 'dest' twice; name each column once",
    ),
    ("{distinct: {least: 1}}", ".distinct.column: is missing; write 'column: carrier' in checks"),
    ("{distinct: dest}", ".distinct: 'dest' is not a mapping; write 'distinct:' with 'column: "),
    (
        "{distinct: {column: dest}}",
        ".distinct.least: is missing, and so is most; write one of them, or both",
    ),
    ("{rows: {least: 5, most: 1}}", ".rows.most: '1' is below least, 5; exchange them"),
    ("{rows: {least: -1}}", ".rows.least: '-1' is not a whole number from 0 to 9007199254740992"),
    # SQL.
    ("{that: dep_dely > 0}", ".that: 'dep_dely > 0': there is no column 'dep_dely'; did you mean"),
    ("{that: dep_delay}", ".that: 'dep_delay' must be a boolean, not a number"),
    (
        "{where: dep_delay => 1, unique: dest}",
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


def test_no_number_of_a_record_fails_a_condition(tmp_path: Path) -> None:
    """An overflow is null, as is the absolute value that a bigint does not have."""
    pipeline = load_text(tmp_path, of_records("{that: abs(flight) + 1 > abs(abs(-distance))}"))
    (check,) = own_checks_of_records(pipeline).checks
    least = "(-9223372036854775807L - 1L)"
    assert f"TRY_ADD(ABS(NULLIF(`flight`, {least})), 1L)" in check.failing
    negative = f"ABS(NULLIF((-NULLIF(`distance`, {least})), {least}))"
    assert f"ABS(NULLIF({negative}, {least}))" in check.failing


def test_parts_of_a_key_are_columns(tmp_path: Path) -> None:
    text = of_results("{that: carrier <> '' and record_count > 0}")
    text = text.replace("  key: origin", "  key: [origin, carrier]")
    text = text.replace("\nwindows:\n", "\nchecks: {a: {unique: carrier}}\nwindows:\n")
    pipeline = load_text(tmp_path, text)
    assert own_checks_of_records(pipeline).columns["carrier"] == "`key`.`carrier`"
    windows = pipeline.windows["hourly"]
    own = own_checks_of_results(windows, windows.result_columns(pipeline.source), "final_windows")
    assert own.columns["carrier"] == "`key`.`carrier`"
    assert own.types["carrier"] == "string"
    single = load_text(tmp_path, FLIGHTS)
    assert own_checks_of_records(single).columns["origin"] == "`key`"
