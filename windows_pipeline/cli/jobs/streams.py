"""Follows a pipeline's source: `stream`."""

from __future__ import annotations

import typer
from pyspark.sql import SparkSession

from windows_pipeline.cli.failures import FailedExit, end_failed, failed_rules
from windows_pipeline.cli.jobs.recorders import Recording, recording
from windows_pipeline.cli.session import invocation, session
from windows_pipeline.cli.terminal.console import CONSOLE
from windows_pipeline.cli.terminal.printed import (
    PrintedBatches,
    print_bad_files_of_stream,
    print_checks,
    print_published,
    print_skipped,
)
from windows_pipeline.cli.terminal.progress import Status
from windows_pipeline.config import Pipeline
from windows_pipeline.jobs.days.chain import checked_days, skipped
from windows_pipeline.settings import Settings
from windows_pipeline.sources.bad_files import bad_file_in
from windows_pipeline.sources.landing import landing_of
from windows_pipeline.storage.tables import PipelineTables, tables_of
from windows_pipeline.streaming import BatchResult, run_stream
from windows_pipeline.text.counts import counted


def follow(
    context: typer.Context,
    status: Status,
    settings: Settings,
    pipeline: Pipeline,
    every: str | None,
) -> None:
    """Runs a pipeline's stream: once, or until interrupted if `every` is a duration."""
    pipeline.source.require_variables()
    spark, tables = session(context, settings), tables_of(pipeline, settings.warehouse)
    if pipeline.source.is_landed:
        print_skipped(
            pipeline.name, skipped(pipeline, landing_of(pipeline.source, settings.landing))
        )
    status.update(f"{pipeline.name}: waiting for the first micro-batch")
    batches = PrintedBatches(pipeline)
    ended: list[BatchResult] = []

    def add(result: BatchResult) -> None:
        batches.add(result)
        if every is None:
            done.begin()
            ended.append(result)
        else:
            with recording(context, tables, settings, spark) as at_once:
                at_once.batches.append(result)
            invocation(context).log.cut()
        status.update(
            f"{pipeline.name}: {counted(batches.number, 'micro-batch', 'micro-batches')} "
            f"with {counted(batches.accepted, 'record')}; looking for more"
        )

    with recording(context, tables, settings, spark) as done:
        try:
            run_stream(spark, tables, settings, every=every, on_batch=add)
            if not batches.number:
                CONSOLE.print(f"{pipeline.name}: nothing new has come")
        except Exception as error:
            bad = bad_file_in(error)
            if bad is None:
                raise
            _check(status, settings, tables, spark, ended, done)
            print_bad_files_of_stream(pipeline.name, bad)
            done.failure = str(bad)
            raise FailedExit(3, done.failure) from None
        except KeyboardInterrupt:
            CONSOLE.print(f"stopped; to resume: windows-pipeline stream {pipeline.name}")
        failed = _check(status, settings, tables, spark, ended, done)
    end_failed([*failed, *batches.wrong])


def _check(
    status: Status,
    settings: Settings,
    tables: PipelineTables,
    spark: SparkSession,
    batches: list[BatchResult],
    done: Recording,
) -> list[str]:
    """Checks the days that micro-batches changed, and notes both.

    Returns:
        Which rules fail, warnings aside.
    """
    days = sorted({day for batch in batches for day in batch.arrival_units})
    if not days:
        return []
    status.update(f"{tables.pipeline.name}: checking {counted(len(days), 'day')}")
    checked = list(checked_days(spark, tables, settings, days))
    failed = [(name, found) for name, results in checked for found in results if not found.passed]
    print_checks(failed)
    print_published(tables.pipeline, failed)
    done.batches, done.checked = batches, checked
    return failed_rules(failed)
