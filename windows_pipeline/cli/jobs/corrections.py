"""Changes published results, and records each change: `correct`."""

from __future__ import annotations

from datetime import date
from functools import partial

import typer

from windows_pipeline.cli.jobs.reports import Report, report
from windows_pipeline.cli.session import session
from windows_pipeline.cli.terminal.console import CONSOLE
from windows_pipeline.cli.terminal.printed import print_checks, say
from windows_pipeline.cli.terminal.progress import Status
from windows_pipeline.config import Pipeline
from windows_pipeline.jobs.correction.run import CorrectionResult, correct, plan_corrections
from windows_pipeline.jobs.days.runs import changed_since
from windows_pipeline.settings import Settings


def correct_published(
    context: typer.Context,
    status: Status,
    settings: Settings,
    pipeline: Pipeline,
    windows_name: str | None,
    first: date,
    last: date | None,
    cause: str,
) -> None:
    """Corrects the results of some days, of one definition or all; status 1 if a check failed."""
    spark = session(context, settings)
    status.update(f"{pipeline.name}: looking for what to correct")
    # All can be corrected, or none is.
    names = plan_corrections(spark, pipeline, settings, first, last, cause, windows_name)
    for text in changed_since(spark, pipeline, settings, first, last):
        say("warning", text)
    are_well = True
    for name in names:
        done = correct(
            spark, pipeline, name, settings, first, last, cause, CONSOLE.print,
            begin=lambda table: status.update(f"{table}: recomputing"),
        )  # fmt: skip
        report(pipeline, settings, spark, partial(_take, name, done, cause))
        are_well = _print_corrected(f"{pipeline.name} {name}", done) and are_well
    if not are_well:
        raise typer.Exit(1)


def _print_corrected(of_windows: str, done: CorrectionResult) -> bool:
    """Prints what a correction did.

    Returns:
        Whether no check failed, warnings aside.

    Raises:
        typer.Exit: It is not published.
    """
    for table, result in done.results:
        print_checks((table, check) for check in result.checks if not check.passed)
    if not done.published:
        CONSOLE.print("NOT published; fix what the checks found, then run the same command again")
        raise typer.Exit(1)
    for day, corrected in done.by_day.items():
        CONSOLE.print(f"{day}: {corrected}")
    if done.number is None:
        CONSOLE.print(f"{of_windows}: nothing differs from the published results")
    else:
        CONSOLE.print(f"{of_windows}: correction {done.number} is published")
    checks = (check for _, result in done.results for check in result.checks)
    return all(found.passed or found.check.is_warning for found in checks)


def _take(windows_name: str, done: CorrectionResult, cause: str, opened: Report) -> None:
    opened.correction(windows_name, done, cause)
