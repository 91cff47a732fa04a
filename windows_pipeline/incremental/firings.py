"""The firings that arrival units, or micro-batches of them, bring to windows (rules E2, E4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from windows_pipeline.aggregates import Aggregate
from windows_pipeline.arrival.merge import Position, Resumed
from windows_pipeline.arrival.watermark import close_ms
from windows_pipeline.compat.local_frame import small_frame
from windows_pipeline.config import BoundAggregates
from windows_pipeline.engine.firings.final import at_closing, with_final
from windows_pipeline.engine.firings.kernel import AFTER, FiringSpec
from windows_pipeline.engine.firings.plan import advances_of, fire
from windows_pipeline.engine.time_shards import shard_length_ms, within_a_day
from windows_pipeline.engine.windows import PARTLY_LATE
from windows_pipeline.incremental.aggregated_values import (
    REASONS,
    bound_aggregates,
    with_failures,
    with_values,
)
from windows_pipeline.incremental.definition_records import PASSES
from windows_pipeline.kernels.windows.chunk import Closing
from windows_pipeline.tuning import TUNING, Tuning
from windows_pipeline.windows import FiringWindows, PipelineWindows
from windows_pipeline.windows.firing.triggers import Trigger

FIRING_ARRIVAL = ("_merged_as", "arrival_unit", "batch", "source_partition", "offset")
"""The columns that order records of one stream time: position in the merge, then arrival."""
_POSITION_TYPE = "struct<_stream_time_ms: bigint, _merged_as: string>"


class Positions(NamedTuple):
    """The positions of the merge before and after a computed day."""

    before: Position
    after: Position

    def closing(self, delay_ms: int) -> Closing:
        """The close times of windows that are this far behind the watermark (rule A4)."""
        return Closing(*(close_ms(at.stream_time_ms, delay_ms) for at in self))


def arrival_unit_firings(
    records: DataFrame,
    spec: PipelineWindows,
    trigger: Trigger,
    aggregates: Sequence[Aggregate] | BoundAggregates,
    positions: Mapping[int, Positions],
    resumed: Sequence[Resumed],
    came_with: Column,
    *,
    closed: DataFrame | None = None,
    with_earlier: bool = False,
    tuning: Tuning = TUNING,
) -> DataFrame:
    """Computes the firings that the records merged by each computed day cause.

    Args:
        records: The frame that `records.records_to_read` returns for `definition_records`.
        spec: The windows.
        trigger: When they fire.
        aggregates: What to compute of each pane.
        positions: The positions of the merge around each computed day, by day number.
        resumed: The parts of source partitions that resumed, among the arrival units of the
            records.
        came_with: Over `_computed_day`, `_after_arrival_unit` and `_after_batch`: whether the
            record after which a window fired arrived with the computed day.
        closed: The windows that each computed day closed, with these aggregates, as
            `arrival_unit_windows` returns them; None if the trigger has no final firings.
        with_earlier: Whether to return the earlier firings, too, of windows that were open before
            the computed day and that it made fire or closed. Final firings need them.
        tuning: How records are cut into time shards, which they are if all have one key.

    Returns:
        The frame that `fire` returns with `FIRING_ARRIVAL`, and `_is_new` (boolean): whether the
        firing came with the computed day. Of row windows also the columns that name the row.
    """
    merged = _merged(records, spec, positions, resumed)
    windows, bound = FiringSpec(trigger.fitted(spec), trigger), bound_aggregates(aggregates)
    advances = advances_of(merged, [windows], FIRING_ARRIVAL)
    closing = None
    if closed is not None:
        if spec.row_order and advances:  # the records, too, are of the last day
            advances = dict.fromkeys(positions, advances[max(positions)])
        found = closed.where("closed").drop(*PARTLY_LATE, REASONS)
        closing = at_closing(found, spec, advances, merged.schema, FIRING_ARRIVAL)
        closing = closing.withColumn("_is_new", F.lit(True))
        if trigger.final_only:
            return closing
    fired = fire(
        with_values(merged, bound),
        dict.fromkeys(positions, windows),
        ["key"],
        bound.aggregates,
        FIRING_ARRIVAL,
        with_earlier=with_earlier,
        with_failed=True,
        passes=PASSES if PASSES in records.columns else None,
        shard_ms=_shard_ms(windows.windows, tuning) if positions else None,
        advances=advances,
    )
    fired = with_failures(fired, bound).drop(REASONS)
    if not with_earlier:
        return fired.withColumn("_is_new", F.lit(True))
    # The records do not cover windows that were closed before the computed day.
    close_before_ms = F.col("_position_before")["_stream_time_ms"] - F.lit(spec.close_delay_ms)
    was_open = spec.last_instant(F.col("_window_end_ms")) >= close_before_ms
    covered = _with_positions(fired, positions).where(was_open)
    fired_at = F.struct("_stream_time_ms", F.col(f"{AFTER}_merged_as").alias("_merged_as"))
    is_new = came_with | (fired_at > F.col("_position_before"))
    fired = covered.withColumn("_is_new", is_new).drop("_position_before", "_position_after")
    return fired if closing is None else with_final(fired, closing, ["key"])


def _merged(
    records: DataFrame,
    spec: PipelineWindows,
    positions: Mapping[int, Positions],
    resumed: Sequence[Resumed],
) -> DataFrame:
    """The records that the merge has passed; those that it passed with their day are new."""
    around = positions
    if spec.row_order and positions:  # each record is there once, for the last day
        before, after = zip(*positions.values(), strict=True)
        around = {max(positions): Positions(min(before), max(after))}
    timed = _with_merge_position(records, spec.close_delay_ms, resumed)
    position = F.struct("_stream_time_ms", "_merged_as")
    merged = _with_positions(timed, around).where(position <= F.col("_position_after"))
    return merged.withColumn("_is_new", F.col("_is_new") | (position > F.col("_position_before")))


def _shard_ms(windows: FiringWindows, tuning: Tuning) -> int | None:
    """How long time shards are; None for no shards.

    The windows of many keys are many tasks without shards, each of which would go through all
    advances of the watermark. An empty sliding window begins with a record of any shard.
    """
    if not tuning.one_key or windows.has_silences:
        return None
    return within_a_day(shard_length_ms(windows, tuning), tuning)


def _with_merge_position(
    records: DataFrame, delay_ms: int, resumed: Sequence[Resumed]
) -> DataFrame:
    """Adds each record's position in the merge: `_stream_time_ms` and `_merged_as`."""
    # No record of a source partition that resumes precedes the watermark (rule A4).
    stream_time_ms = F.col("_close_time_ms") + F.lit(delay_ms)
    timed = records.withColumn("_stream_time_ms", stream_time_ms)
    if not resumed:
        return timed.withColumn("_merged_as", F.col("source_partition"))
    parts = small_frame(
        records.sparkSession,
        [(*part[:3], *part.position) for part in resumed],
        "_resumed_arrival_unit date, _resumed_batch bigint, _resumed_partition string, "
        "_resumed_ms bigint, _resumed_as string",
    )
    is_at_watermark = (
        (F.col("arrival_unit") == F.col("_resumed_arrival_unit"))
        & F.col("batch").eqNullSafe(F.col("_resumed_batch"))
        & (F.col("source_partition") == F.col("_resumed_partition"))
        & (F.col("_stream_time_ms") == F.col("_resumed_ms"))
    )
    joined = timed.join(F.broadcast(parts), is_at_watermark, "left")
    merged_as = F.coalesce("_resumed_as", "source_partition")
    return joined.withColumn("_merged_as", merged_as).drop(*parts.columns)


def _with_positions(rows: DataFrame, positions: Mapping[int, Positions]) -> DataFrame:
    """Adds `_position_before` and `_position_after` of each row's computed day."""
    if len(positions) == 1:
        (around,) = positions.values()
        known = {"_position_before": around.before, "_position_after": around.after}
        return rows.withColumns({name: position_column(at) for name, at in known.items()})
    table = small_frame(
        rows.sparkSession,
        [(day, *around) for day, around in positions.items()],
        f"_computed_day int, _position_before {_POSITION_TYPE}, _position_after {_POSITION_TYPE}",
    )
    return rows.join(F.broadcast(table), "_computed_day")


def position_column(position: Position) -> Column:
    """A position as a struct that compares with one of `_stream_time_ms` and `_merged_as`."""
    return F.struct(
        F.lit(position.stream_time_ms).cast("bigint").alias("_stream_time_ms"),
        F.lit(position.source_partition).alias("_merged_as"),
    )
