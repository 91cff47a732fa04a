"""What the command line prints."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Literal

from pyspark.sql import DataFrame
from rich import box
from rich.table import Table as Grid
from rich.text import Text

from windows_pipeline.jobs.day_runs import Waiting
from windows_pipeline.jobs.job import JobResult
from windows_pipeline.plain_console import PlainConsole, coloured, printable
from windows_pipeline.quality.validation import CheckResult
from windows_pipeline.tables.units import days_text

# A pipe has no width; rows must not be cut for it.
console = PlainConsole(width=None if sys.stdout.isatty() else 240)


def print_jobs(results: Iterable[tuple[str, JobResult]]) -> list[bool]:
    """Prints what became of each job, as it ends; returns whether each was published."""
    published = []
    for name, result in results:
        rows = ", ".join(f"{table} {sum(rows.values()):,}" for table, rows in result.rows.items())
        console.print(f"{name}: {'published' if result.published else 'NOT published'}; {rows}")
        print_checks((name, found) for found in result.checks if not found.passed)
        published.append(result.published)
    return published


def print_checks(results: Iterable[tuple[str, CheckResult]]) -> None:
    """Prints what checks found, those that failed with a few rows."""
    for name, result in results:
        mark = ("passed", "green") if result.passed else ("FAILED", "red")
        console.print(Text.assemble(printable(f"{name} {result.check.name}: "), mark))
        if not result.passed:
            console.print(f"  {result.check.description}; {result.failing_rows:,} rows, such as")
            for row in result.sample[:3]:
                console.print(f"  {row}")


def print_waiting(pipeline: str, waiting: Waiting) -> bool:
    """Prints which days are not computed so far, and the cure; returns whether there are any."""
    begun = [day for day in waiting.begun if day not in waiting.held_back]
    if begun:
        console.print(
            f"{pipeline}: {days_text(begun)}: begun and not ended; where no run goes on with that: "
            f"windows-pipeline run {pipeline}"
        )
    if waiting.held_back:
        console.print(
            f"{pipeline}: {days_text(waiting.held_back)}: held back, as nothing closes past "
            f"{waiting.missing}, which is missing; land it, then: windows-pipeline run {pipeline}"
        )
    return bool(begun or waiting.held_back)


def print_rows(rows: DataFrame, limit: int) -> None:
    """Prints rows as a grid, and whether there are more."""
    found = rows.limit(limit + 1).collect()
    grid = Grid(box=box.SIMPLE)
    for column in rows.columns:
        grid.add_column(column, no_wrap=True)
    for row in found[:limit]:
        grid.add_row(*(_text(value) for value in row))
    console.print(grid)
    if len(found) > limit:
        console.print(f"there are more; --limit {limit} were asked for")


def _text(value: object) -> str:
    if isinstance(value, datetime):  # collected in this machine's zone
        return value.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]
    return str(value)


def tell(what: Literal["error", "warning"], text: str) -> None:
    """Prints a line to standard error."""
    line = coloured(f"{what}:", {"error": "red", "warning": "yellow"}[what], f" {text}")
    PlainConsole(stderr=True).print(line, soft_wrap=True)
