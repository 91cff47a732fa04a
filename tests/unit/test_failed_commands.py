"""What people are notified of when a command fails: rules and days, and no values of records."""

from __future__ import annotations

from datetime import date

import pytest

from windows_pipeline.checks.run import Check, CheckResult
from windows_pipeline.cli.failures import FailedExit, end_failed, failed_rules

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


def test_a_command_ends_with_its_reasons_each_once() -> None:
    with pytest.raises(FailedExit) as ended:
        end_failed(["a: x failed", "b waits", "a: x failed"])
    assert (ended.value.exit_code, ended.value.reason) == (1, "a: x failed; b waits")
    end_failed([])
