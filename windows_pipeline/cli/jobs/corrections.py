"""Changes published results, and records each change: `correct`."""

from __future__ import annotations

from datetime import date

import typer

from windows_pipeline.cli.failures import end_failed, failed_rules, rules_of_jobs
from windows_pipeline.cli.jobs.recorders import recording
from windows_pipeline.cli.session import session
from windows_pipeline.cli.terminal.console import CONSOLE
from windows_pipeline.cli.terminal.printed import print_checks, say
from windows_pipeline.cli.terminal.progress import Status
from windows_pipeline.config import Pipeline
from windows_pipeline.jobs.correction.run import CorrectionResult, correct, plan_corrections
from windows_pipeline.jobs.days.runs import changed_since
from windows_pipeline.settings import Settings
from windows_pipeline.storage.tables import tables_of


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
    tables = tables_of(pipeline, settings.warehouse, grace_may_differ=True)
    status.update(f"{pipeline.name}: looking for what to correct")
    # All can be corrected, or none is.
    names = plan_corrections(spark, tables, settings, first, last, cause, windows_name)
    for text in changed_since(spark, tables, settings, first, last):
        say("warning", text)
    failed: list[str] = []
    with recording(context, tables, settings, spark) as noted:
        noted.begin()
        for name in names:
            done = correct(
                spark, tables, name, settings, first, last, cause, CONSOLE.print,
                begin=lambda table: status.update(f"{table}: recomputing"),
            )  # fmt: skip
            noted.corrections.append((name, done, cause))
            failed += failed_rules(rules_of_jobs(done.results))
            _print_corrected(f"{pipeline.name} {name}", done)
            if not done.published:
                end_failed([*failed, f"the correction of {name} is not published"])
    end_failed(failed)


def _print_corrected(of_windows: str, done: CorrectionResult) -> None:
    """Prints what a correction did."""
    for table, result in done.results:
        print_checks((table, check) for check in result.checks if not check.passed)
    if not done.published:
        CONSOLE.print("NOT published; fix what the checks found, then run the same command again")
        return
    for day, corrected in done.by_day.items():
        CONSOLE.print(f"{day}: {corrected}")
    if done.number is None:
        CONSOLE.print(f"{of_windows}: nothing differs from the published results")
    else:
        CONSOLE.print(f"{of_windows}: correction {done.number} is published")
