"""What one large day takes, step by step, and what it leaves: `python -m benchmarks.large_day`."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table as Grid

from benchmarks.landed import KEYS, STEP_US, WINDOW_MS, declared, land
from benchmarks.process_tree import PeakMemory, processor_s
from windows_pipeline.compat.spark_session import start_session
from windows_pipeline.jobs import Job, RawEventsJob, run_job
from windows_pipeline.jobs.days.chain import window_jobs
from windows_pipeline.storage.tables import tables_of

_DAY_US = 86_400_000_000

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command()
def main(
    files: Annotated[int, typer.Option(help="How many files land.", min=1)] = 10,
    records: Annotated[int, typer.Option(help="Records of a file.", min=1)] = 1_000_000,
    ranges: Annotated[int, typer.Option(help="The setting arrival_ranges.", min=1)] = 8,
    keys: Annotated[int, typer.Option(help="How many keys they are of.", min=1)] = KEYS,
) -> None:
    """Runs the whole chain, with its checks, on one day; windows of 10 s."""
    console = Console()
    # About 100 records a window, or as few as a day's time has room for.
    step_us = max(1, min(STEP_US * KEYS // keys, _DAY_US // (files * records)))
    grid = Grid("step", "seconds", "processor s", "most GB", "rows", "MB")
    with tempfile.TemporaryDirectory() as folder:
        busy = 3 * WINDOW_MS * 1_000 // (2 * step_us * keys)
        settings, pipeline, landing = declared(Path(folder), "day", files, ranges, busy)
        for number in range(files):
            land(landing, number, records, keys=keys, step_us=step_us)
        console.print(f"landed: {files * records:,} records, {_megabytes(landing):,.0f} MB")
        spark = start_session(settings)
        spark.sparkContext.setLogLevel("ERROR")
        tables = tables_of(pipeline, settings.warehouse)
        jobs: list[Job] = [RawEventsJob(tables, settings)]
        jobs += window_jobs(tables, "sliding", settings)
        for job in jobs:
            began, spent_s = time.monotonic(), processor_s(os.getpid())
            with PeakMemory(os.getpid(), sys.maxsize, lambda: None) as memory:
                result = run_job(job, spark, [pipeline.partitions.start])
            if not result.published:
                raise RuntimeError(f"{job.tables[0].name}: a check failed, nothing was published")
            cells = (
                f"{time.monotonic() - began:,.1f}",
                f"{processor_s(os.getpid()) - spent_s:,.1f}",
                f"{memory.peak_bytes / 1e9:.1f}",
            )
            for table in job.tables:
                rows = sum(result.rows[table.name].values())
                size = _megabytes(Path(table.location))
                grid.add_row(table.name, *cells, f"{rows:,}", f"{size:,.0f}")
                cells = ("", "", "")
        spark.stop()
    console.print(grid)


def _megabytes(folder: Path) -> float:
    return sum(one.stat().st_size for one in folder.rglob("*") if one.is_file()) / 1e6


if __name__ == "__main__":
    app()
