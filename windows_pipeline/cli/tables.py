"""`rebuild`, `forget` and `maintain`: whole tables, or a day of all of them."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from windows_pipeline.cli.arguments import PipelineName, declared, opened, parsed_day, session
from windows_pipeline.cli.printed import CONSOLE, print_jobs
from windows_pipeline.cli.reports import reported
from windows_pipeline.jobs import RawEventsJob
from windows_pipeline.jobs.days.chain import days_landed
from windows_pipeline.jobs.days.chain import rebuild as rebuild_tables
from windows_pipeline.jobs.days.forget import forget_day
from windows_pipeline.storage.maintenance import maintain as maintain_table
from windows_pipeline.storage.tables import all_tables


class Step(StrEnum):
    """A step of the chain, named after its main table."""

    RAW_EVENTS = "raw_events"
    KEYED_WINDOWS = "keyed_windows"
    FINAL_WINDOWS = "final_windows"
    ALERTS = "alerts"
    FIRINGS = "firings"


def rebuild(
    context: typer.Context,
    pipeline: PipelineName,
    from_step: Annotated[
        Step | None, typer.Option("--from", help="Rebuild from this table on, changed or not.")
    ] = None,
) -> None:
    """Recomputes the tables that follow an old definition, and what depends on them."""
    settings, found, spark = opened(context, pipeline)
    results = rebuild_tables(spark, found, settings, from_step, CONSOLE.print)
    published = print_jobs(reported(results, found, settings, spark))
    if not published:
        CONSOLE.print(f"{pipeline}: every table follows {found.name}'s definition; nothing to do")
    if not all(published):
        raise typer.Exit(1)


def forget(
    context: typer.Context,
    pipeline: PipelineName,
    day: Annotated[str, typer.Argument(metavar="DAY", help="The arrival day: 2013-03-08.")],
) -> None:
    """Takes an ingested day away again, as long as no final window follows from it."""
    settings, found = declared(pipeline)
    forgotten = parsed_day("DAY", day)
    if not found.source.by_days:
        raise ValueError(f"{pipeline} follows its source, and has no days that could be taken away")
    spark = session(context, settings)
    forget_day(spark, found, settings, forgotten)
    CONSOLE.print(f"{pipeline}: {forgotten} is in no table any more")
    landing = RawEventsJob(found, settings).landing
    if forgotten in days_landed(found, landing):
        CONSOLE.print(
            f"  its folder is still there, and the next run ingests it: {landing}/{forgotten}"
        )


def maintain(context: typer.Context, pipeline: PipelineName) -> None:
    """Joins small files and deletes those that no version needs any more; rows stay."""
    settings, found, spark = opened(context, pipeline)
    for table in all_tables(found, settings.warehouse):
        done = (
            maintain_table(spark, table) if table.exists(spark) else "the table does not exist yet"
        )
        CONSOLE.print(f"{table.name}: {done}")
