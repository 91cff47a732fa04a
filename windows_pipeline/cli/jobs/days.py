"""Computes and verifies arrival days: `run` and `check`."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import date
from functools import partial

import typer
from pyspark.sql import DataFrame, SparkSession

from windows_pipeline.arrival.log import ArrivalLog
from windows_pipeline.checks.next_steps import run_again
from windows_pipeline.checks.run import CheckResult
from windows_pipeline.checks.table_rules import FINAL_NEVER_CHANGED
from windows_pipeline.cli.failures import FailedExit, end_failed, failed_rules, rules_of_jobs
from windows_pipeline.cli.jobs.recorders import recording
from windows_pipeline.cli.session import session
from windows_pipeline.cli.terminal.console import CONSOLE
from windows_pipeline.cli.terminal.printed import (
    print_bad_files,
    print_changed,
    print_checks,
    print_failed,
    print_jobs,
    print_published,
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
    JobResult,
    RawEventsJob,
    check_published,
    published_days,
)
from windows_pipeline.jobs.days.chain import all_jobs, require_filled, skipped, why_passed_over
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
from windows_pipeline.jobs.quarantine import quarantined
from windows_pipeline.settings import Settings
from windows_pipeline.sources.bad_files import BadFileError
from windows_pipeline.storage.arrival_units import days_from, days_text
from windows_pipeline.storage.table import Table
from windows_pipeline.storage.tables import PipelineTables, tables_of
from windows_pipeline.text.counts import counted

_AT_THE_END = "see the end of this output"


def check_tables(
    context: typer.Context, status: Status, settings: Settings, pipeline: Pipeline
) -> None:
    """Checks the published tables; exit status 1 if a check fails or days wait.

    Raises:
        TableMissingError: A table that was filled is gone.
    """
    spark = session(context, settings)
    tables = tables_of(pipeline, settings.warehouse)
    require_filled(spark, tables, settings)
    jobs = all_jobs(tables, settings)
    results: list[tuple[str, CheckResult]] = []
    for number, job in enumerate(jobs, 1):
        main_table = job.tables[0].name
        status.update(f"{main_table}: checking (step {number} of {len(jobs)})")
        if job is not jobs[0] and not any(table.exists(spark) for table in job.tables):
            CONSOLE.print(f"{main_table}: the table does not exist yet")
            continue
        if isinstance(job, AlertsJob) and job.definition.notifies:
            # A pipeline that got `notify` after its last run has no such table yet.
            job.window_tables.notifications.create_if_missing(spark)
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
    waiting = days_waiting(spark, tables) if pipeline.source.is_landed else None
    failed = [(name, found) for name, found in results if not found.passed]
    # One correction, of all days, is printed with what waits.
    correct = _AT_THE_END if waiting is not None and waiting.lacking else ""
    differs = print_published(pipeline, failed, correct)
    status.update(f"{pipeline.name}: counting records")
    raw = RawEventsJob(tables, settings)
    _print_records(spark, tables, raw.arrived_so_far(spark))
    _print_quarantined(spark, tables, None)
    left = [] if waiting is None else print_waiting(pipeline.name, waiting, differs=differs)
    left += _print_changes(spark, raw) if pipeline.source.is_landed else []
    end_failed([*failed_rules(results), *left])


def run_landed(
    context: typer.Context,
    status: Status,
    settings: Settings,
    pipeline: Pipeline,
    asked: Sequence[date],
) -> None:
    """Runs the days that the user names, or all new and waiting days."""
    between = _days_between(pipeline, asked[0], asked[-1]) if asked else []
    tables = tables_of(pipeline, settings.warehouse)
    raw = RawEventsJob(tables, settings)
    spark = session(context, settings)
    status.update(f"{pipeline.name}: looking for days to run")
    refused: set[str] = set()
    bad: list[BadFileError] = []
    with recording(context, tables, settings, spark) as done:
        if between:
            runs = [DaysToRun(between, of_all(pipeline, set(between)))]
        else:
            runs = runs_to_do(spark, raw)
        if runs:
            done.begin()
        for number, days in enumerate(runs, 1):
            CONSOLE.print(f"{pipeline.name}: {days_text(days.days)}")
            of_run = f"{days_text(days.days)}; run {number} of {len(runs)}"
            results = run_days(
                spark, raw, days, CONSOLE.print,
                begin=partial(_show_job, status, of_run), found_bad=bad.append,
            )  # fmt: skip
            followed = _noting_refused(results, refused)
            again = partial(run_again, pipeline)
            # One correction, of all days and definitions, is printed with what is left to do.
            print_jobs(followed, pipeline, again, done.jobs, _AT_THE_END)
        done.failure = "; ".join(map(str, bad)) or None
        if not runs:
            require_definition(spark, tables)
            CONSOLE.print(f"{pipeline.name}: no landed day is new; nothing to do")
    status.update(f"{pipeline.name}: counting records")
    left_out = {day for error in bad for day in error.days}
    of_runs = {day for days in runs for day in days.days} - left_out
    log = raw.arrived_so_far(spark)
    of_days = tuple(row for row in log if row.arrival_unit in of_runs)
    _print_records(spark, tables, of_days)
    _print_quarantined(spark, tables, of_runs)
    left = print_waiting(pipeline.name, days_waiting(spark, tables), refused)
    left += _print_changes(spark, raw, left_out)
    if bad:
        print_bad_files(pipeline.name, bad, {row.arrival_unit for row in log})
        raise FailedExit(3, str(done.failure))
    end_failed([*failed_rules(rules_of_jobs(done.jobs)), *left])


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


def _print_records(spark: SparkSession, of_pipeline: PipelineTables, of_days: ArrivalLog) -> None:
    """Prints how many records of some days were accepted, rejected and late; failures."""
    if not of_days:
        return
    rejected = {(row.arrival_unit, row.batch): row.arrival_unit_rejected for row in of_days}
    late, failed = {}, {}
    arrival_units = sorted({row.arrival_unit for row in of_days})
    for name in of_pipeline.pipeline.windows:
        tables = of_pipeline.of(name)
        if tables.late_records.exists(spark):
            rows = _rows(tables.late_records, spark, arrival_units)
            late[name] = 0 if rows is None else rows.where("reason <> 'outside_windows'").count()
        if tables.failed_windows.exists(spark):
            rows = _rows(tables.failed_windows, spark, arrival_units)
            if rows is not None:
                failed[name] = rows.drop("aggregate", "message").distinct().count()
    name = of_pipeline.pipeline.name
    print_records(name, sum(row.rows for row in of_days), sum(rejected.values()), late)
    print_failed(name, failed)


def _rows(table: Table, spark: SparkSession, arrival_units: Sequence[date]) -> DataFrame | None:
    """The rows of some arrival units; None without a query if there are none."""
    if not table.arrival_units(spark, arrival_units):
        return None
    return table.of_arrival_units(spark, arrival_units)


def _print_quarantined(
    spark: SparkSession, tables: PipelineTables, days: Collection[date] | None
) -> None:
    """Prints the bad files that some days, or all, lack."""
    listed = quarantined(spark, tables)
    of_days = [file for file in listed if days is None or file.arrival_unit in days]
    pipeline = tables.pipeline
    print_quarantined(pipeline.name, of_days, by_days=pipeline.source.by_days)


def _print_changes(
    spark: SparkSession, raw: RawEventsJob, left_out: Collection[date] = frozenset()
) -> list[str]:
    """Prints the files that changed, gave no record or were skipped.

    Args:
        spark: The session.
        raw: The job of the pipeline's landed files, with what is listed so far.
        left_out: The days with bad files, whose changes are printed elsewhere.

    Returns:
        What is left to do, in short; skipped files need nothing.
    """
    pipeline, tables, landing = raw.pipeline, raw.of_pipeline, raw.landing
    left: list[str] = []
    try:
        print_skipped(pipeline.name, skipped(pipeline, landing))
        files = changed_files(spark, tables, landing)
        changed = [file for file in files if file.day not in left_out]
        print_changed(pipeline.name, changed)
        empty = files_without_records(spark, tables, landing)
        print_without_records([(f"{file.day}/{file.name}", file.size_bytes) for file in empty])
    except FileNotFoundError:  # users may delete landed files once they are ingested
        return left
    if changed:
        days = days_text(sorted({file.day for file in changed}))
        left.append(f"files of {days} changed since the days were ingested")
    if empty:
        left.append(f"files of {days_text(sorted({file.day for file in empty}))} have no record")
    return left


def _days_between(pipeline: Pipeline, first: date, last: date) -> list[date]:
    """The days from `first` to `last`.

    Raises:
        ValueError: The days lie outside the pipeline's partitions, or `last` is before `first`.
    """
    start, end = pipeline.partitions.start, pipeline.partitions.end or date.max
    if start <= first <= last and why_passed_over(pipeline, last) == "after tomorrow":
        raise ValueError(
            f"--to {last}: a day must be at most tomorrow (UTC), as all days before it would have "
            "to land first. Rename its folder, or name an earlier day"
        )
    if not start <= first <= last <= end:
        to = f" to {end}" if pipeline.partitions.end else " on"
        raise ValueError(
            f"--from {first} --to {last}: must be days of {pipeline.name}, which are from "
            f"{start}{to}; name such days, or change `partitions` in the pipeline's file"
        )
    return days_from(first, last)
