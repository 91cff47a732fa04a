"""Writes a page of HTML about a pipeline: `report`.

The command starts Spark only if the severity of silences depends on how long they lasted.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from windows_pipeline.cli.arguments import (
    FirstDay,
    LastDay,
    PipelineName,
    declared,
    parsed_days,
)
from windows_pipeline.cli.session import begin
from windows_pipeline.cli.terminal.console import CONSOLE
from windows_pipeline.cli.terminal.progress import Status

if TYPE_CHECKING:
    from windows_pipeline.config import Pipeline
    from windows_pipeline.report.silences import SilenceSeverities
    from windows_pipeline.settings import Settings

_KIB = 1024


def report(
    context: typer.Context,
    pipeline: PipelineName,
    first: FirstDay = None,
    last: LastDay = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", metavar="FILE", help="The file; PIPELINE.html if left out."),
    ] = None,
) -> None:
    """Writes a page of HTML about a pipeline: episodes, windows around them, late records, tables.

    The page works offline, without Dagster. An existing file is replaced.
    """
    days = parsed_days(first, last)
    settings, found = declared(pipeline)
    file = Path(f"{found.name}.html") if output is None else output
    severities = _silence_severities(context, settings, found)
    with Status(CONSOLE, f"{pipeline}: reading"):
        from windows_pipeline.report.gather import read_report
        from windows_pipeline.report.page import report_page

        read = read_report(found, settings.warehouse, *days, severities)
        text = report_page(read, datetime.now(UTC))
    content = text.encode()
    try:
        file.write_bytes(content)
    except OSError as error:
        if file.parent.is_dir() and not file.is_dir():
            raise
        raise ValueError(
            f"--output: {file} must be a file in a folder that exists, but is not "
            f"({error.strerror}); name another file"
        ) from None
    CONSOLE.print(f"{file}: written, {len(content) / _KIB:,.0f} KiB", soft_wrap=True)


def _silence_severities(
    context: typer.Context, settings: Settings, pipeline: Pipeline
) -> dict[str, SilenceSeverities]:
    """The severities of silences by definition, where only Spark can compute them."""
    from windows_pipeline.report.silences import length_decides

    names = [name for name, windows in pipeline.windows.items() if length_decides(windows)]
    if not names:
        return {}
    begin(context, f"{pipeline.name}: computing how bad silences are")
    from windows_pipeline.cli.questions.episodes import silence_severities

    return {name: silence_severities(context, settings, pipeline, name) for name in names}
