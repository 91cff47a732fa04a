"""What to do if a table's rules fail, for the page of the check."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import date

from windows_pipeline.checks.run import CheckResult
from windows_pipeline.checks.table_rules import FINAL_NEVER_CHANGED
from windows_pipeline.config import Pipeline

NextStep = Callable[[date], str]
"""What to do about a day on which rules fail, with the command."""


def once_published(pipeline: Pipeline) -> NextStep:
    """The next step where the failing rows are in the table."""
    name = pipeline.name
    changed = f"If the rule is wrong, change it, then: windows-pipeline check {name}"

    def text(day: date) -> str:
        if not pipeline.source.by_days:
            return f"The rows are published, as a stream checks them afterwards. {changed}"
        return (
            "The rows are published. If the day's files are wrong, mend them, then: "
            f"{run_again(pipeline, [day])}. Where that would change final windows: "
            f"windows-pipeline correct {name} --from {day} --cause TEXT. {changed}"
        )

    return text


def once_blocked(pipeline: Pipeline, again: str, results: Iterable[CheckResult]) -> NextStep:
    """The next step where nothing is published.

    Args:
        pipeline: The pipeline.
        again: The command that does again what failed.
        results: The results of the checks.
    """
    refused = {found.check.name for found in results if not found.passed}
    unchanged = "Nothing was published, and the table is unchanged"
    if FINAL_NEVER_CHANGED not in refused:
        return lambda _: f"{unchanged}. Fix the cause, then: {again}"
    name = pipeline.name
    return lambda day: (
        f"{unchanged}, as final windows would change. If they are to change, run the job "
        f"{name}_correction, or: windows-pipeline correct {name} --from {day} --cause TEXT. "
        f"If not, mend the day's files, then: {again}"
    )


def run_again(pipeline: Pipeline, days: Sequence[date]) -> str:
    """The command that computes days again."""
    return f"windows-pipeline run {pipeline.name} --from {min(days)} --to {max(days)}"
