"""Shows how far a pipeline's tables are, without Spark: `status`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import date, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from windows_pipeline.cli.arguments import PipelineName, declared
from windows_pipeline.cli.terminal.console import CONSOLE
from windows_pipeline.cli.terminal.printed import print_changed
from windows_pipeline.cli.terminal.progress import Status
from windows_pipeline.sources.file_changes import ChangedFile
from windows_pipeline.text.instants import instant_of, time_text
from windows_pipeline.text.values import as_json

if TYPE_CHECKING:  # read when the command runs, so that `--help` answers at once
    from windows_pipeline.config import Pipeline
    from windows_pipeline.query.state import PipelineState


def status(
    pipeline: PipelineName,
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON; times are UTC.")] = False,
) -> None:
    """Says how far tables are closed, what waits or changed, and how many rows there are.

    Exit status 1 where something waits or is unfinished, or a file of an ingested day changed.
    """
    settings, found = declared(pipeline)
    with Status(CONSOLE, f"{pipeline}: reading"):
        from windows_pipeline.query.state import pipeline_state
        from windows_pipeline.query.tables.changed_days import changed_files
        from windows_pipeline.sources.landing import landing_of
        from windows_pipeline.storage.catalog import specs_of

        tables = specs_of(found, settings.warehouse)
        state, changed = pipeline_state(tables), list[ChangedFile]()
        if found.source.by_days:
            changed = changed_files(tables, landing_of(found.source, settings.landing))
    if as_json:
        typer.echo(json.dumps(_as_json(found, state, changed), indent=1))
    else:
        _print(found, state, changed)
    if state.waits or changed:
        raise typer.Exit(1)


def _print(pipeline: Pipeline, state: PipelineState, changed: Sequence[ChangedFile]) -> None:
    name, command = pipeline.name, "run" if pipeline.source.by_days else "stream"
    if state.through is None:
        CONSOLE.print(f"{name}: nothing is ingested; to begin: windows-pipeline {command} {name}")
    else:
        watermark_ms = state.watermark_ms
        watermark = "none" if watermark_ms is None else f"{time_text(watermark_ms)} UTC"
        CONSOLE.print(f"{name}: ingested through {state.through}; watermark {watermark}")
    for windows in state.windows:
        if windows.through is not None:
            close_ms = windows.close_time_ms
            closed = (
                "nothing is closed"
                if close_ms is None
                else f"closed before {time_text(close_ms)} UTC"
            )
            CONSOLE.print(f"{name} {windows.name}: computed through {windows.through}; {closed}")
        if windows.lacking:
            CONSOLE.print(
                f"{name} {windows.name}: {_days(windows.lacking)}: ingested and not computed; "
                f"if no run is active: windows-pipeline run {name}. If the run refuses to change "
                f"final windows: windows-pipeline correct {name} --from {windows.lacking[0]} "
                "--cause TEXT"
            )
    if state.blocked:
        CONSOLE.print(
            f"{name}: {_days(state.blocked)}: blocked by a missing day: no window closes past "
            f"{state.missing}. Land it, then: windows-pipeline run {name}"
        )
    for unfinished in state.unfinished:
        CONSOLE.print(f"{name}: {unfinished.what}; to resume: {unfinished.command}")
    print_changed(name, changed)
    _print_tables(state)


def _print_tables(state: PipelineState) -> None:
    width = max(len(table.name) for table in state.tables)
    for table in state.tables:
        if table.version is None:
            CONSOLE.print(f"  {table.name:{width}}  does not exist yet")
            continue
        number = "?" if table.rows is None else f"{table.rows:,}"
        noun = "row " if table.rows == 1 else "rows"
        through = "" if table.through is None else f"  through {table.through}"
        CONSOLE.print(f"  {table.name:{width}}  {number:>13} {noun}{through}")


def _as_json(
    pipeline: Pipeline, state: PipelineState, changed: Sequence[ChangedFile]
) -> dict[str, Any]:
    return {
        "pipeline": pipeline.name,
        "through": as_json(state.through),
        "watermark": as_json(_instant(state.watermark_ms)),
        "missing": as_json(state.missing),
        "blocked": [str(day) for day in state.blocked],
        "windows": [
            {
                "name": windows.name,
                "through": as_json(windows.through),
                "closed_before": as_json(_instant(windows.close_time_ms)),
                "lacking": [str(day) for day in windows.lacking],
            }
            for windows in state.windows
        ],
        "unfinished": [vars(unfinished) for unfinished in state.unfinished],
        "changed": [
            {"day": str(file.day), "file": file.name, "change": file.change} for file in changed
        ],
        "tables": [
            {
                "name": table.name,
                "rows": table.rows,
                "version": table.version,
                "through": as_json(table.through),
            }
            for table in state.tables
        ],
    }


def _days(days: Sequence[date]) -> str:
    if len(days) == 1:
        return f"1 day, {days[0]}"
    return f"{len(days):,} days, {days[0]} to {days[-1]}"


def _instant(ms: int | None) -> datetime | None:
    return None if ms is None else instant_of(ms)
