"""Computes and verifies arrival days: `run` and `check`."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import date
from functools import partial

import typer
from pyspark.sql import SparkSession

from windows_pipeline.checks.run import CheckResult
from windows_pipeline.checks.table_rules import FINAL_NEVER_CHANGED
from windows_pipeline.cli.failures import FailedExit
from windows_pipeline.cli.jobs.reports import report_failed, reported
from windows_pipeline.cli.session import session
from windows_pipeline.cli.terminal.console import CONSOLE
from windows_pipeline.cli.terminal.printed import (
    print_bad_files,
    print_changed,
    print_checks,
    print_failed,
    print_jobs,
    print_quarantined,
    print_records,
    print_skipped,
    print_waiting,
    print_without_records,
)
from windows_pipeline.cli.terminal.progress import Status
from windows_pipeline.config import Pipeline
from windows_pipeline.jobs import (
    AlertsJob,
    RawEventsJob,
    check_published,
    published_days,
)
from windows_pipeline.jobs.days.chain import all_jobs, skipped, why_passed_over
from windows_pipeline.jobs.days.runs import (
    DaysToRun,
    changed_files,
    days_waiting,
    files_without_records,
    of_all,
    require_definition,
    run_days,
    runs_to_do,
)
from windows_pipeline.jobs.job import JobResult
from windows_pipeline.jobs.quarantine import quarantined
from windows_pipeline.settings import Settings
from windows_pipeline.sources.bad_files import BadFileError
from windows_pipeline.storage.arrival_units import days_from, days_text
from windows_pipeline.storage.tables import window_tables
from windows_pipeline.text.counts import counted


def check_tables(
    context: typer.Context, status: Status, settings: Settings, pipeline: Pipeline
) -> None:
    """Checks the published tables; exit status 1 if a check fails or days wait."""
    spark = session(context, settings)
    jobs = all_jobs(pipeline, settings)
    results: list[tuple[str, CheckResult]] = []
    for number, job in enumerate(jobs, 1):
        main_table = job.tables[0].name
        status.update(f"{main_table}: checking (step {number} of {len(jobs)})")
        if job is not jobs[0] and not any(table.exists(spark) for table in job.tables):
            CONSOLE.print(f"{main_table}: the table does not exist yet")
            continue
        if isinstance(job, AlertsJob) and job.notifications is not None:
            # A pipeline that got `notify` after its last run has no such table yet.
            job.notifications.create_if_missing(spark)
        for table in job.tables:
            table.require(spark)
        published = published_days(job, spark)
        if published:
            # A day without rows may still have brought records that no window counts.
            days = sorted({*published, *(row.arrival_unit for row in job.arrived(spark))})
            status.update(
                f"{main_table}: checking {counted(len(days), 'day')} (step {number} of {len(jobs)})"
            )
            checked = check_published(job, spark, days, recount=True)
            results += [(main_table, result) for result in checked]
    print_checks(results)
    status.update(f"{pipeline.name}: counting records")
    _print_records(spark, settings, pipeline, None)
    _print_quarantined(spark, settings, pipeline, None)
    waits = pipeline.source.is_landed and _print_unfinished(spark, settings, pipeline)
    failed = any(not result.passed and not result.check.is_warning for _, result in results)
    if waits or failed:
        raise typer.Exit(1)


def run_landed(
    context: typer.Context,
    status: Status,
    settings: Settings,
    pipeline: Pipeline,
    asked: Sequence[date],
) -> None:
    """Runs the days that the user names, or all new and waiting days."""
    between = _days_between(pipeline, asked[0], asked[-1]) if asked else []
    spark = session(context, settings)
    status.update(f"{pipeline.name}: looking for days to run")
    if between:
        runs = [DaysToRun(between, of_all(pipeline, set(between)))]
    else:
        runs = runs_to_do(spark, pipeline, settings)
    went_well: list[bool] = []
    refused: set[str] = set()
    bad: list[BadFileError] = []
    for number, days in enumerate(runs, 1):
        CONSOLE.print(f"{pipeline.name}: {days_text(days.days)}")
        of_run = f"{days_text(days.days)}; run {number} of {len(runs)}"
        results = run_days(
            spark, pipeline, settings, days, CONSOLE.print,
            begin=partial(_show_job, status, of_run), found_bad=bad.append,
        )  # fmt: skip
        followed = _noting_refused(results, refused)
        went_well += print_jobs(reported(followed, pipeline, settings, spark))
    if not runs:
        require_definition(spark, pipeline, settings)
        CONSOLE.print(f"{pipeline.name}: no landed day is new; nothing to do")
    status.update(f"{pipeline.name}: counting records")
    left_out = {day for error in bad for day in error.days}
    of_runs = {day for days in runs for day in days.days} - left_out
    _print_records(spark, settings, pipeline, of_runs)
    _print_quarantined(spark, settings, pipeline, of_runs)
    waits = _print_unfinished(spark, settings, pipeline, left_out, refused)
    if bad:
        log = RawEventsJob(pipeline, settings).arrived_so_far(spark)
        print_bad_files(pipeline.name, bad, {row.arrival_unit for row in log})
        reason = "; ".join(map(str, bad))
        report_failed(pipeline, settings, spark, reason)
        raise FailedExit(3, reason)
    if waits or not all(went_well):
        raise typer.Exit(1)


def _noting_refused(
    results: Iterable[tuple[str, JobResult]], refused: set[str]
) -> Iterator[tuple[str, JobResult]]:
    """Yields results, and records the definitions whose final windows a run refused to change."""
    for name, result in results:
        failed = {found.check.name for found in result.checks if not found.passed}
        if not result.published and FINAL_NEVER_CHANGED in failed:
            refused.add(name.split("/")[1])
        yield name, result


def _show_job(status: Status, of_run: str, table: str) -> None:
    status.update(f"{table}: computing {of_run}")


def _print_records(
    spark: SparkSession, settings: Settings, pipeline: Pipeline, days: Collection[date] | None
) -> None:
    """Prints how many records of some days, or all, were accepted, rejected and late; failures."""
    log = RawEventsJob(pipeline, settings).arrived_so_far(spark)
    of_days = [row for row in log if days is None or row.arrival_unit in days]
    if not of_days:
        return
    rejected = {(row.arrival_unit, row.batch): row.arrival_unit_rejected for row in of_days}
    late, failed = {}, {}
    arrival_units = sorted({row.arrival_unit for row in of_days})
    for name in pipeline.windows:
        tables = window_tables(pipeline, name, settings.warehouse)
        if tables.late_records.exists(spark):
            rows = tables.late_records.of_arrival_units(spark, arrival_units)
            late[name] = rows.where("reason <> 'outside_windows'").count()
        if tables.failed_windows.exists(spark) and tables.failed_windows.arrival_units(
            spark, arrival_units
        ):
            rows = tables.failed_windows.of_arrival_units(spark, arrival_units).drop(
                "aggregate", "message"
            )
            failed[name] = rows.distinct().count()
    print_records(pipeline.name, sum(row.rows for row in of_days), sum(rejected.values()), late)
    print_failed(pipeline.name, failed)


def _print_quarantined(
    spark: SparkSession, settings: Settings, pipeline: Pipeline, days: Collection[date] | None
) -> None:
    """Prints the bad files that some days, or all, lack."""
    listed = quarantined(spark, pipeline, settings)
    of_days = [file for file in listed if days is None or file.arrival_unit in days]
    print_quarantined(pipeline.name, of_days, by_days=pipeline.source.by_days)


def _print_unfinished(
    spark: SparkSession,
    settings: Settings,
    pipeline: Pipeline,
    left_out: Collection[date] = frozenset(),
    refused: Collection[str] = (),
) -> bool:
    """Prints the days that wait and the files that changed, gave no record or were skipped.

    Args:
        spark: The session.
        settings: Where tables and landed files lie.
        pipeline: The pipeline.
        left_out: The days with bad files, whose changes are printed elsewhere.
        refused: The definitions whose final windows the run has refused to change.

    Returns:
        Whether the user has something to do; skipped files need nothing.
    """
    waits = print_waiting(pipeline.name, days_waiting(spark, pipeline, settings), refused)
    landing = RawEventsJob(pipeline, settings).landing
    try:
        print_skipped(pipeline.name, skipped(pipeline, landing))
        files = changed_files(spark, pipeline, settings)
        changed = print_changed(pipeline.name, [file for file in files if file.day not in left_out])
        empty = files_without_records(spark, pipeline, settings)
        print_without_records([(f"{file.day}/{file.name}", file.size_bytes) for file in empty])
    except FileNotFoundError:  # users may delete landed files once they are ingested
        return waits
    return waits or changed or bool(empty)


def _days_between(pipeline: Pipeline, first: date, last: date) -> list[date]:
    """The days from `first` to `last`.

    Raises:
        ValueError: The days lie outside the pipeline's partitions, or `last` is before `first`.
    """
    start, end = pipeline.partitions.start, pipeline.partitions.end or date.max
    if start <= first <= last and why_passed_over(pipeline, last) == "after tomorrow":
        raise ValueError(
            f"--to {last}: a day must be at most tomorrow (UTC); a later day would keep all that "
            "comes before it waiting. Rename its folder"
        )
    if not start <= first <= last <= end:
        to = f" to {end}" if pipeline.partitions.end else " on"
        raise ValueError(
            f"--from {first} --to {last}: no days of {pipeline.name}, which are from {start}{to}"
        )
    return days_from(first, last)
