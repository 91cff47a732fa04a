"""Lateness as Spark expressions (rule A5); kernels/windows/assign has the rule for arrays."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

from windows_pipeline.windows import (
    FixedWindows,
    ForwardSlidingWindows,
    GracedRows,
    PipelineWindows,
    TimeWindows,
)


def last_instant(spec: PipelineWindows, end_ms: Column) -> Column:
    """The last millisecond of a window, which is closed once the close time is later.

    The ends of hopping and tumbling windows do not belong to them (rules A4, C1).
    """
    return end_ms - F.lit(1) if spec.excludes_end else end_ms


def last_end_ms(spec: FixedWindows) -> Column:
    """The end of the last window that contains a record; in a gap, that of the window before."""
    time_ms = F.col("_event_time_ms")
    if isinstance(spec, TimeWindows):
        # pmod is not negative before 1970 either (rule C1).
        time_ms -= F.expr(f"pmod(_event_time_ms, {spec.advance_ms}L)")
    return time_ms + F.lit(spec.length_ms)


def is_late(spec: FixedWindows | GracedRows) -> Column:
    """Whether every window of a record was closed when it arrived (rules A5, F5)."""
    last_ms = F.col("_event_time_ms")
    if not isinstance(spec, GracedRows):
        last_ms = last_instant(spec, last_end_ms(spec))
    return F.coalesce(last_ms < F.col("_close_time_ms"), F.lit(False))


def is_outside_windows(spec: FixedWindows | GracedRows) -> Column:
    """Whether a record lies before the first window, or in a gap (rules A5, B6, C1)."""
    in_gap = F.lit(False)
    if isinstance(spec, (GracedRows, ForwardSlidingWindows)):
        return in_gap
    # The last sliding window that contains a record starts at the record.
    last_start_ms = F.col("_event_time_ms")
    if isinstance(spec, TimeWindows):
        in_gap = last_end_ms(spec) <= F.col("_event_time_ms")
        last_start_ms = last_end_ms(spec) - F.lit(spec.size_ms)
    if spec.first_window_start_ms is None:
        return in_gap
    return in_gap | (last_start_ms < F.lit(spec.first_window_start_ms))
