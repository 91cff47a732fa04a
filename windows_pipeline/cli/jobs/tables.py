"""Changes whole tables, or a day of all of them: `rebuild`, `forget` and `maintain`."""

from __future__ import annotations

from datetime import date

import typer

from windows_pipeline.cli.failures import end_failed, failed_rules, rules_of_jobs
from windows_pipeline.cli.jobs.recorders import recording
from windows_pipeline.cli.session import session
from windows_pipeline.cli.terminal.console import CONSOLE
from windows_pipeline.cli.terminal.printed import print_jobs
from windows_pipeline.cli.terminal.progress import Status
from windows_pipeline.config import Pipeline
from windows_pipeline.jobs import RawEventsJob
from windows_pipeline.jobs.days.chain import days_landed, rebuild
from windows_pipeline.jobs.days.forget import forget_day
from windows_pipeline.settings import Settings
from windows_pipeline.storage.maintenance import maintain
from windows_pipeline.storage.tables import all_tables


def rebuild_stale(
    context: typer.Context,
    status: Status,
    settings: Settings,
    pipeline: Pipeline,
    from_step: str | None,
) -> None:
    """Rebuilds tables; exit status 1 if a table was not published, or a check failed."""

    def report(text: str) -> None:
        status.update(text)
        CONSOLE.print(text)

    spark = session(context, settings)
    status.update(f"{pipeline.name}: looking for tables that follow an old definition")
    results = rebuild(spark, pipeline, settings, from_step, report)
    again = f"windows-pipeline rebuild {pipeline.name}"
    with recording(context, pipeline, settings, spark) as done:
        print_jobs(results, pipeline, lambda _: again, done.jobs)
    if not done.jobs:
        CONSOLE.print(
            f"{pipeline.name}: every table follows {pipeline.name}'s definition; nothing to do"
        )
    end_failed(failed_rules(rules_of_jobs(done.jobs)))


def forget_ingested(
    context: typer.Context, settings: Settings, pipeline: Pipeline, day: date
) -> None:
    """Removes an ingested day."""
    spark = session(context, settings)
    forget_day(spark, pipeline, settings, day)
    CONSOLE.print(f"{pipeline.name}: {day} is in no table any more")
    landing = RawEventsJob(pipeline, settings).landing
    if day in days_landed(pipeline, landing):
        CONSOLE.print(f"  its folder is still there, and the next run ingests it: {landing}/{day}")


def maintain_tables(
    context: typer.Context, status: Status, settings: Settings, pipeline: Pipeline
) -> None:
    """Maintains each table of a pipeline that exists."""
    spark = session(context, settings)
    for table in all_tables(pipeline, settings.warehouse):
        status.update(f"{table.name}: joining and deleting files")
        done = maintain(spark, table) if table.exists(spark) else "the table does not exist yet"
        CONSOLE.print(f"{table.name}: {done}")
