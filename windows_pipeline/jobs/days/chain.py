"""A pipeline's jobs in order, and rebuilding what follows an old definition."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta

from pyspark.sql import SparkSession

from windows_pipeline.arrival.log import is_mixed, read_log
from windows_pipeline.arrival.stored_watermark import store_decisions
from windows_pipeline.config import Pipeline
from windows_pipeline.jobs.alerts import AlertsJob
from windows_pipeline.jobs.correction.marker import forget_corrections
from windows_pipeline.jobs.days.computed import noted_days
from windows_pipeline.jobs.final_windows import FinalWindowsJob
from windows_pipeline.jobs.firings import FiringsJob
from windows_pipeline.jobs.job import Job, JobResult, run_job
from windows_pipeline.jobs.keyed_windows import KeyedWindowsJob
from windows_pipeline.jobs.raw_events import RawEventsJob
from windows_pipeline.jobs.unfinished_batch import BatchUnfinishedError, require_finished_batch
from windows_pipeline.settings import Settings
from windows_pipeline.sources.landed_files import landed_days, skipped_names
from windows_pipeline.storage.catalog import source_tables
from windows_pipeline.storage.table import Table

STEPS = ("raw_events", "keyed_windows", "final_windows", "alerts", "firings")


def window_jobs(pipeline: Pipeline, windows_name: str, settings: Settings) -> list[Job]:
    """The jobs of one window definition, in order."""
    of_windows = (pipeline, windows_name, settings)
    jobs: list[Job] = [
        KeyedWindowsJob(*of_windows),
        FinalWindowsJob(*of_windows),
        AlertsJob(*of_windows),
    ]
    if pipeline.windows[windows_name].trigger is not None:
        jobs.append(FiringsJob(*of_windows))
    return jobs


def rebuild(
    spark: SparkSession,
    pipeline: Pipeline,
    settings: Settings,
    from_step: str | None = None,
    said: Callable[[str], None] = lambda _: None,
) -> Iterator[tuple[str, JobResult]]:
    """Empties the tables that follow an old definition and computes them anew.

    What is downstream of an emptied table is emptied with it. Old versions stay for time
    travel. Stopped half-way and run again, it ends in the same tables.

    Args:
        spark: The session.
        pipeline: The pipeline as it is now.
        settings: Where the tables and landed files lie.
        from_step: Rebuild from this one of `STEPS` on, changed or not.
        said: Is told what is about to happen.

    Yields:
        The name of each job's first table and what became of it.

    Raises:
        BatchUnfinishedError: The last micro-batch of its stream is not in all tables.
        ValueError: raw_events is stale, and the source can't be read by days again.
    """
    raw = RawEventsJob(pipeline, settings)
    from_raw = from_step == "raw_events" or _follows_other_definition(raw, spark)
    if from_raw and not pipeline.source.by_days:
        raise ValueError(
            f"{pipeline.name}: its source can't be read by days again; put the definition back, or "
            f"delete the pipeline's folder of tables, where the stream's checkpoint is, too, and "
            f"begin anew: windows-pipeline stream {pipeline.name}"
        )
    arrival_log = source_tables(pipeline, settings.warehouse).arrival_log
    of_windows = list(_stale_jobs(spark, pipeline, settings, from_step, every=from_raw))
    if arrival_log.exists(spark):
        jobs = [raw, *of_windows] if from_raw else of_windows
        _announce(spark, pipeline, settings, [table for job in jobs for table in job.tables])
        for notes in (job.notes for job in jobs):
            if notes is not None and notes.exists(spark):
                notes.withdraw(spark, sorted(noted_days(spark, notes)))
    if from_raw:
        days = days_landed(pipeline, raw.landing)
        yield from _anew(spark, raw, days, said)
    arrival_log.require(spark)
    # Other days are idle, where that changed.
    store_decisions(spark, arrival_log, pipeline.partitions.start, pipeline.source.idle_after)
    days = sorted({row.arrival_unit for row in read_log(spark, arrival_log)})
    for job in of_windows:
        yield from _anew(spark, job, days, said)


def _stale_jobs(
    spark: SparkSession,
    pipeline: Pipeline,
    settings: Settings,
    from_step: str | None,
    *,
    every: bool,
) -> Iterator[Job]:
    """The jobs of windows whose tables follow another definition, and those after them."""
    for name in pipeline.windows:
        stale = every
        # The last step is that of windows with a trigger only.
        for step, job in zip(STEPS[1:], window_jobs(pipeline, name, settings), strict=False):
            stale = stale or step == from_step or _follows_other_definition(job, spark)
            if stale:
                yield job


def _announce(
    spark: SparkSession, pipeline: Pipeline, settings: Settings, tables: list[Table]
) -> None:
    """Lets no micro-batch go on from here, then looks for one that began before.

    Where a table is emptied already, that was done by a rebuild which was stopped.

    Raises:
        BatchUnfinishedError: One did; the tables are as they were.
    """
    there = [table for table in tables if table.exists(spark)]
    full = [table for table in there if not table.is_emptied(spark)]
    # All: when one is filled again, others are still to be emptied.
    for table in full:
        table.mark_rebuilding(spark)
    log = read_log(spark, source_tables(pipeline, settings.warehouse).arrival_log)
    if is_mixed(log):  # no stream goes on from there
        return
    try:
        alone = len(full) < len(there)
        require_finished_batch(spark, pipeline, settings.warehouse, log, alone=alone)
    except BatchUnfinishedError:
        for table in full:
            table.mark_rebuilt(spark)
        raise


def days_landed(pipeline: Pipeline, landing: str) -> list[date]:
    """The days that have a folder, within the pipeline's partitions.

    A day after tomorrow (UTC) is none of them: it would keep all that comes before it waiting.

    Raises:
        FileNotFoundError: There is no folder of landed days.
    """
    return [day for day in landed_days(landing) if why_passed_over(pipeline, day) is None]


def skipped(pipeline: Pipeline, landing: str) -> list[str]:
    """What lies where files land and is not ingested, by name, and why.

    Raises:
        FileNotFoundError: There is no folder of landed days.
    """
    landed = landed_days(landing)
    reasons = ((day, why_passed_over(pipeline, day)) for day in landed)
    passed_over = [f"{day}: {why}" for day, why in reasons if why is not None]
    days = [day for day in landed if why_passed_over(pipeline, day) is None]
    return [*passed_over, *skipped_names(landing, days)]


def why_passed_over(pipeline: Pipeline, day: date) -> str | None:
    """Why a day that landed is not ingested; None if it is."""
    start, end = pipeline.partitions.start, pipeline.partitions.end
    if day < start:
        return f"before the pipeline's first day, {start}"
    if end is not None and day > end:
        return f"after the pipeline's last day, {end}"
    return "after tomorrow" if day > datetime.now(UTC).date() + timedelta(days=1) else None


def _follows_other_definition(job: Job, spark: SparkSession) -> bool:
    return any(table.is_stale(spark) for table in job.tables)


def _anew(
    spark: SparkSession, job: Job, days: list[date], said: Callable[[str], None]
) -> Iterator[tuple[str, JobResult]]:
    name = job.tables[0].name
    said(f"{name}: emptied; computing {len(days)} days anew")
    for table in job.tables:
        table.replace_by_empty(spark)
    if isinstance(job, FinalWindowsJob):
        job.own.corrections.replace_by_empty(spark)
        forget_corrections(spark, job.own.corrections)
        job.own.corrections.mark_rebuilt(spark)  # it is to be empty
    result = run_job(job, spark, days)
    if result.published:
        for table in job.tables:
            table.mark_rebuilt(spark)
    yield name, result
