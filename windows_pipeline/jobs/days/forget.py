"""Deletes an arrival day that landed by mistake, unless a final result has its records."""

from __future__ import annotations

from datetime import date, timedelta

from pyspark.sql import SparkSession

from windows_pipeline.arrival.stored_watermark import store_watermarks
from windows_pipeline.config import Pipeline
from windows_pipeline.jobs.computed_days import withdraw_computed_days
from windows_pipeline.jobs.raw_events import RawEventsJob
from windows_pipeline.query.tables.local import NoTableError
from windows_pipeline.settings import Settings
from windows_pipeline.storage.tables import PipelineTables, tables_of


def forget_day(spark: SparkSession, pipeline: Pipeline, settings: Settings, day: date) -> None:
    """Deletes the rows of a day from every table, as if the day had not landed (rules A2, E1).

    The row in the arrival log is deleted first; without that row, no table counts the day. A
    deletion that was killed and is run again leaves the same tables.

    Args:
        spark: The session.
        pipeline: A pipeline of landed days.
        settings: Where the tables lie.
        day: The day.

    Raises:
        FedByStreamError: A stream fills the tables.
        NoTableError: Nothing is ingested so far.
        ValueError: Later days or final windows depend on the day.
    """
    tables = tables_of(pipeline, settings.warehouse)
    raw = RawEventsJob(tables, settings)
    if not raw.tables[-1].exists(spark):
        raise NoTableError(raw.tables[-1])
    log = raw.arrived_so_far(spark)
    raw.refuse_stream(log)
    ingested = {row.arrival_unit for row in log}
    prefix_end = pipeline.partitions.start
    while prefix_end in ingested:
        prefix_end += timedelta(days=1)
    if day in ingested and day < prefix_end:
        _require_inconsequential(spark, tables, day, ingested)
    decided_by = pipeline.partitions.start, pipeline.source.idle_after
    arrival_log = raw.tables[-1]
    arrival_log.withdraw(spark, [day])
    store_watermarks(spark, arrival_log, *decided_by)
    withdraw_computed_days(spark, tables, [day])
    for table in [*tables.written, raw.files]:
        if table.exists(spark):
            table.withdraw(spark, [day])


def _require_inconsequential(
    spark: SparkSession, tables: PipelineTables, day: date, ingested: set[date]
) -> None:
    """Requires that no final window and no later day depends on a day.

    Raises:
        ValueError: The day closed windows, or the day after it is ingested.
    """
    pipeline = tables.pipeline
    later = day + timedelta(days=1) in ingested
    closed = [
        name
        for name in pipeline.windows
        if (final := tables.of(name).final_windows).exists(spark)
        and final.arrival_units(spark, [day])
    ]
    if not later and not closed:
        return
    why = "later days follow it" if later else f"it closed windows of {', '.join(closed)}"
    raise ValueError(
        f"{pipeline.name}: {day} can be removed only while nothing depends on it, but {why}. "
        "Remove the wrong files from its folder and ingest it again: windows-pipeline run "
        f"{pipeline.name} --from {day} --to {day}. Then correct the final windows"
    )
