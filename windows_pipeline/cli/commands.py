"""The commands that change or check tables: arguments, and work or the module that does it.

Nothing that takes long to import is imported here, so that help and refusals come at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from windows_pipeline.cli.arguments import (
    PipelineName,
    chosen_windows,
    declared,
    parsed_day,
    with_tables,
)
from windows_pipeline.cli.failures import end_failed, failed_rules, rules_of_jobs
from windows_pipeline.cli.session import begin, session
from windows_pipeline.cli.terminal.console import CONSOLE
from windows_pipeline.steps import Step

if TYPE_CHECKING:
    from windows_pipeline.config import Pipeline
    from windows_pipeline.settings import Settings


def check(context: typer.Context, pipeline: PipelineName) -> None:
    """Runs every check on the published tables; exit status 1 where one fails, or days wait.

    Names the steps that published nothing so far, such as those of a new definition.
    """
    settings, found = with_tables(pipeline)
    _require_definition(settings, found)
    status = begin(context, f"{pipeline}: starting Spark")
    from windows_pipeline.cli.jobs.days import check_tables

    check_tables(context, status, settings, found)


def run(
    context: typer.Context,
    pipeline: PipelineName,
    first: Annotated[
        str | None,
        typer.Option("--from", metavar="DAY", help="The first day; that of --to if left out."),
    ] = None,
    last: Annotated[
        str | None,
        typer.Option("--to", metavar="DAY", help="The last day; that of --from if left out."),
    ] = None,
) -> None:
    """Ingests landed days and computes their results; by default days that are new or wait."""
    asked = [
        parsed_day(option, text) for option, text in (("--from", first), ("--to", last)) if text
    ]
    settings, found = declared(pipeline)
    if not found.source.by_days:
        raise ValueError(
            f"{pipeline} follows its source and has no days to run; use: "
            f"windows-pipeline stream {pipeline}"
        )
    _require_definition(settings, found)
    status = begin(context, f"{pipeline}: starting Spark")
    from windows_pipeline.cli.jobs.days import run_landed
    from windows_pipeline.storage.writer_lock import writing

    with writing(found, settings.warehouse):
        run_landed(context, status, settings, found, asked)


def rebuild(
    context: typer.Context,
    pipeline: PipelineName,
    from_step: Annotated[
        Step | None, typer.Option("--from", help="Rebuild from this table on, changed or not.")
    ] = None,
) -> None:
    """Recomputes the tables that follow an old definition, and what depends on them."""
    settings, found = with_tables(pipeline)
    status = begin(context, f"{pipeline}: starting Spark")
    from windows_pipeline.cli.jobs.recorders import recording
    from windows_pipeline.cli.terminal.printed import print_jobs
    from windows_pipeline.jobs.days.chain import rebuild as rebuilt
    from windows_pipeline.storage.tables import tables_of
    from windows_pipeline.storage.writer_lock import writing

    with writing(found, settings.warehouse):
        spark, tables = session(context, settings), tables_of(found, settings.warehouse)
        status.update(f"{pipeline}: looking for tables that follow an old definition")
        with recording(context, tables, settings, spark) as done:

            def report(text: str) -> None:
                done.begin()
                status.update(text)
                CONSOLE.print(text)

            results = rebuilt(spark, tables, settings, from_step, report)
            again = f"windows-pipeline rebuild {pipeline}"
            print_jobs(results, found, lambda _: again, done.jobs)
        if not done.jobs:
            CONSOLE.print(f"{pipeline}: every table follows {pipeline}'s definition; nothing to do")
        end_failed(failed_rules(rules_of_jobs(done.jobs)))


def stream(
    context: typer.Context,
    pipeline: PipelineName,
    every: Annotated[
        str | None,
        typer.Option(help="Look for more so often ('10 seconds'), until interrupted."),
    ] = None,
) -> None:
    """Ingests the records since the last run and computes their results; once, or repeatedly.

    At its end, the command checks the days that it changed; with --every it checks nothing.

    Exit status 1 where a check fails, more records of the run are rejected or late than the
    pipeline's limits allow, a file gave no record, or an alert rule reads an aggregate that can't
    be computed.
    """
    if every is not None:
        from windows_pipeline.windows.durations import duration_ms

        if duration_ms(every, "--every") < 0:
            raise ValueError(f"--every: {every!r} must not be negative; write '0 seconds' or more")
    settings, found = declared(pipeline)
    _require_definition(settings, found)
    status = begin(context, f"{pipeline}: starting Spark")
    from windows_pipeline.cli.jobs.streams import follow
    from windows_pipeline.storage.writer_lock import writing

    with writing(found, settings.warehouse):
        follow(context, status, settings, found, every)


def correct(
    context: typer.Context,
    pipeline: PipelineName,
    first: Annotated[
        str, typer.Option("--from", metavar="DAY", help="The first arrival day to compute again.")
    ],
    cause: Annotated[str, typer.Option(help="Why; each row of corrections has it.")],
    last: Annotated[
        str | None,
        typer.Option("--to", metavar="DAY", help="The last one; the last published if left out."),
    ] = None,
    windows: Annotated[
        str | None, typer.Option("--windows", help="A window definition; all if left out.")
    ] = None,
) -> None:
    """Corrects published results of days whose raw records, or whose grace, were changed.

    Without --windows it corrects all definitions, once all of them can be corrected.
    """
    from_day = parsed_day("--from", first)
    to_day = None if last is None else parsed_day("--to", last)
    settings, found = with_tables(pipeline)
    name = None if windows is None else chosen_windows(found, windows)
    status = begin(context, f"{pipeline}: starting Spark")
    from windows_pipeline.cli.jobs.corrections import correct_published
    from windows_pipeline.storage.writer_lock import writing

    with writing(found, settings.warehouse):
        correct_published(context, status, settings, found, name, from_day, to_day, cause)


def forget(
    context: typer.Context,
    pipeline: PipelineName,
    day: Annotated[str, typer.Argument(metavar="DAY", help="The arrival day: 2013-03-08.")],
) -> None:
    """Removes an ingested day again, as long as no final window depends on it."""
    settings, found = with_tables(pipeline)
    forgotten = parsed_day("DAY", day)
    if not found.source.by_days:
        raise ValueError(
            f"{pipeline} follows its source as a stream, and only the days of landed files can be "
            f"removed; to compute all tables again: windows-pipeline rebuild {pipeline}"
        )
    begin(context, f"{pipeline}: forgetting {forgotten}")
    from windows_pipeline.jobs.days.chain import days_landed
    from windows_pipeline.jobs.days.forget import forget_day
    from windows_pipeline.sources.landing import landing_of
    from windows_pipeline.storage.writer_lock import writing

    with writing(found, settings.warehouse):
        forget_day(session(context, settings), found, settings, forgotten)
    CONSOLE.print(f"{pipeline}: {forgotten} is in no table any more")
    landing = landing_of(found.source, settings.landing)
    if forgotten in days_landed(found, landing):
        folder = f"{landing.path}/{forgotten}"
        CONSOLE.print(f"  its folder is still there, and the next run ingests it: {folder}")


def maintain(context: typer.Context, pipeline: PipelineName) -> None:
    """Joins small files and deletes those that no version needs any more; rows stay."""
    settings, found = with_tables(pipeline)
    status = begin(context, f"{pipeline}: starting Spark")
    from windows_pipeline.storage.maintenance import maintain as maintained
    from windows_pipeline.storage.tables import tables_of

    spark = session(context, settings)
    for table in tables_of(found, settings.warehouse).written:
        status.update(f"{table.name}: joining and deleting files")
        done = maintained(spark, table) if table.exists(spark) else "the table does not exist yet"
        CONSOLE.print(f"{table.name}: {done}")


def _require_definition(settings: Settings, pipeline: Pipeline) -> None:
    """Refuses tables of another definition at once, as a person who edits the file waits."""
    from windows_pipeline.query.state import require_definition
    from windows_pipeline.storage.catalog import specs_of

    require_definition(specs_of(pipeline, settings.warehouse))
