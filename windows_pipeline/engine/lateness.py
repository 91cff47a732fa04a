"""Lateness as Spark expressions (rule A5); kernels/windows/assign has the rule for arrays."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

from windows_pipeline.windows import PipelineWindows


def last_instant(spec: PipelineWindows, end_ms: Column) -> Column:
    """The last millisecond of a window, which is closed once the close time is later.

    The ends of hopping and tumbling windows do not belong to them (rules A4, C1).
    """
    return end_ms - F.lit(1) if spec.excludes_end else end_ms


def is_late(spec: PipelineWindows) -> Column:
    """Whether every window of a record was closed when it arrived (rules A5, F5).

    Only for windows for which other records do not decide this (`late_after_ms`).
    """
    last_ms = _last_start_ms(spec) + F.lit(spec.late_after_ms)
    return F.coalesce(last_ms < F.col("_close_time_ms"), F.lit(False))


def is_outside_windows(spec: PipelineWindows) -> Column:
    """Whether a record lies before the first window, or in a gap (rules A5, B6, C1)."""
    is_outside = F.lit(False)
    if spec.step_ms is not None:
        last_ms = _last_start_ms(spec) + F.lit(spec.late_after_ms)
        is_outside = last_ms < F.col("_event_time_ms")
    if spec.first_window_start_ms is not None:
        is_outside |= _last_start_ms(spec) < F.lit(spec.first_window_start_ms)
    return is_outside


def _last_start_ms(spec: PipelineWindows) -> Column:
    """The start of the last window that contains a record; in a gap, that of the window before."""
    time_ms = F.col("_event_time_ms")
    if spec.step_ms is None:
        return time_ms
    # pmod is not negative before 1970 either (rule C1).
    return time_ms - F.expr(f"pmod(_event_time_ms, {spec.step_ms}L)")
