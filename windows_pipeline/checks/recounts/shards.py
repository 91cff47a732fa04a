"""Cuts and sorts what is recounted: elsewhere than the engine cuts, and by other code."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from windows_pipeline.kernels.order import SORT_KEY
from windows_pipeline.tuning import Tuning

SHARD, IS_OWN = "_shard", "_is_own"
"""The columns of a row's shard, and of whether the row is no copy of a row of another shard."""
_LEAST_CELL_MS = 60_000


def by_group(rows: DataFrame, group: Sequence[str], order: Sequence[str] = ()) -> DataFrame:
    """Sends each group to one task, in the order that `kernels.groups.sorted_groups` takes."""
    keyed = rows.repartition(*group).withColumn(SORT_KEY, F.xxhash64(*group))
    return keyed.sortWithinPartitions(SORT_KEY, *group, *order)


def recount_shard_ms(near_ms: int, tuning: Tuning) -> int | None:
    """How long a shard is for rows that depend on rows this near; None where nothing is cut."""
    length_ms = near_ms * max(tuning.least_shard_look_backs * 3 // 2, 4)
    return length_ms if length_ms <= tuning.max_shard_ms else None


def near_in_shards(
    rows: DataFrame, own_ms: Column, others_ms: Sequence[Column], length_ms: int
) -> DataFrame:
    """Puts rows into the shards of several instants, as copies except for the first instant.

    Args:
        rows: Any columns.
        own_ms: The instant whose shard returns the row.
        others_ms: Instants whose shards need the row, too.
        length_ms: How long a shard is.

    Returns:
        The rows with `_shard` (bigint) and `_is_own` (boolean).
    """
    # The engine's cuts lie at multiples of its shards' length: a record lost there shows here.
    shift_ms = length_ms // 2
    own, *others = (
        F.floor((at_ms - F.lit(shift_ms)) / F.lit(length_ms)) for at_ms in (own_ms, *others_ms)
    )
    placed = rows.withColumn(SHARD, F.explode(F.array_distinct(F.array(own, *others))))
    return placed.withColumn(IS_OWN, F.col(SHARD) == own)


def between_sessions(rows: DataFrame, time_ms: Column, gap_ms: int, tuning: Tuning) -> DataFrame:
    """Cuts the rows of a single key where no row comes for longer than the gap.

    Args:
        rows: Any columns.
        time_ms: The time of a row.
        gap_ms: The gap.
        tuning: Whether all rows have one key, and how many make a shard.

    Returns:
        The rows with `_shard` (bigint); the same frame where nothing is cut.
    """
    least = tuning.shard_records * 3 // 2
    if not tuning.one_key or rows.count() < 2 * least:
        return rows
    # Between cells of time that are not neighbours lies more than a gap.
    cell = F.floor(time_ms / F.lit(max(gap_ms + 1, _LEAST_CELL_MS))).alias("_cell")
    in_order = Window.orderBy("_cell")
    counted = rows.groupBy(cell).count()
    before = F.sum("count").over(in_order) - F.col("count")
    is_near = F.col("_cell") - F.lag("_cell").over(in_order) == 1
    begun = counted.withColumn("_before", F.when(F.coalesce(~is_near, F.lit(True)), before))
    shard = F.floor(F.max("_before").over(in_order) / F.lit(least)).alias(SHARD)
    return rows.withColumn("_cell", cell).join(begun.select("_cell", shard), "_cell").drop("_cell")
