"""What people are notified of when a command fails: rules and days, and no values of records."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from tests.support.pipeline_texts import FLIGHTS, load_text
from windows_pipeline.checks.run import Check, CheckResult
from windows_pipeline.cli.failures import FailedExit, end_failed, failed_rules
from windows_pipeline.cli.terminal.printed import print_published, print_waiting
from windows_pipeline.storage.waiting_days import WaitingDays

ONE, TWO = date(2013, 1, 4), date(2013, 1, 5)


def result(name: str, *days: date, is_warning: bool = False, failing: int = 1) -> CheckResult:
    check = Check(name, "it holds", "false", is_warning=is_warning)
    return CheckResult(check, failing, [{"key": "secret"}], dict.fromkeys(days, 1))


def test_the_rules_that_fail_are_named_by_table_with_their_days() -> None:
    found = [
        ("p/w/keyed_windows", result("late_within_limit", TWO, ONE)),
        ("p/w/keyed_windows", result("no_arrival_missing", ONE, is_warning=True)),
        ("p/w/final_windows", result("final_once", failing=0)),
        ("p/w/alerts", result("own_rule")),
        ("p/w/keyed_windows", result("aggregates_computed", ONE)),
    ]
    assert failed_rules(found) == [
        (
            "p/w/keyed_windows: late_within_limit failed on 2 days, 2013-01-04 to 2013-01-05, "
            "aggregates_computed failed on 1 day, 2013-01-04"
        ),
        "p/w/alerts: own_rule failed",
    ]


def test_check_says_what_to_do_where_values_differ_from_records(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Rule E1: the first failing day; nothing for other rules."""
    pipeline = load_text(tmp_path, FLIGHTS)
    print_published(pipeline, [("flights/hourly/alerts", result("own_rule", ONE))])
    assert capfd.readouterr().out == ""
    differing = result("values_are_those_of_records", TWO, ONE)
    print_published(pipeline, [("flights/hourly/keyed_windows", differing)])
    said = " ".join(capfd.readouterr().out.split())
    assert said.startswith("flights: 2013-01-04: The rows are published.")
    assert "windows-pipeline run flights --from 2013-01-04 --to 2013-01-04" in said
    assert (
        "run the job flights_correction, or: windows-pipeline correct flights --from 2013-01-04"
    ) in said


def test_waiting_days_have_one_command_for_all_definitions(
    capfd: pytest.CaptureFixture[str],
) -> None:
    lacking = {"hourly": [ONE, TWO], "daily": [TWO], "weekly": [TWO]}
    left = print_waiting("p", WaitingDays(lacking, [], TWO), {"hourly", "daily"})
    said = " ".join(capfd.readouterr().out.split())
    assert said.count("windows-pipeline correct p --from 2013-01-04 --cause TEXT") == 1
    assert said.count("windows-pipeline correct") == 1
    assert said.count("windows-pipeline run p") == 1
    assert left == [
        "hourly is not computed to the end for 2 days, 2013-01-04 to 2013-01-05",
        "daily is not computed to the end for 1 day, 2013-01-05",
        "weekly is not computed to the end for 1 day, 2013-01-05",
    ]


def test_rows_that_differ_and_days_that_wait_have_one_correction(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """It begins with the first day of both."""
    pipeline = load_text(tmp_path, FLIGHTS)
    differing = result("values_are_those_of_records", ONE)
    found = [("flights/hourly/keyed_windows", differing)]
    first = print_published(pipeline, found, "see the end of this output")
    assert first == ONE
    assert "windows-pipeline correct" not in capfd.readouterr().out
    print_waiting("flights", WaitingDays({"hourly": [TWO]}, [], TWO), differs=first)
    said = " ".join(capfd.readouterr().out.split())
    assert said.count("windows-pipeline correct flights --from 2013-01-04 --cause TEXT") == 1


def test_a_command_ends_with_its_reasons_each_once() -> None:
    with pytest.raises(FailedExit) as ended:
        end_failed(["a: x failed", "b waits", "a: x failed"])
    assert (ended.value.exit_code, ended.value.reason) == (1, "a: x failed; b waits")
    end_failed([])
