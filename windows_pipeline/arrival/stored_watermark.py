"""The stream time in force after each landed day, stored with the day (rule A4)."""

from __future__ import annotations

from datetime import date

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from windows_pipeline.arrival.log import ArrivalLog, arrivals_in, read_log
from windows_pipeline.arrival.watermark import build_timeline
from windows_pipeline.compat.local_frame import small_frame
from windows_pipeline.kernels.time import NEVER_MS
from windows_pipeline.storage.table import Table


def store_decisions(
    spark: SparkSession, arrival_log: Table, first_day: date, idle_after_ms: int | None
) -> None:
    """Stores what was decided after each day up to the first one that is missing.

    A day is decided on once all before it are in, so one that comes later, or is ingested again,
    decides for those after it, too. Past a missing day nothing is decided. A stream stores what it
    decides itself, and no run changes that.

    Args:
        spark: The session.
        arrival_log: A pipeline's log.
        first_day: The pipeline's first unit.
        idle_after_ms: How far a source partition may lag and still hold windows open.
    """
    # Another run may have changed the log since it was read: whoever is last finds nothing wrong.
    while wrong := _wrong(read_log(spark, arrival_log), first_day, idle_after_ms):
        frame = small_frame(spark, wrong.items(), "arrival_unit date, watermark bigint")
        instants = frame.withColumn("watermark", F.timestamp_millis("watermark"))
        arrival_log.update_units(instants)


def _wrong(log: ArrivalLog, first_day: date, idle_after_ms: int | None) -> dict[date, int | None]:
    """What is to be stored with landed days that have something else; None of no decision."""
    if any(row.batch is not None for row in log):
        return {}
    undecided = (row._replace(watermark_ms=None) for row in log)
    units = build_timeline(arrivals_in(undecided), first_day, idle_after_ms).units
    decided = {
        unit.day: unit.watermark_after_ms for unit in units if unit.watermark_after_ms > NEVER_MS
    }
    return {
        row.arrival_unit: decided.get(row.arrival_unit)
        for row in log
        if row.watermark_ms != decided.get(row.arrival_unit)
    }
