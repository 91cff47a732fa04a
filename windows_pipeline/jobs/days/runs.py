"""Runs landed days without an orchestrator: new days, and days that lack results.

A day lacks results if a definition's table of computed days has no row of it; see `computed`. So
the next run takes up the days of a run that was killed or failed a check, the days that a missing
day blocked, and the days that are older than a new definition.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import date, datetime
from typing import NamedTuple

from pyspark.sql import SparkSession

from windows_pipeline.arrival.log import ArrivalLog, is_of_stream, read_log
from windows_pipeline.config import Pipeline
from windows_pipeline.jobs.computed_days import wholly_computed_days
from windows_pipeline.jobs.days.chain import days_landed, window_jobs
from windows_pipeline.jobs.job import Job, JobResult, run_job
from windows_pipeline.jobs.quarantine import quarantined
from windows_pipeline.jobs.raw_events import RawEventsJob
from windows_pipeline.jobs.raw_rows import require_raw_rows
from windows_pipeline.settings import Settings
from windows_pipeline.sources.bad_files import BadFileError
from windows_pipeline.sources.file_changes import ChangedFile, file_changes
from windows_pipeline.sources.landing import FileState, LandingFolder, landing_of
from windows_pipeline.storage.arrival_units import days_text
from windows_pipeline.storage.tables import PipelineTables
from windows_pipeline.storage.waiting_days import (
    DaysByWindows,
    WaitingDays,
    days_to_ingest,
    waiting_days,
)
from windows_pipeline.text.instants import epoch_ms


class DaysToRun(NamedTuple):
    """The days of a run.

    Attributes:
        ingest: The days to ingest.
        compute: The days to compute, by definition; the days to ingest are among them.
    """

    ingest: list[date]
    compute: DaysByWindows

    @property
    def days(self) -> list[date]:
        """All days of the run, in order."""
        return sorted({*self.ingest, *(day for days in self.compute.values() for day in days)})


def runs_to_do(spark: SparkSession, raw: RawEventsJob) -> list[DaysToRun]:
    """Plans a run of new days and the days that they unblock, and a run of days without results.

    Two runs, so that a day whose results are refused again does not stop new days.

    Raises:
        FedByStreamError: A stream fills the tables.
        FileNotFoundError: The folder of landed days does not exist.
    """
    pipeline, log = raw.pipeline, raw.arrived_so_far(spark)
    raw.refuse_stream(log)
    ingested = _ingested(log)
    start, landed = pipeline.partitions.start, days_landed(pipeline, raw.landing)
    new, _ = days_to_ingest(start, landed, ingested, past_a_gap=True)
    waiting = _waiting(spark, raw.of_pipeline, ingested)
    unblocked = set(waiting.blocked) if waiting.missing in new else set()
    first = DaysToRun(new, of_all(pipeline, {*new, *unblocked}))
    runs = [first, DaysToRun([], waiting.lacking)]
    return [run for run in runs if run.days]


def require_definition(spark: SparkSession, tables: PipelineTables) -> None:
    """Requires that the rows of all tables follow the pipeline's definition.

    Raises:
        DefinitionChangedError: A table holds rows of another definition.
        RawRowsMissingError: raw_events is gone, and arrival_log names days of it.
    """
    raw_events = tables.raw_events
    if not raw_events.exists(spark):
        log = _log(spark, tables)
        days = {row.arrival_unit for row in log}
        require_raw_rows(spark, tables.pipeline, raw_events, log, days)
    for table in tables.written:
        if table.exists(spark):
            table.require(spark)


def of_all(pipeline: Pipeline, days: set[date]) -> DaysByWindows:
    """The same days for every definition."""
    return {name: sorted(days) for name in pipeline.windows} if days else {}


def days_waiting(spark: SparkSession, tables: PipelineTables) -> WaitingDays:
    """The days without results; none of a stream, which computes its days itself."""
    log = _log(spark, tables)
    return _waiting(spark, tables, [] if is_of_stream(log) else _ingested(log))


def files_without_records(
    spark: SparkSession, tables: PipelineTables, landing: LandingFolder
) -> list[FileState]:
    """The ingested files that have bytes but gave no record, by day and name.

    A CSV file of a header alone and a Parquet file without rows are valid, and left out.
    """
    table, source = tables.landed_files, tables.pipeline.source
    if not table.exists(spark) or source.format == "parquet":
        return []
    columns = ["arrival_unit", "file", "size_bytes", "accepted", "rejected"]
    found = [
        FileState(row["arrival_unit"], row["file"], row["size_bytes"], None)
        for row in table.rows(spark, columns).to_pylist()
        if row["size_bytes"] and not row["accepted"] and not row["rejected"]
    ]
    return sorted(
        file for file in found if source.format != "csv" or landing.is_blank(file.day, file.name)
    )


def changed_files(
    spark: SparkSession, tables: PipelineTables, landing: LandingFolder
) -> list[ChangedFile]:
    """The files of ingested days that were added, deleted or changed since, by day and name."""
    table = tables.landed_files
    if not table.exists(spark):
        return []
    states = table.rows(spark, ["arrival_unit", "file", "size_bytes", "written"]).to_pylist()
    known: dict[tuple[date, str], tuple[int | None, int | None]] = {
        (row["arrival_unit"], row["file"]): (row["size_bytes"], _ms(row["written"]))
        for row in states
    }
    ingested = set(_ingested(_log(spark, tables)))
    days = [day for day in days_landed(tables.pipeline, landing) if day in ingested]
    found = {(file.day, file.name): file for file in landing.files(days)}
    name_of = {str(file): key for key, file in found.items()}
    for listed in quarantined(spark, tables):
        gone = listed.arrival_unit, listed.file.partition("/")[2]
        known[name_of.get(listed.file, gone)] = listed.size_bytes, listed.written_ms
    of_days = {file: state for file, state in known.items() if file[0] in days}
    return file_changes(of_days, found.values())


def changed_since(
    spark: SparkSession, tables: PipelineTables, settings: Settings, first: date, last: date | None
) -> list[str]:
    """Says of the days of a correction which files changed since, as it reads what was ingested."""
    pipeline = tables.pipeline
    if not pipeline.source.by_days:
        return []
    try:
        found = changed_files(spark, tables, landing_of(pipeline.source, settings.landing))
    except FileNotFoundError:  # the landed files need not stay
        return []
    firsts = {file.day: file for file in reversed(found) if first <= file.day <= (last or date.max)}
    return [
        f"{day} changed after it was ingested ({file.name} {file.change}), and a correction reads "
        f"what was ingested. To ingest the day again: windows-pipeline run {pipeline.name} --from "
        f"{day} --to {day}; then correct again"
        for day, file in sorted(firsts.items())
    ]


def _ms(instant: datetime | None) -> int | None:
    return None if instant is None else epoch_ms(instant)


def _waiting(spark: SparkSession, tables: PipelineTables, ingested: list[date]) -> WaitingDays:
    """The days without results among ingested days."""
    pipeline = tables.pipeline
    computed = {name: wholly_computed_days(spark, tables.of(name)) for name in pipeline.windows}
    return waiting_days(pipeline.partitions.start, ingested, computed)


def run_days(
    spark: SparkSession,
    raw: RawEventsJob,
    days: DaysToRun,
    report: Callable[[str], None] = lambda _: None,
    begin: Callable[[str], None] = lambda _: None,
    found_bad: Callable[[BadFileError], None] = lambda _: None,
) -> Iterator[tuple[str, JobResult]]:
    """Ingests landed days and computes their results, in one run of all steps.

    A day with a bad file is left out: it stays as it was, so a new day counts as missing (A8).
    Days that depend on a changed day are computed again, too. If a step is not published, the
    later steps of its definition are left out; if the raw days are not published, all steps are.

    Args:
        spark: The session.
        raw: The job that ingests days.
        days: The days, ingested before or not.
        report: Called with a text on what is about to happen.
        begin: Called with the name of a job's first table before the job starts.
        found_bad: Called with each bad file whose day is left out.

    Yields:
        The name of each job's first table, and the job's result.

    Raises:
        DefinitionChangedError: A table holds rows of another definition; no day was begun.
        FedByStreamError: A stream fills the tables; no day was begun.
        FileNotFoundError: A day has no folder.
        RawRowsMissingError: raw_events lacks rows that windows need.
    """
    pipeline, tables = raw.pipeline, raw.of_pipeline
    require_definition(spark, tables)
    of_windows = {name: window_jobs(tables, name, raw.settings) for name in pipeline.windows}
    raw.refuse_stream(_log(spark, tables))
    compute = dict(days.compute)
    if days.ingest:
        before = days_waiting(spark, tables).lacking
        begin(raw.tables[0].name)
        result, left_out = _ingest(raw, spark, days.ingest, found_bad)
        if result is not None:
            yield raw.tables[0].name, result
            if not result.published:
                return
        compute = _without(compute, left_out)
        after = days_waiting(spark, tables).lacking
        for name, dependent in _since(before, after, set(days.ingest)).items():
            report(
                f"{pipeline.name} {name}: {days_text(dependent)}: computed again, too, as "
                "earlier days changed"
            )
            compute[name] = sorted({*compute.get(name, ()), *dependent})
    for name, to_compute in compute.items():
        yield from _compute(of_windows[name], spark, to_compute, begin)


def _compute(
    jobs: Sequence[Job], spark: SparkSession, days: list[date], begin: Callable[[str], None]
) -> Iterator[tuple[str, JobResult]]:
    """Runs a definition's jobs until one is not published."""
    for job in jobs:
        begin(job.tables[0].name)
        result = run_job(job, spark, days)
        yield job.tables[0].name, result
        if not result.published:
            return


