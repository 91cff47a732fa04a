"""Lateness of records in Spark, by the rule of the windows' spec (rule A5)."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

from windows_pipeline.windows import PipelineWindows


def is_late(spec: PipelineWindows) -> Column:
    """Whether a record is late; see `Graced.is_late`. Without a close time none is."""
    start_ms = spec.last_start(F.col("_event_time_ms"))
    return F.coalesce(spec.is_late(start_ms, F.col("_close_time_ms")), F.lit(False))


def is_outside_windows(spec: PipelineWindows) -> Column:
    """Whether a record lies before the first window, or in a gap; see `Graced.is_outside`."""
    time_ms = F.col("_event_time_ms")
    return spec.is_outside(spec.last_start(time_ms), time_ms)
