"""Stores the watermark after each landed day in the arrival log (rule A4)."""

from __future__ import annotations

from datetime import date

import pyarrow as pa
from pyspark.sql import SparkSession

from windows_pipeline.arrival.log import ArrivalLog, read_log
from windows_pipeline.arrival.watermark import build_timeline
from windows_pipeline.kernels.time import NEVER_MS
from windows_pipeline.storage.table import Table


def store_watermarks(
    spark: SparkSession, arrival_log: Table, first_day: date, idle_after_ms: int | None
) -> None:
    """Stores the watermark after each day before the first missing one.

    A watermark needs all earlier days. So a day that lands late, or lands again, changes the
    watermarks of the days after it, too. A stream stores its watermarks itself, and this function
    leaves them alone.

    Args:
        spark: The session.
        arrival_log: The pipeline's arrival log.
        first_day: The pipeline's first arrival unit.
        idle_after_ms: A source partition that lags behind the furthest one by more does not hold
            the watermark back; None for no limit.
    """
    # Another run may change the log between reading and writing, so the loop reads it again.
    while wrong := _wrong_watermarks(read_log(spark, arrival_log), first_day, idle_after_ms):
        watermarks_us = [None if ms is None else ms * 1_000 for ms in wrong.values()]
        columns = {
            "arrival_unit": pa.array([*wrong], pa.date32()),
            "watermark": pa.array(watermarks_us, pa.timestamp("us", "UTC")),
        }
        arrival_log.update_arrival_units(spark, pa.table(columns))


def _wrong_watermarks(
    log: ArrivalLog, first_day: date, idle_after_ms: int | None
) -> dict[date, int | None]:
    """The right watermark of each landed day that has another one stored; None for no watermark."""
    if any(row.batch is not None for row in log):
        return {}
    without_stored = (row._replace(watermark_ms=None) for row in log)
    arrival_units = build_timeline(without_stored, first_day, idle_after_ms).arrival_units
    right_ms = {
        arrival_unit.day: arrival_unit.watermark_after_ms
        for arrival_unit in arrival_units
        if arrival_unit.watermark_after_ms > NEVER_MS
    }
    return {
        row.arrival_unit: right_ms.get(row.arrival_unit)
        for row in log
        if row.watermark_ms != right_ms.get(row.arrival_unit)
    }