def _ingest(
    raw: RawEventsJob,
    spark: SparkSession,
    days: list[date],
    found_bad: Callable[[BadFileError], None],
) -> tuple[JobResult | None, set[date]]:
    """Ingests the days without a bad file; only a Spark task finds out that some files are bad.

    Returns:
        The job's result, None if no day is without a bad file; and the days left out.
    """
    left_out: set[date] = set()
    while to_ingest := [day for day in days if day not in left_out]:
        try:
            return run_job(raw, spark, to_ingest), left_out
        except BadFileError as error:
            if not error.days & set(to_ingest):
                raise
            left_out |= error.days
            for bad in error.all:
                found_bad(bad)
    return None, left_out


def _without(days_by_windows: DaysByWindows, left_out: set[date]) -> DaysByWindows:
    found = {
        name: [day for day in days if day not in left_out] for name, days in days_by_windows.items()
    }
    return {name: days for name, days in found.items() if days}


def _since(before: DaysByWindows, after: DaysByWindows, ingested: set[date]) -> DaysByWindows:
    """The days that lack results only now, without those that the run has ingested."""
    found = {
        name: sorted(set(days) - set(before.get(name, ())) - ingested)
        for name, days in after.items()
    }
    return {name: days for name, days in found.items() if days}


def _ingested(log: ArrivalLog) -> list[date]:
    return sorted({row.arrival_unit for row in log})


def _log(spark: SparkSession, tables: PipelineTables) -> ArrivalLog:
    return read_log(spark, tables.arrival_log) if tables.arrival_log.exists(spark) else ()
