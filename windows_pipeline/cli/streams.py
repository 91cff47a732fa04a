"""`stream`: a pipeline that follows its source."""

from __future__ import annotations

from typing import Annotated

import typer

from windows_pipeline.cli.arguments import PipelineName, opened
from windows_pipeline.cli.printed import CONSOLE, PrintedBatches, print_skipped
from windows_pipeline.jobs import RawEventsJob
from windows_pipeline.jobs.days.chain import skipped
from windows_pipeline.streaming import run_stream
from windows_pipeline.windows.durations import duration_ms


def stream(
    context: typer.Context,
    pipeline: PipelineName,
    every: Annotated[
        str | None,
        typer.Option(help="Look for more so often ('10 seconds'), until interrupted."),
    ] = None,
) -> None:
    """Ingests what came since the last run, and computes what follows; once, or on and on.

    Exit status 1 where more records of the run are rejected or late than the pipeline's limits, or
    an alert rule reads an aggregate that can't be computed.
    """
    if every is not None:
        # Spark knows fewer names of units than the pipelines' durations have.
        every = f"{duration_ms(every, '--every')} milliseconds"
    settings, found, spark = opened(context, pipeline)
    if found.source.is_landed:
        landing = RawEventsJob(found, settings).landing
        print_skipped(pipeline, skipped(found, landing))
    batches = PrintedBatches(found)
    try:
        run_stream(spark, found, settings, every=every, on_batch=batches.add)
        if not batches.came:
            CONSOLE.print(f"{pipeline}: nothing new has come")
    except KeyboardInterrupt:
        CONSOLE.print(f"stopped; to go on: windows-pipeline stream {pipeline}")
    if batches.went_wrong:
        raise typer.Exit(1)
