"""What to do if a table's rules fail, with the commands and the jobs that do it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import date

from windows_pipeline.checks.run import CheckResult
from windows_pipeline.checks.table_rules import ALERTS_NEVER_CHANGED, FINAL_NEVER_CHANGED
from windows_pipeline.config import Pipeline

NextStep = Callable[[date], str]
"""What to do about a day on which rules fail, with the command."""

_WHAT_WOULD_CHANGE = {FINAL_NEVER_CHANGED: "final windows", ALERTS_NEVER_CHANGED: "alerts"}
"""The results that only a correction changes, by the rule that refuses a run's change of them."""


def once_published(pipeline: Pipeline, correct: str = "") -> NextStep:
    """The next step where the failing rows are in the table.

    Args:
        pipeline: The pipeline.
        correct: How to change final windows, where that is said elsewhere.
    """
    name = pipeline.name
    changed = f"If the rule is wrong, change it, then: windows-pipeline check {name}"

    def text(day: date) -> str:
        how = correct or to_correct(name, day)
        if not pipeline.source.by_days:
            return (
                "The rows are published, as a stream checks them afterwards. If raw records were "
                f"changed on purpose, {how}. {changed}"
            )
        return (
            "The rows are published. If the day's files are wrong, mend them, then: "
            f"{run_again(pipeline, [day])}. Where that would change final windows, "
            f"{how}. {changed}"
        )

    return text


def once_blocked(
    pipeline: Pipeline, again: str, results: Iterable[CheckResult], correct: str = ""
) -> NextStep:
    """The next step where nothing is published.

    Args:
        pipeline: The pipeline.
        again: The command that does again what failed.
        results: The results of the checks.
        correct: How to change final windows, where that is said elsewhere.
    """
    refused = {found.check.name for found in results if not found.passed}
    unchanged = "Nothing was published, and the table is unchanged"
    what = " and ".join(what for rule, what in _WHAT_WOULD_CHANGE.items() if rule in refused)
    if not what:
        return lambda _: f"{unchanged}. Fix the cause, then: {again}"
    return lambda day: (
        f"{unchanged}, as {what} would change. If they are to change, "
        f"{correct or to_correct(pipeline.name, day)}. If not, mend the day's files, then: {again}"
    )


def failing_days(results: Iterable[CheckResult], days: Sequence[date]) -> Sequence[date]:
    """The days on which rules fail that keep a job from publishing.

    Args:
        results: The results of the checks.
        days: The days of the job, which all fail if no failing row has a day.
    """
    failed = [found for found in results if not found.passed and found.check.blocking]
    return sorted({day for found in failed for day in found.failing_by_arrival_unit}) or days


def run_again(pipeline: Pipeline, days: Sequence[date]) -> str:
    """The command that computes days again."""
    return f"windows-pipeline run {pipeline.name} --from {min(days)} --to {max(days)}"


def to_correct(pipeline: str, day: date) -> str:
    """How to change published results of all definitions from a day on."""
    return (
        f"run the job {pipeline}_correction, or: windows-pipeline correct {pipeline} "
        f"--from {day} --cause TEXT"
    )
