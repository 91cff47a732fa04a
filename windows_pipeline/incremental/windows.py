"""Windows of the records that a pipeline's arrival units bring, of each kind it may name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from windows_pipeline.aggregates import Aggregate
from windows_pipeline.engine.time_shards import settling_reach_ms, slice_length_ms, within_a_day
from windows_pipeline.engine.windows import evaluate
from windows_pipeline.incremental.rows import unit_rows
from windows_pipeline.kernels.windows.chunk import Closing, Target
from windows_pipeline.windows import (
    FixedWindows,
    ForwardSlidingWindows,
    GracedRows,
    PipelineWindows,
    SessionWindows,
    TimeWindows,
)

ARRIVAL = ("arrival_unit", "source_partition", "offset")
"""What orders the arrival of records that met one close time (rule A1)."""


def reach_ms(spec: FixedWindows) -> int:
    """How far before a unit's close time a record can lie and matter to its windows.

    A hopping window that ends after the close time holds records of less than its size before.
    A sliding one that ends at the close time holds those of one difference before; one more
    tells which earlier windows counted a record that settles with this unit (rule A5).
    """
    return spec.size_ms if isinstance(spec, TimeWindows) else settling_reach_ms(spec)


def last_instant(spec: PipelineWindows | ForwardSlidingWindows, end_ms: Column) -> Column:
    """The last millisecond that belongs to a window: it is closed if that lies before the close.

    The ends of hopping and tumbling windows do not belong to them (rules A4, C1).
    """
    return end_ms - F.lit(1) if isinstance(spec, TimeWindows) else end_ms


def last_end_ms(spec: FixedWindows) -> Column:
    """The end of the last window that holds a record, or, in a gap, of the one before."""
    time_ms = F.col("_event_time_ms")
    if isinstance(spec, TimeWindows):
        # The remainder is not negative, also before 1970 (rule C1).
        time_ms -= F.expr(f"pmod(_event_time_ms, {spec.advance_ms}L)")
    return time_ms + F.lit(spec.length_ms)


def is_late(spec: FixedWindows | GracedRows) -> Column:
    """Whether every window of a record was closed when it arrived (rules A5, F5)."""
    last_ms = F.col("_event_time_ms")
    if not isinstance(spec, GracedRows):
        last_ms = last_instant(spec, last_end_ms(spec))
    return F.coalesce(last_ms < F.col("_close_time_ms"), F.lit(False))


def is_uncovered(spec: FixedWindows | GracedRows) -> Column:
    """Whether no window covers a record: below the first, or in a gap (rules A5, B6, C1)."""
    in_gap = F.lit(False)
    if isinstance(spec, GracedRows):
        return in_gap
    # Of sliding windows the last one that holds a record starts with it.
    last_start_ms = F.col("_event_time_ms")
    if isinstance(spec, TimeWindows):
        in_gap = last_end_ms(spec) <= F.col("_event_time_ms")
        last_start_ms = last_end_ms(spec) - F.lit(spec.size_ms)
    if spec.first_window_start_ms is None:
        return in_gap
    return in_gap | (last_start_ms < F.lit(spec.first_window_start_ms))


def unit_windows(
    records: DataFrame,
    spec: PipelineWindows,
    aggregates: Sequence[Aggregate],
    closings: Mapping[int, Closing],
    *,
    only_closed: bool = False,
) -> DataFrame:
    """Computes the windows that each target unit changed or closed; see `evaluate`.

    Of row windows those that it closed; see `unit_rows`.

    Args:
        records: What `stream_time.records_to_read` gives; for row windows each record once.
        spec: The windows.
        aggregates: What to compute.
        closings: By target, the close times before and after it.
        only_closed: Whether open windows may be left out. Sessions are all told: which records
            are late follows from them.
    """
    if isinstance(spec, GracedRows):
        return unit_rows(records.where(~is_late(spec)), spec, aggregates, closings)
    targets = {target: Target(spec, *closing) for target, closing in closings.items()}
    if isinstance(spec, SessionWindows):
        return evaluate(records, targets, ["key"], aggregates, ARRIVAL, tells_uncounted=True)
    # What no window counts need not be moved.
    in_time = records.where(~is_late(spec) & ~is_uncovered(spec))
    # Where all units are held back none is asked for, and there is nothing to cut.
    length_ms = within_a_day(slice_length_ms(spec)) if targets else None
    return evaluate(
        in_time,
        targets,
        ["key"],
        aggregates,
        tells_uncounted=True,
        slice_ms=length_ms,
        only_closed=only_closed,
    )
