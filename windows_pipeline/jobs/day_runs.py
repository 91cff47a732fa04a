"""Runs of landed days without an orchestrator: what is new, and what an earlier run left open.

Before a run writes anything its days are in the table `_waiting_days`, which they leave once all of
them is computed. So days of a run that was killed, that failed a check, or that waited for a day
that had not landed, are seen, and taken up by the next run.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, timedelta
from typing import NamedTuple

from pyspark.sql import SparkSession

from windows_pipeline.config import Pipeline
from windows_pipeline.jobs.chain import days_landed, window_jobs
from windows_pipeline.jobs.job import JobResult, run_job
from windows_pipeline.jobs.log import ArrivalLog, read_log
from windows_pipeline.jobs.raw_events import RawEventsJob
from windows_pipeline.settings import Settings
from windows_pipeline.small_frame import small_frame
from windows_pipeline.tables.catalog import source_tables, waiting_days


class DaysToRun(NamedTuple):
    """What a run has to do.

    Attributes:
        ingest: The days whose records are to be ingested.
        compute: Those whose windows are to be computed, these among them.
    """

    ingest: list[date]
    compute: list[date]


class Waiting(NamedTuple):
    """Days that were ingested and are not computed.

    Attributes:
        begun: Those that a run has begun; it runs still, or was stopped.
        held_back: Those past a day that is missing, for which they wait.
        missing: That day.
    """

    begun: list[date]
    held_back: list[date]
    missing: date


def runs_to_do(spark: SparkSession, pipeline: Pipeline, settings: Settings) -> list[DaysToRun]:
    """Of the days that landed and are new, with those that wait for them; then of the stopped ones.

    These have a run of their own, so that a day that is refused again bars no new one.

    Raises:
        FileNotFoundError: There is no folder of landed days.
    """
    there = _ingested(spark, pipeline, settings)
    new = set(days_landed(pipeline, RawEventsJob(pipeline, settings).landing)) - set(there)
    waiting = _waiting(spark, pipeline, settings, there)
    freed = set(waiting.held_back) if waiting.missing in new else set()
    stopped = {day for day in waiting.begun if day < waiting.missing}
    runs = [DaysToRun(sorted(new), sorted(new | freed)), DaysToRun([], sorted(stopped))]
    return [run for run in runs if run.compute]


def days_waiting(spark: SparkSession, pipeline: Pipeline, settings: Settings) -> Waiting:
    """The days that wait, be it for another day or for a run that was stopped."""
    return _waiting(spark, pipeline, settings, _ingested(spark, pipeline, settings))


def _waiting(
    spark: SparkSession, pipeline: Pipeline, settings: Settings, there: list[date]
) -> Waiting:
    """The same, of the days that were ingested, in order."""
    begun = waiting_days(pipeline, settings.warehouse)
    missing = pipeline.partitions.start
    for day in there:
        missing += timedelta(days=day == missing)
    marked = begun.rows(spark, ["unit"])["unit"].to_pylist() if begun.exists(spark) else []
    return Waiting(
        # Others are new, where they have landed.
        sorted(set(marked) & set(there)),
        [day for day in there if day > missing],
        missing,
    )


def run_days(
    spark: SparkSession, pipeline: Pipeline, settings: Settings, days: DaysToRun
) -> Iterator[tuple[str, JobResult]]:
    """Ingests landed days and computes what follows, as one run of all steps.

    A step that is not published ends its definition; the raw days' ends the run.

    Args:
        spark: The session.
        pipeline: The pipeline.
        settings: Where the tables and landed files lie.
        days: The days, there or not.

    Yields:
        The name of each job's first table and what became of it.

    Raises:
        DefinitionChangedError: A table holds rows of another definition; nothing was begun.
        FedByStreamError: A stream fills the tables; nothing was begun.
        FileNotFoundError: A day has no folder.
    """
    raw = RawEventsJob(pipeline, settings)
    of_windows = {name: window_jobs(pipeline, name, settings) for name in pipeline.windows}
    for job in (raw, *(job for jobs in of_windows.values() for job in jobs)):
        for table in job.tables:
            if table.exists(spark):
                table.require(spark)
    raw.refuse_stream(_log(spark, pipeline, settings))
    begun = waiting_days(pipeline, settings.warehouse)
    begun.create_if_missing(spark)
    frame = small_frame(spark, [(day,) for day in days.compute], begun.schema)
    begun.publish(frame, days.compute, len(days.compute))
    if days.ingest:
        result = run_job(raw, spark, days.ingest)
        yield raw.tables[0].name, result
        if not result.published:
            return
    ended = set(days.compute)
    for jobs in of_windows.values():
        for job in jobs:
            result = run_job(job, spark, days.compute)
            yield job.tables[0].name, result
            ended -= _held_back(result)
            if not result.published:
                ended.clear()
                break
    begun.withdraw(spark, sorted(ended))


def _held_back(result: JobResult) -> set[date]:
    return {day for day, facts in result.facts.items() if "held_back_by" in facts}


def _ingested(spark: SparkSession, pipeline: Pipeline, settings: Settings) -> list[date]:
    return sorted({row.unit for row in _log(spark, pipeline, settings)})


def _log(spark: SparkSession, pipeline: Pipeline, settings: Settings) -> ArrivalLog:
    arrival_log = source_tables(pipeline, settings.warehouse).arrival_log
    return read_log(spark, arrival_log) if arrival_log.exists(spark) else ()
