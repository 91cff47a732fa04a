"""A pipeline's jobs in order, and the rebuild of tables that follow an old definition.

A rebuild computes and checks a table's rows before it replaces the old ones, in one transaction,
so that readers never see an empty table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, date, datetime, timedelta

from pyspark.sql import SparkSession

from windows_pipeline.arrival.log import is_mixed, read_log
from windows_pipeline.arrival.stored_watermark import store_watermarks
from windows_pipeline.checks.run import CheckResult
from windows_pipeline.config import Pipeline
from windows_pipeline.jobs.alerts import AlertsJob
from windows_pipeline.jobs.computed_days import computed_days_in, wholly_computed_days
from windows_pipeline.jobs.correction_marker import finished_number, forget_corrections
from windows_pipeline.jobs.final_windows import FinalWindowsJob
from windows_pipeline.jobs.firings import FiringsJob
from windows_pipeline.jobs.job import Job, JobResult, check_published, run_job
from windows_pipeline.jobs.keyed_windows import KeyedWindowsJob
from windows_pipeline.jobs.raw_events import RawEventsJob
from windows_pipeline.jobs.unfinished_batch import (
    BatchCameError,
    BatchUnfinishedError,
    last_batch,
    require_finished_batch,
    unfinished_logged_batch,
)
from windows_pipeline.settings import Settings
from windows_pipeline.sources.landed_files import require_readable_days
from windows_pipeline.sources.landing import LandingFolder
from windows_pipeline.steps import Step
from windows_pipeline.storage.files.damage import computes_again
from windows_pipeline.storage.table import Table, TableMissingError
from windows_pipeline.storage.tables import PipelineTables
from windows_pipeline.text.counts import counted


def window_jobs(tables: PipelineTables, windows_name: str, settings: Settings) -> list[Job]:
    """The jobs of one window definition, in order."""
    of_windows = (tables, windows_name, settings)
    jobs: list[Job] = [
        KeyedWindowsJob(*of_windows),
        FinalWindowsJob(*of_windows),
        AlertsJob(*of_windows),
    ]
    if tables.pipeline.windows[windows_name].trigger is not None:
        jobs.append(FiringsJob(*of_windows))
    return jobs


def all_jobs(tables: PipelineTables, settings: Settings) -> list[Job]:
    """The jobs of a pipeline in order: of its source, then of each window definition."""
    jobs: list[Job] = [RawEventsJob(tables, settings)]
    for name in tables.pipeline.windows:
        jobs += window_jobs(tables, name, settings)
    return jobs


def require_filled(spark: SparkSession, of_pipeline: PipelineTables, settings: Settings) -> None:
    """Requires that no table of windows is gone that a run or a stream has filled.

    Raises:
        TableMissingError: A table is gone; the message names the command that computes it again.
    """
    arrival_log = of_pipeline.arrival_log
    log = read_log(spark, arrival_log) if arrival_log.exists(spark) else ()
    for name in of_pipeline.pipeline.windows:
        # A pipeline that got `notify` after its last run has no notifications yet.
        notified = of_pipeline.of(name).notifications
        jobs = window_jobs(of_pipeline, name, settings)
        tables = [table for job in jobs for table in job.tables if table != notified]
        fires = [table for job in jobs if isinstance(job, FiringsJob) for table in job.tables]
        there = [table.exists(spark) for table in tables]
        # A run creates the tables of a step when the step begins.
        filled = len(tables) - [*reversed(there), True].index(True)
        # A stream creates all at once, but those of a new trigger.
        if filled and last_batch(log) is not None:
            filled = max(filled, len(tables) - len(fires))
        if wholly_computed_days(spark, of_pipeline.of(name)):
            filled = len(tables)
        for table, is_there in zip(tables[:filled], there, strict=False):
            if not is_there:
                raise TableMissingError(
                    f"{table.name}: the table was filled, but {table.location} holds none now. "
                    f"Put it back from a backup; or {computes_again(table.name)}"
                )


def checked_days(
    spark: SparkSession, tables: PipelineTables, settings: Settings, days: Sequence[date]
) -> Iterator[tuple[str, list[CheckResult]]]:
    """Checks the published rows of days, job by job, as a stream does once it has ended.

    Yields:
        The name of each job's first table, and the results of the job's checks.
    """
    for job in all_jobs(tables, settings):
        yield job.tables[0].name, check_published(job, spark, days)


def rebuild(
    spark: SparkSession,
    tables: PipelineTables,
    settings: Settings,
    from_step: str | None = None,
    report: Callable[[str], None] = lambda _: None,
) -> Iterator[tuple[str, JobResult]]:
    """Computes the tables that follow an old definition again, and those downstream of them.

    Each table keeps its old rows until the new ones are computed and checked. Old versions stay
    for time travel. A rebuild that was stopped and is run again ends in the same tables.

    If a micro-batch was stopped and the definition was changed since, the rebuilt tables have the
    micro-batch if the log has it; the stream then ends it in the other tables.

    Args:
        spark: The session.
        tables: The tables of the pipeline as it is now.
        settings: Where the landed files lie.
        from_step: The `Step` from which on to rebuild, whether its definition changed or not; None
            for those whose definition changed.
        report: Called with a text on what is about to happen.

    Yields:
        The name of each job's first table, and the job's result.

    Raises:
        BadFileError: A landed file is bad (A8), and raw_events follows an old definition.
        BatchUnfinishedError: The last micro-batch of its stream is not in all tables, and the
            stream can resume, as no definition was changed.
        BatchCameError: A micro-batch came meanwhile; another rebuild is needed.
        ValueError: raw_events follows an old definition, and the source can't be read by days.
    """
    pipeline, raw = tables.pipeline, RawEventsJob(tables, settings)
    from_raw = from_step == Step.RAW_EVENTS or _follows_other_definition(raw, spark)
    if from_raw and not pipeline.source.by_days:
        raise ValueError(
            f"{pipeline.name}: its source can't be read by days again. Put the definition back; or "
            "start over: delete the pipeline's folder of tables, which has the stream's "
            f"checkpoint, too, then: windows-pipeline stream {pipeline.name}"
        )
    arrival_log = tables.arrival_log
    if from_raw and not pipeline.source.skips_bad_files:  # before anything is written
        require_readable_days(pipeline.source, raw.landing, days_landed(pipeline, raw.landing))
    of_windows = list(_stale_jobs(spark, tables, settings, from_step, every=from_raw))
    jobs = [raw, *of_windows] if from_raw else of_windows
    written = [table for job in jobs for table in job.tables]
    _announce(spark, tables, written)
    for table in (job.computed_days_table for job in jobs):
        if table is not None and table.exists(spark):
            table.withdraw(spark, sorted(computed_days_in(spark, table)))
    if from_raw:
        yield from _rebuilt(spark, raw, days_landed(pipeline, raw.landing), report)
    arrival_log.require(spark)
    # The definition may have changed `idle_after`, on which the stored watermark depends.
    store_watermarks(spark, arrival_log, pipeline.partitions.start, pipeline.source.idle_after)
    yield from _rebuilt_windows(spark, tables, of_windows, report)


def _rebuilt_windows(
    spark: SparkSession,
    tables: PipelineTables,
    jobs: list[Job],
    report: Callable[[str], None],
) -> Iterator[tuple[str, JobResult]]:
    """Computes the tables of window definitions again from the raw records.

    Raises:
        BatchCameError: A micro-batch came meanwhile; another rebuild is needed.
    """
    log = read_log(spark, tables.arrival_log)
    days = sorted({row.arrival_unit for row in log})
    stopped = unfinished_logged_batch(spark, tables, log)
    rebuilt: list[Table] = []
    for job in jobs:
        for name, result in _recomputed(spark, job, days, report, stopped):
            yield name, result
            rebuilt += job.tables if result.published else []
    # Each job read the log, so a micro-batch that came meanwhile may be in some tables only.
    newest = last_batch(read_log(spark, tables.arrival_log))
    if newest is not None and newest != last_batch(log):
        raise BatchCameError(tables.pipeline, newest)
    for table in rebuilt:
        table.mark_rebuilt(spark)


def _stale_jobs(
    spark: SparkSession,
    tables: PipelineTables,
    settings: Settings,
    from_step: str | None,
    *,
    every: bool,
) -> Iterator[Job]:
    """The jobs whose tables follow another definition, and the jobs after them."""
    for name in tables.pipeline.windows:
        stale = every
        # Windows without a trigger lack the last step.
        for step, job in zip(tuple(Step)[1:], window_jobs(tables, name, settings), strict=False):
            stale = stale or step == from_step or _follows_other_definition(job, spark)
            if stale:
                yield job


def _announce(spark: SparkSession, of_pipeline: PipelineTables, tables: list[Table]) -> None:
    """Stops micro-batches from here on, then requires that no earlier micro-batch is running.

    If a table is replaced already, a rebuild was stopped, and is resumed now.

    Raises:
        BatchUnfinishedError: A micro-batch is running or unfinished, and its stream can resume, as
            no definition was changed; the tables are unchanged.
    """
    existing = [table for table in tables if table.exists(spark)]
    # The stream refuses such tables, so it cannot end its micro-batch first.
    if not all(table.follows_definition(spark) for table in existing):
        for table in existing:
            if not table.is_replaced(spark):
                table.mark_rebuilding(spark)
        return
    full = [table for table in existing if not table.is_replaced(spark)]
    # All tables, as some still have their old rows when the first has its new ones.
    for table in full:
        table.mark_rebuilding(spark)
    arrival_log = of_pipeline.arrival_log
    if not arrival_log.exists(spark):  # it was gone, and is computed again
        return
    log = read_log(spark, arrival_log)
    if is_mixed(log):  # a stream refuses such tables
        return
    try:
        require_finished_batch(spark, of_pipeline, log, alone=len(full) < len(existing))
    except BatchUnfinishedError:
        for table in full:
            table.mark_rebuilt(spark)
        raise


def days_landed(pipeline: Pipeline, landing: LandingFolder) -> list[date]:
    """The landed days within the pipeline's partitions, up to tomorrow (UTC).

    A folder of a later day would block all days before it until they land.

    Raises:
        FileNotFoundError: The folder of landed days does not exist.
    """
    return [day for day in landing.days if why_passed_over(pipeline, day) is None]


def skipped(pipeline: Pipeline, landing: LandingFolder) -> list[str]:
    """The names of landed files and folders that are not ingested, each with the reason.

    Raises:
        FileNotFoundError: The folder of landed days does not exist.
    """
    reasons = ((day, why_passed_over(pipeline, day)) for day in landing.days)
    passed_over = [f"{day}: {why}" for day, why in reasons if why is not None]
    return [*passed_over, *landing.skipped(days_landed(pipeline, landing))]


def why_passed_over(pipeline: Pipeline, day: date) -> str | None:
    """Why a landed day is not ingested; None if it is ingested."""
    start, end = pipeline.partitions.start, pipeline.partitions.end
    if day < start:
        return f"before the pipeline's first day, {start}"
    if end is not None and day > end:
        return f"after the pipeline's last day, {end} (partitions.end)"
    return "after tomorrow" if day > datetime.now(UTC).date() + timedelta(days=1) else None


def _follows_other_definition(job: Job, spark: SparkSession) -> bool:
    return any(table.is_stale(spark) for table in job.tables)


def _rebuilt(
    spark: SparkSession, job: Job, days: list[date], report: Callable[[str], None]
) -> Iterator[tuple[str, JobResult]]:
    """Computes the tables of a job again, and ends their state of being rebuilt.

    Yields:
        The name of the job's first table, and the job's result; the state stays if the job does
        not publish.
    """
    for name, result in _recomputed(spark, job, days, report):
        if result.published:
            for table in job.tables:
                table.mark_rebuilt(spark)
        yield name, result


def _recomputed(
    spark: SparkSession,
    job: Job,
    days: list[date],
    report: Callable[[str], None],
    stopped: int | None = None,
) -> Iterator[tuple[str, JobResult]]:
    """Computes the tables of a job again; `stopped` is a micro-batch that the rows include."""
    name = job.tables[0].name
    report(
        f"{name}: computing {counted(len(days), 'day')} again; readers see the old rows until then"
        f"{_left_out(spark, job)}"
    )
    result = run_job(job.starting_over(), spark, days)
    if result.published:
        if stopped is not None:
            for table in job.tables:
                table.mark_appended(spark, stopped)
        if isinstance(job, FinalWindowsJob):
            corrections = job.window_tables.corrections
            corrections.replace_by_empty(spark)
            forget_corrections(spark, corrections)
            corrections.mark_rebuilt(spark)  # stays empty
    yield name, result


def _left_out(spark: SparkSession, job: Job) -> str:
    """A sentence on what a rebuild leaves out, as it starts from the records; or nothing."""
    if not isinstance(job, FinalWindowsJob | AlertsJob):
        return ""
    corrections = job.window_tables.corrections
    number = finished_number(spark, corrections) if corrections.exists(spark) else 0
    if not number:
        return ""
    earlier = counted(number, "earlier correction")
    left_out = (
        f"The rows of {earlier}, and alerts that they retracted,"
        if isinstance(job, FinalWindowsJob)
        else f"Alerts that {earlier} retracted"
    )
    return f". {left_out} are left out; earlier versions of the tables keep them"
