"""Shards of the records of one key for windows that begin with the first record of all.

Such a window holds the records of all shards before its row's own. They are aggregated where they
lie, into a few slices a shard (see `preaggregation`), which come before the records of each later
shard. Only what is kept of a slice must not grow with its records: counts, sums, means, variances,
extremes, first and last values, not lists, distinct values or what a user's code computes.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from windows_pipeline.aggregates import Aggregate
from windows_pipeline.compat.local_frame import small_frame
from windows_pipeline.engine.preaggregation.combine import MAX_SLICE_RECORDS
from windows_pipeline.engine.preaggregation.slices import (
    has_short_states,
    in_groups,
    with_separate_columns,
)
from windows_pipeline.engine.record_shards import (
    ROWS_BEFORE,
    Cuts,
    cuts_since_the_first,
    in_shards,
)
from windows_pipeline.engine.shard_plan import Placement
from windows_pipeline.engine.time_shards import IN_HOME_SHARD, TIME_SHARD
from windows_pipeline.tuning import Tuning
from windows_pipeline.windows import GracedRows

OF_EARLIER = "_of_earlier"
"""The column of whether a row stands for records that come before its shard's first one."""
_STRETCH = "_stretch"
"""The column of the number of a stretch: the records between the first ones of two shards."""


class RunningShards(NamedTuple):
    """Records in shards, after what stands for earlier ones.

    Attributes:
        rows: What `in_record_shards` returns, with the columns of `states` and `_of_earlier`
            (boolean): a row where it is true stands for earlier records. It has no home shard,
            comes before the shard's records, and has partial results in place of values.
        states: The columns of the aggregates' partial results.
    """

    rows: DataFrame
    states: list[str]


def in_running_shards(
    records: DataFrame,
    spec: GracedRows,
    aggregates: Sequence[Aggregate],
    keep: Sequence[str],
    tuning: Tuning,
) -> RunningShards | None:
    """Puts records into shards, and before them what their windows need of earlier records.

    Args:
        records: `_computed_day`, `key`, what `in_record_shards` takes, the columns of `keep`, and
            those that the aggregates take.
        spec: The windows.
        aggregates: What is computed of them.
        keep: Columns that sort, the event time or all by which arrival is ordered among them.
        tuning: How finely records are cut.

    Returns:
        None where records stay one shard: they are few or not of one key, no window begins with
        the first record, or a partial result of an aggregate grows with its records.
    """
    if not has_short_states(aggregates):
        return None
    cuts = cuts_since_the_first(records, spec, tuning)
    if cuts is None:
        return None
    first_of_shard = _first_buckets(cuts)
    rows_before = [first.rows_before for first in first_of_shard]
    if max(end - start for start, end in pairwise(rows_before)) > MAX_SLICE_RECORDS:
        return None
    columns = ["_computed_day", "key", *keep]
    earlier, states = _earlier(records, cuts.bucket, first_of_shard, aggregates, columns)
    own = in_shards(records, cuts).withColumn(OF_EARLIER, F.lit(False))
    return RunningShards(own.unionByName(earlier, allowMissingColumns=True), states)


def _first_buckets(cuts: Cuts) -> list[Placement]:
    """The first bucket of each shard, in the order of shards."""
    first: dict[int, Placement] = {}
    for placement in cuts.placed:
        first.setdefault(placement.shard, placement)
    return [first[shard] for shard in sorted(first)]


def _earlier(
    records: DataFrame,
    bucket: Column,
    first_of_shard: Sequence[Placement],
    aggregates: Sequence[Aggregate],
    columns: Sequence[str],
) -> tuple[DataFrame, list[str]]:
    """Rows that stand for the records before each shard's first one, and the states' columns.

    A stretch is aggregated once, whatever the number of later shards.
    """
    spark = records.sparkSession
    of_bucket, of_shard = [], []
    for (stretch, first), after in zip(enumerate(first_of_shard), first_of_shard[1:], strict=False):
        of_bucket += [(number, stretch) for number in range(first.bucket, after.bucket)]
        of_shard += [
            (stretch, later.shard, later.rows_before) for later in first_of_shard[stretch + 1 :]
        ]
    stretches = small_frame(spark, of_bucket, f"_bucket bigint, {_STRETCH} bigint")
    later = small_frame(
        spark, of_shard, f"{_STRETCH} bigint, {TIME_SHARD} bigint, {ROWS_BEFORE} bigint"
    )
    separate, own = with_separate_columns(records.withColumn("_bucket", bucket), aggregates)
    found = in_groups(
        separate.join(F.broadcast(stretches), "_bucket"),
        own,
        [_STRETCH],
        [F.min(F.struct(*columns)).alias("_first")],
    )
    states = {f"_state_{index}": each.column for index, each in enumerate(own)}
    earlier = found.join(F.broadcast(later), _STRETCH).select(
        "_first.*",
        *(F.col(column).alias(name) for name, column in states.items()),
        TIME_SHARD,
        F.lit(False).alias(IN_HOME_SHARD),
        ROWS_BEFORE,
        F.lit(True).alias(OF_EARLIER),
    )
    return earlier, [*states]
