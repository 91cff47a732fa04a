"""Computes the windows that arrival units changed or closed, for every kind of window (E4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame

from windows_pipeline.aggregates import Aggregate
from windows_pipeline.config import BoundAggregates
from windows_pipeline.engine.lateness import is_late, is_outside_windows
from windows_pipeline.engine.time_shards import (
    partly_late_look_back_ms,
    shard_length_ms,
    within_a_day,
)
from windows_pipeline.engine.windows import evaluate_windows
from windows_pipeline.incremental.aggregated_values import (
    bound_aggregates,
    with_failures,
    with_values,
)
from windows_pipeline.incremental.rows import arrival_unit_rows
from windows_pipeline.kernels.windows.chunk import Closing, ComputedDay
from windows_pipeline.tuning import TUNING, Tuning
from windows_pipeline.windows import (
    FixedWindows,
    GracedRows,
    PipelineWindows,
    SessionWindows,
    SlidingWindows,
)

ARRIVAL = ("arrival_unit", "source_partition", "offset")
"""The columns that order records of one close time by arrival (rule A1)."""


def lookback_ms(spec: FixedWindows) -> int:
    """How far before an arrival unit's close time a record can matter to its windows, in ms.

    A hopping window that ends after the close time reaches back by less than its size. A sliding
    window that ends at the close time reaches back by one time difference. One more difference
    shows which earlier windows counted a partly late record (rule A5). A forward window starts at
    its first record, and each record that is not late counts in the window that it makes.
    """
    return partly_late_look_back_ms(spec) if isinstance(spec, SlidingWindows) else spec.length_ms


def arrival_unit_windows(
    records: DataFrame,
    spec: PipelineWindows,
    aggregates: Sequence[Aggregate] | BoundAggregates,
    closings: Mapping[int, Closing],
    *,
    only_closed: bool = False,
    tuning: Tuning = TUNING,
) -> DataFrame:
    """Computes the windows that each computed day changed or closed; see `evaluate_windows`.

    An aggregate that can't be computed is null, and its name is in `failed` (rule G3). Of row
    windows only those that the day closed are returned; see `arrival_unit_rows`.

    Args:
        records: The frame that `records.records_to_read` returns; for row windows each record
            once; of sessions it may be cut by `in_record_shards`.
        spec: The windows.
        aggregates: What to compute; a definition's are bound to its source.
        closings: The close times before and after each computed day, by day number.
        only_closed: Whether to leave open windows out. Open sessions are always returned, because
            they decide which records are late.
        tuning: How finely a key's time is cut into time shards.
    """
    bound = bound_aggregates(aggregates)
    found = _arrival_unit_windows(
        with_values(records, bound),
        spec,
        bound.aggregates,
        closings,
        only_closed=only_closed,
        tuning=tuning,
    )
    return with_failures(found, bound)


def _arrival_unit_windows(
    records: DataFrame,
    spec: PipelineWindows,
    aggregates: Sequence[Aggregate],
    closings: Mapping[int, Closing],
    *,
    only_closed: bool,
    tuning: Tuning,
) -> DataFrame:
    """See `arrival_unit_windows`."""
    if isinstance(spec, GracedRows):
        return arrival_unit_rows(records.where(~is_late(spec)), spec, aggregates, closings, tuning)
    computed_days = {day: ComputedDay(spec, *closing) for day, closing in closings.items()}
    if isinstance(spec, SessionWindows):
        return evaluate_windows(
            records,
            computed_days,
            ["key"],
            aggregates,
            ARRIVAL,
            with_partly_late=True,
            with_failed=True,
        )
    # Records that no window counts need no shuffle.
    in_time = records.where(~is_late(spec) & ~is_outside_windows(spec))
    # If a missing day blocks all days, there is nothing to cut into time shards.
    length_ms = within_a_day(shard_length_ms(spec, tuning), tuning) if computed_days else None
    return evaluate_windows(
        in_time,
        computed_days,
        ["key"],
        aggregates,
        with_partly_late=True,
        shard_ms=length_ms,
        only_closed=only_closed,
        with_failed=True,
    )
