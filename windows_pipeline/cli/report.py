"""Writes a page of HTML about a pipeline: `report`."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from windows_pipeline.cli.arguments import (
    FirstDay,
    LastDay,
    PipelineName,
    declared,
    parsed_days,
)
from windows_pipeline.cli.terminal.console import CONSOLE
from windows_pipeline.cli.terminal.progress import Status

_KIB = 1024


def report(
    pipeline: PipelineName,
    first: FirstDay = None,
    last: LastDay = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", metavar="FILE", help="The file; PIPELINE.html if left out."),
    ] = None,
) -> None:
    """Writes a page of HTML about a pipeline: episodes, windows around them, how late records came.

    The page works offline, without Dagster. An existing file is replaced.
    """
    days = parsed_days(first, last)
    settings, found = declared(pipeline)
    file = Path(f"{found.name}.html") if output is None else output
    with Status(CONSOLE, f"{pipeline}: reading"):
        from windows_pipeline.report.gather import read_report
        from windows_pipeline.report.page import report_page

        read = read_report(found, settings.warehouse, *days)
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
