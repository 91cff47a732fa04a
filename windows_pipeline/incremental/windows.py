"""Windows of the records that a pipeline's arrival units bring, of each kind it may name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame

from windows_pipeline.aggregates import Aggregate
from windows_pipeline.engine.lateness import is_late, is_outside_windows
from windows_pipeline.engine.time_shards import (
    partly_late_look_back_ms,
    shard_length_ms,
    within_a_day,
)
from windows_pipeline.engine.windows import evaluate
from windows_pipeline.incremental.rows import unit_rows
from windows_pipeline.kernels.windows.chunk import Closing, ComputedDay
from windows_pipeline.tuning import TUNING, Tuning
from windows_pipeline.windows import (
    FixedWindows,
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
    return spec.size_ms if isinstance(spec, TimeWindows) else partly_late_look_back_ms(spec)


def unit_windows(
    records: DataFrame,
    spec: PipelineWindows,
    aggregates: Sequence[Aggregate],
    closings: Mapping[int, Closing],
    *,
    only_closed: bool = False,
    tuning: Tuning = TUNING,
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
        tuning: How finely a key's time is cut into time shards.
    """
    if isinstance(spec, GracedRows):
        return unit_rows(records.where(~is_late(spec)), spec, aggregates, closings, tuning)
    targets = {target: ComputedDay(spec, *closing) for target, closing in closings.items()}
    if isinstance(spec, SessionWindows):
        return evaluate(records, targets, ["key"], aggregates, ARRIVAL, with_partly_late=True)
    # What no window counts need not be moved.
    in_time = records.where(~is_late(spec) & ~is_outside_windows(spec))
    # Where all units are held back none is asked for, and there is nothing to cut.
    length_ms = within_a_day(shard_length_ms(spec, tuning), tuning) if targets else None
    return evaluate(
        in_time,
        targets,
        ["key"],
        aggregates,
        with_partly_late=True,
        shard_ms=length_ms,
        only_closed=only_closed,
    )
