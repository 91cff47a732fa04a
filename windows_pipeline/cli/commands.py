"""The commands that use Spark: their arguments, and which module does their work.

Only the standard library and typer are imported here, so that help and refusals come at once.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from windows_pipeline.cli.arguments import (
    PipelineName,
    WindowsName,
    chosen_windows,
    declared,
    parsed_day,
    with_tables,
)
from windows_pipeline.cli.session import begin
from windows_pipeline.cli.terminal.console import CONSOLE
from windows_pipeline.cli.terminal.progress import Status


class Step(StrEnum):
    """A step of the chain, named after its main table."""

    RAW_EVENTS = "raw_events"
    KEYED_WINDOWS = "keyed_windows"
    FINAL_WINDOWS = "final_windows"
    ALERTS = "alerts"
    FIRINGS = "firings"


def check(context: typer.Context, pipeline: PipelineName) -> None:
    """Runs every check on the published tables; exit status 1 where one fails, or days wait.

    Names the steps that published nothing so far, such as those of a new definition.
    """
    settings, found = with_tables(pipeline)
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
    from windows_pipeline.cli.jobs.tables import rebuild_stale
    from windows_pipeline.storage.writer_lock import writing

    with writing(found, settings.warehouse):
        rebuild_stale(context, status, settings, found, from_step)


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
    from windows_pipeline.cli.jobs.tables import forget_ingested
    from windows_pipeline.storage.writer_lock import writing

    with writing(found, settings.warehouse):
        forget_ingested(context, settings, found, forgotten)


def maintain(context: typer.Context, pipeline: PipelineName) -> None:
    """Joins small files and deletes those that no version needs any more; rows stay."""
    settings, found = with_tables(pipeline)
    status = begin(context, f"{pipeline}: starting Spark")
    from windows_pipeline.cli.jobs.tables import maintain_tables

    maintain_tables(context, status, settings, found)


def trace(
    context: typer.Context,
    pipeline: PipelineName,
    key: Annotated[
        str | None, typer.Argument(help="The window's key; of several columns, with commas.")
    ] = None,
    window_end: Annotated[
        str | None,
        typer.Argument(metavar="TIME", help="When it ends, or starts, as far as known; UTC."),
    ] = None,
    alert: Annotated[
        str | None,
        typer.Option(metavar="ID", help="The id of an alert, instead of KEY and TIME."),
    ] = None,
    windows: WindowsName = None,
    offset: Annotated[
        int | None, typer.Option(min=0, help="Of a window of rows: the offset of its row.")
    ] = None,
    day: Annotated[
        str | None, typer.Option(metavar="DAY", help="With --offset: the row's arrival day.")
    ] = None,
    partition: Annotated[
        str | None, typer.Option(metavar="NAME", help="With --offset: the row's source partition.")
    ] = None,
    limit: Annotated[int, typer.Option(min=1, help="How many records to print.")] = 50,
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON object.")] = False,
) -> None:
    """Shows an alert's window: its records, why it is final, and what was corrected.

    Name the window by the id of its alert, or by KEY and TIME.
    """
    if (alert is None) == (key is None or window_end is None) or (alert and key is not None):
        raise typer.BadParameter("name the window by KEY and TIME, or by --alert alone")
    if offset is None and (day is not None or partition is not None):
        raise typer.BadParameter("--day and --partition go with --offset; name it, too")
    if alert is not None and offset is not None:
        raise typer.BadParameter("--offset goes with KEY and TIME; an alert's id names the row")
    row_day = None if day is None else parsed_day("--day", day)
    settings, found = declared(pipeline)
    with Status(CONSOLE, f"{pipeline}: reading"):
        from windows_pipeline.cli.questions.trace import NamedRow, trace_alert, trace_window

    if key is None or window_end is None:
        trace_alert(context, settings, found, alert or "", windows, limit, as_json=as_json)
        return
    name, row = chosen_windows(found, windows), NamedRow(partition, offset, row_day)
    trace_window(context, settings, found, name, key, window_end, row, limit, as_json=as_json)
