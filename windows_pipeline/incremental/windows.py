"""Computes the windows that arrival units changed or closed, for every kind of window (E4)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from pyspark.sql import DataFrame

from windows_pipeline.aggregates import Aggregate
from windows_pipeline.config import BoundAggregates
from windows_pipeline.engine.lateness import is_late, is_outside_windows
from windows_pipeline.engine.time_shards import shard_length_ms, within_a_day
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
    ForwardSlidingWindows,
    GracedRows,
    PipelineWindows,
    SessionWindows,
    SlidingWindows,
    TimeWindows,
    WindowSpec,
)

ARRIVAL = ("arrival_unit", "source_partition", "offset")
"""The columns that order records of one close time by arrival (rule A1)."""


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
    found = _COMPUTED[type(spec)](
        with_values(records, bound),
        spec,
        bound.aggregates,
        closings,
        only_closed=only_closed,
        tuning=tuning,
    )
    return with_failures(found, bound)


def _by_time(
    records: DataFrame,
    spec: WindowSpec,
    aggregates: Sequence[Aggregate],
    closings: Mapping[int, Closing],
    *,
    only_closed: bool,
    tuning: Tuning,
) -> DataFrame:
    """See `arrival_unit_windows`."""
    computed_days = {day: ComputedDay(spec, *closing) for day, closing in closings.items()}
    # Where records decide by themselves whether they are late, late ones need no shuffle.
    decides_alone = spec.late_after_ms is not None
    if decides_alone:
        records = records.where(~is_late(spec) & ~is_outside_windows(spec))
    # If a missing day blocks all days, there is nothing to cut into time shards.
    length_ms = within_a_day(shard_length_ms(spec, tuning), tuning) if computed_days else None
    return evaluate_windows(
        records,
        computed_days,
        ["key"],
        aggregates,
        () if decides_alone else ARRIVAL,
        with_partly_late=True,
        shard_ms=length_ms,
        only_closed=only_closed and decides_alone,
        with_failed=True,
    )


_COMPUTED: Mapping[type, Callable[..., DataFrame]] = {
    SlidingWindows: _by_time,
    ForwardSlidingWindows: _by_time,
    TimeWindows: _by_time,
    SessionWindows: _by_time,
    GracedRows: arrival_unit_rows,
}
"""What computes the windows of each kind."""
