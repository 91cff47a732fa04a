"""Runs of landed days without an orchestrator: what is new, and what lacks results.

A day lacks results of a definition that is not noted as computed; see `computed_days`. So days of
a run that was killed, that failed a check, that waited for a day that had not landed, or that came
before the definition did, are taken up by the next run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import date, datetime, timedelta
from typing import NamedTuple

from pyspark.sql import SparkSession

from windows_pipeline.arrival.log import ArrivalLog, is_of_stream, read_log
from windows_pipeline.config import Pipeline
from windows_pipeline.config.fields import epoch_ms
from windows_pipeline.jobs.days.chain import days_landed, window_jobs
from windows_pipeline.jobs.days.computed import noted_days, notes_of
from windows_pipeline.jobs.job import JobResult, run_job
from windows_pipeline.jobs.raw_events import RawEventsJob
from windows_pipeline.settings import Settings
from windows_pipeline.sources.landed_files import FileState, is_blank, landed_files
from windows_pipeline.storage.arrival_units import days_text
from windows_pipeline.storage.catalog import landed_files as landed_files_table
from windows_pipeline.storage.catalog import source_tables

DaysByWindows = dict[str, list[date]]
"""Days by the name of a definition; those without days are left out."""


class DaysToRun(NamedTuple):
    """What a run has to do.

    Attributes:
        ingest: The days whose records are to be ingested.
        compute: By definition, the days whose windows are to be computed, these among them.
    """

    ingest: list[date]
    compute: DaysByWindows

    @property
    def days(self) -> list[date]:
        """All of them."""
        return sorted({*self.ingest, *(day for days in self.compute.values() for day in days)})


class Waiting(NamedTuple):
    """Days that were ingested and are not computed.

    Attributes:
        lacking: By definition, those that could be computed.
        blocked: Those past a day that is missing, for which they wait.
        missing: That day.
    """

    lacking: DaysByWindows
    blocked: list[date]
    missing: date


class ChangedFile(NamedTuple):
    """A landed file that is not as it was when its day was ingested.

    Attributes:
        day: The day.
        name: Its name.
        change: How it differs.
    """

    day: date
    name: str
    change: str


def runs_to_do(spark: SparkSession, pipeline: Pipeline, settings: Settings) -> list[DaysToRun]:
    """Of the days that landed and are new, with those that wait for them; then of those that lack.

    These have a run of their own, so that a day that is refused again bars no new one.

    Raises:
        FedByStreamError: A stream fills the tables.
        FileNotFoundError: There is no folder of landed days.
    """
    log = _log(spark, pipeline, settings)
    raw = RawEventsJob(pipeline, settings)
    raw.refuse_stream(log)
    there = _ingested(log)
    new = set(days_landed(pipeline, raw.landing)) - set(there)
    waiting = _waiting(spark, pipeline, settings, there)
    freed = set(waiting.blocked) if waiting.missing in new else set()
    first = DaysToRun(sorted(new), of_all(pipeline, new | freed))
    runs = [first, DaysToRun([], waiting.lacking)]
    return [run for run in runs if run.days]


def of_all(pipeline: Pipeline, days: set[date]) -> DaysByWindows:
    """Days of every definition."""
    return {name: sorted(days) for name in pipeline.windows} if days else {}


def days_waiting(spark: SparkSession, pipeline: Pipeline, settings: Settings) -> Waiting:
    """The days without results; none of what a stream ingested, which computes them itself."""
    log = _log(spark, pipeline, settings)
    there = [] if is_of_stream(log) else _ingested(log)
    return _waiting(spark, pipeline, settings, there)


def files_without_records(
    spark: SparkSession, pipeline: Pipeline, settings: Settings
) -> list[FileState]:
    """The ingested files that have bytes and gave no record, by day and name.

    A CSV file may be a header alone, and a Parquet file may have no row.
    """
    table = landed_files_table(pipeline, settings.warehouse)
    if not table.exists(spark) or pipeline.source.format == "parquet":
        return []
    columns = ["arrival_unit", "file", "size_bytes", "accepted", "rejected"]
    found = [
        FileState(row["arrival_unit"], row["file"], row["size_bytes"], None)
        for row in table.rows(spark, columns).to_pylist()
        if row["size_bytes"] and not row["accepted"] and not row["rejected"]
    ]
    landing = RawEventsJob(pipeline, settings).landing
    return sorted(
        file
        for file in found
        if pipeline.source.format != "csv" or is_blank(landing, file.day, file.name)
    )


def changed_files(spark: SparkSession, pipeline: Pipeline, settings: Settings) -> list[ChangedFile]:
    """The landed files of ingested days that came, went or changed since, by day and name."""
    table = landed_files_table(pipeline, settings.warehouse)
    if not table.exists(spark):
        return []
    states = table.rows(spark, ["arrival_unit", "file", "size_bytes", "written"]).to_pylist()
    known: dict[tuple[date, str], tuple[int, int | None]] = {
        (row["arrival_unit"], row["file"]): (row["size_bytes"], _ms(row["written"]))
        for row in states
    }
    raw = RawEventsJob(pipeline, settings)
    ingested = set(_ingested(_log(spark, pipeline, settings)))
    days = [day for day in days_landed(pipeline, raw.landing) if day in ingested]
    found = {(file.day, file.name): file for file in landed_files(raw.landing, days)}
    places = sorted(place for place in found.keys() | known.keys() if place[0] in days)
    return [
        ChangedFile(*place, what)
        for place in places
        if (what := _difference(known.get(place), found.get(place)))
    ]


def _difference(known: tuple[int, int | None] | None, found: FileState | None) -> str | None:
    if known is None:
        return "came later"
    if found is None:
        return "is gone"
    size_bytes, written_ms = known
    if found.size_bytes != size_bytes:
        return f"has {found.size_bytes:,} bytes, and had {size_bytes:,}"
    return None if found.written_ms == written_ms else "was written again"


def _ms(instant: datetime | None) -> int | None:
    return None if instant is None else epoch_ms(instant)


def _waiting(
    spark: SparkSession, pipeline: Pipeline, settings: Settings, there: list[date]
) -> Waiting:
    """The same, of the days that were ingested, in order."""
    missing = pipeline.partitions.start
    for day in there:
        missing += timedelta(days=day == missing)
    ready = {day for day in there if day < missing}
    lacking: DaysByWindows = {}
    for name in pipeline.windows:
        notes = notes_of(pipeline, name, settings.warehouse)
        computed = set.intersection(*(noted_days(spark, each) for each in notes))
        if ready - computed:
            lacking[name] = sorted(ready - computed)
    return Waiting(lacking, [day for day in there if day > missing], missing)


def run_days(
    spark: SparkSession,
    pipeline: Pipeline,
    settings: Settings,
    days: DaysToRun,
    said: Callable[[str], None] = lambda _: None,
) -> Iterator[tuple[str, JobResult]]:
    """Ingests landed days and computes what follows, as one run of all steps.

    Days that hang on one that came out differently are computed again, too. A step that is not
    published ends its definition; the raw days' ends the run.

    Args:
        spark: The session.
        pipeline: The pipeline.
        settings: Where the tables and landed files lie.
        days: The days, there or not.
        said: Is called with what is about to happen.

    Yields:
        The name of each job's first table and what became of it.

    Raises:
        DefinitionChangedError: A table holds rows of another definition; nothing was begun.
        FedByStreamError: A stream fills the tables; nothing was begun.
        FileNotFoundError: A day has no folder.
        RawRowsMissingError: raw_events lacks rows that windows need.
    """
    raw = RawEventsJob(pipeline, settings)
    of_windows = {name: window_jobs(pipeline, name, settings) for name in pipeline.windows}
    for job in (raw, *(job for jobs in of_windows.values() for job in jobs)):
        for table in job.tables:
            if table.exists(spark):
                table.require(spark)
    raw.refuse_stream(_log(spark, pipeline, settings))
    compute = dict(days.compute)
    if days.ingest:
        before = days_waiting(spark, pipeline, settings).lacking
        result = run_job(raw, spark, days.ingest)
        yield raw.tables[0].name, result
        if not result.published:
            return
        after = days_waiting(spark, pipeline, settings).lacking
        for name, hanging in _since(before, after, set(days.ingest)).items():
            said(f"{pipeline.name} {name}: {days_text(hanging)}: hang on what changed; again, too")
            compute[name] = sorted({*compute.get(name, ()), *hanging})
    for name, own in compute.items():
        for job in of_windows[name]:
            result = run_job(job, spark, own)
            yield job.tables[0].name, result
            if not result.published:
                break


def _since(before: DaysByWindows, after: DaysByWindows, but: set[date]) -> DaysByWindows:
    """The days, but for some, that lack results now and did not before."""
    found = {
        name: sorted(set(days) - set(before.get(name, ())) - but) for name, days in after.items()
    }
    return {name: days for name, days in found.items() if days}


def _ingested(log: ArrivalLog) -> list[date]:
    return sorted({row.arrival_unit for row in log})


def _log(spark: SparkSession, pipeline: Pipeline, settings: Settings) -> ArrivalLog:
    arrival_log = source_tables(pipeline, settings.warehouse).arrival_log
    return read_log(spark, arrival_log) if arrival_log.exists(spark) else ()
