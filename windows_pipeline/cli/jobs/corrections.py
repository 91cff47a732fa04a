"""Changes published results, and records each change: `correct`."""

from __future__ import annotations

from datetime import date

import typer

from windows_pipeline.cli.jobs.reports import Report, report
from windows_pipeline.cli.session import session
from windows_pipeline.cli.terminal.console import CONSOLE
from windows_pipeline.cli.terminal.printed import print_checks
from windows_pipeline.cli.terminal.progress import Status
from windows_pipeline.config import Pipeline
from windows_pipeline.jobs.correction.run import CorrectionResult, correct
from windows_pipeline.settings import Settings


def correct_published(
    context: typer.Context,
    status: Status,
    settings: Settings,
    pipeline: Pipeline,
    windows_name: str,
    first: date,
    last: date | None,
    cause: str,
) -> None:
    """Corrects the results of some days; exit status 1 if a check failed."""
    spark = session(context, settings)
    status.update(f"{pipeline.name} {windows_name}: looking for what to correct")
    done = correct(
        spark, pipeline, windows_name, settings, first, last, cause, CONSOLE.print,
        begin=lambda table: status.update(f"{table}: recomputing"),
    )  # fmt: skip
    for table, result in done.results:
        print_checks((table, check) for check in result.checks if not check.passed)
    report(pipeline, settings, spark, lambda opened: _show(opened, windows_name, done, cause))
    if not done.published:
        CONSOLE.print("NOT published; fix what the checks found, then run the same command again")
        raise typer.Exit(1)
    for day, corrected in done.by_day.items():
        CONSOLE.print(f"{day}: {corrected}")
    of_windows = f"{pipeline.name} {windows_name}"
    if done.number is None:
        CONSOLE.print(f"{of_windows}: nothing differs from the published results")
    else:
        CONSOLE.print(f"{of_windows}: correction {done.number} is published")
    checks = (check for _, result in done.results for check in result.checks)
    if any(not found.passed and not found.check.is_warning for found in checks):
        raise typer.Exit(1)


def _show(opened: Report, windows_name: str, done: CorrectionResult, cause: str) -> None:
    opened.correction(windows_name, done, cause)
    opened.end()
