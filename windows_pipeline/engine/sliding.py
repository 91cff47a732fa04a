"""Sliding windows of the pipeline's records (rules B2 to B8)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from windows_pipeline.aggregates import Aggregate
from windows_pipeline.engine.chunk import Closing, Target
from windows_pipeline.engine.evaluation import evaluate
from windows_pipeline.windows import SlidingWindows


def reach_ms(spec: SlidingWindows) -> int:
    """How far before a unit's close time a record can lie and matter to its windows.

    A window that ends at the close time holds records of one difference before. One more
    tells which earlier windows counted a record that settles with this unit (rule A5).
    """
    return 2 * (spec.time_difference_ms + 1)


def is_late(spec: SlidingWindows) -> Column:
    """Whether every window of a record was closed when it arrived (rule A5)."""
    last_end = F.col("event_time_ms") + F.lit(spec.time_difference_ms)
    return F.coalesce(last_end < F.col("close_time_ms"), F.lit(False))


def is_uncovered(spec: SlidingWindows) -> Column:
    """Whether no window covers a record: it lies below the clamp (rules A5, B6)."""
    if spec.first_window_start_ms is None:
        return F.lit(False)
    return F.col("event_time_ms") < F.lit(spec.first_window_start_ms)


def sliding_windows(
    records: DataFrame,
    spec: SlidingWindows,
    aggregates: Sequence[Aggregate],
    closings: Mapping[int, Closing],
) -> DataFrame:
    """Computes the windows that each target unit changed or closed; see `evaluate`.

    Args:
        records: What `stream_time.records_to_read` gives.
        spec: The windows.
        aggregates: What to compute.
        closings: By target, the close times before and after it.
    """
    # What no window counts need not be moved.
    in_time = records.where(~is_late(spec) & ~is_uncovered(spec))
    targets = {target: Target(spec, *closing) for target, closing in closings.items()}
    return evaluate(in_time, targets, ["key"], aggregates, tells_uncounted=True)
