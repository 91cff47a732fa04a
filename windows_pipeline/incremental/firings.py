"""The firings that arrival units, or parts of them, bring to windows (rules E2, E4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from windows_pipeline.aggregates import Aggregate
from windows_pipeline.arrival.merge import Place, Waking
from windows_pipeline.compat.local_frame import small_frame
from windows_pipeline.engine.firings.kernel import AFTER, FiringSpec
from windows_pipeline.engine.firings.plan import fire
from windows_pipeline.engine.lateness import last_instant

FIRING_ARRIVAL = ("merged_as", "arrival_unit", "batch", "source_partition", "offset")
"""What orders records that met one stream time: their place in the merge, then how they came."""
_PLACE = "struct<_stream_time_ms: bigint, merged_as: string>"


class Reached(NamedTuple):
    """The places in the merge up to which it had come before a target unit, and after it."""

    before: Place
    after: Place


def unit_firings(
    records: DataFrame,
    windows: FiringSpec,
    aggregates: Sequence[Aggregate],
    reached: Mapping[int, Reached],
    wakings: Sequence[Waking],
    came_with: Column,
    *,
    with_earlier: bool = False,
) -> DataFrame:
    """The firings that come with each target unit: those of what it merged.

    Args:
        records: What `stream_time.records_to_read` gives of raw_events.
        windows: The windows, of a definition with a trigger, and when they fire.
        aggregates: What to compute of each pane.
        reached: How far the merge of the source partitions had come, by target.
        wakings: The parts of the log that the records are of and whose source partitions woke.
        came_with: Whether the record after which a window fired came with the target, over
            `_computed_day`, `after_unit` and `after_batch`.
        with_earlier: Whether to tell also the earlier firings of windows that each target found
            open, where it brought them new ones or closed them. Not of sessions.

    Returns:
        What `fire` gives with `FIRING_ARRIVAL`, and `_is_new`: whether it came with the target.
    """
    delay_ms = windows.windows.close_delay_ms
    placed = _merged(records, delay_ms, wakings)
    place = F.struct("_stream_time_ms", "merged_as")
    known = _beside(placed, reached).where(place <= F.col("reached_after"))
    known = known.withColumn("_is_new", F.col("_is_new") | (place > F.col("reached_before")))
    targets = dict.fromkeys(reached, windows)
    fired = fire(known, targets, ["key"], aggregates, FIRING_ARRIVAL, with_earlier=with_earlier)
    if not with_earlier:
        return fired.withColumn("_is_new", F.lit(True))
    # Of windows that were closed before, not all records were read.
    close_before_ms = F.col("reached_before")["_stream_time_ms"] - F.lit(delay_ms)
    was_open = last_instant(windows.windows, F.col("_window_end_ms")) >= close_before_ms
    told = _beside(fired, reached).where(was_open)
    after = F.struct("_stream_time_ms", F.col(f"{AFTER}merged_as").alias("merged_as"))
    is_new = came_with | (after > F.col("reached_before"))
    return told.withColumn("_is_new", is_new).drop("reached_before", "reached_after")


def _merged(records: DataFrame, delay_ms: int, wakings: Sequence[Waking]) -> DataFrame:
    """Records with their place in the merge: `_stream_time_ms` and `merged_as`."""
    # Of a source partition that wakes no record comes before the time in force (rule A4).
    stream_time_ms = F.col("_close_time_ms") + F.lit(delay_ms)
    timed = records.withColumn("_stream_time_ms", stream_time_ms)
    if not wakings:
        return timed.withColumn("merged_as", F.col("source_partition"))
    woke = small_frame(
        records.sparkSession,
        [(*waking[:3], *waking.place) for waking in wakings],
        "woke_unit date, woke_batch bigint, woke_partition string, woke_ms bigint, woke_as string",
    )
    at_that_place = (
        (F.col("arrival_unit") == F.col("woke_unit"))
        & F.col("batch").eqNullSafe(F.col("woke_batch"))
        & (F.col("source_partition") == F.col("woke_partition"))
        & (F.col("_stream_time_ms") == F.col("woke_ms"))
    )
    merged_as = F.coalesce("woke_as", "source_partition")
    both = timed.join(F.broadcast(woke), at_that_place, "left").withColumn("merged_as", merged_as)
    return both.drop(*woke.columns)


def _beside(rows: DataFrame, reached: Mapping[int, Reached]) -> DataFrame:
    """Rows with `reached_before` and `reached_after` of their target."""
    if len(reached) == 1:
        (one,) = reached.values()
        known = {"reached_before": one.before, "reached_after": one.after}
        return rows.withColumns({name: place_column(place) for name, place in known.items()})
    table = small_frame(
        rows.sparkSession,
        [(target, *places) for target, places in reached.items()],
        f"_computed_day int, reached_before {_PLACE}, reached_after {_PLACE}",
    )
    return rows.join(F.broadcast(table), "_computed_day")


def place_column(place: Place) -> Column:
    """A place, comparable to a struct of `_stream_time_ms` and `merged_as`."""
    return F.struct(
        F.lit(place.stream_time_ms).cast("bigint").alias("_stream_time_ms"),
        F.lit(place.source_partition).alias("merged_as"),
    )
