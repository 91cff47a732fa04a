"""Shards of the records of one key for windows that begin with the first record of all.

Such a window holds the records of all shards before its row's own. They are aggregated where they
lie, into a few slices a shard (see `preaggregation`), which come before the records of each later
shard. What is kept of a slice must not grow with its records: that of counts, sums, means,
variances, extremes, first and last values does not, that of lists and distinct values does.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
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
    joined_by_bucket,
)
from windows_pipeline.engine.shard_plan import Placement
from windows_pipeline.engine.time_shards import IN_HOME_SHARD, TIME_SHARD
from windows_pipeline.tuning import Tuning
from windows_pipeline.windows import GracedRows

_STRETCH = "_stretch"
"""The column with a stretch's number; a stretch lies between the starts of two shards."""


class RunningShards(NamedTuple):
    """Records in shards, and what stands for earlier ones.

    Attributes:
        rows: What `in_record_shards` returns.
        earlier: For each shard, in order, slices of the records before its first one: the columns
            of `rows` without the aggregates' values, and `state_column` of each aggregate.
            `_rows_before` is less by the slices themselves, which come before the shard's rows.
    """

    rows: DataFrame
    earlier: pa.Table


def state_column(index: int) -> str:
    """The column of an aggregate's partial results, by the aggregate's index."""
    return f"_state_{index}"


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
    earlier = _earlier(records, cuts, first_of_shard, aggregates, columns)
    return RunningShards(in_shards(records, cuts), earlier)


def _first_buckets(cuts: Cuts) -> list[Placement]:
    """The first bucket of each shard, in the order of shards."""
    first: dict[int, Placement] = {}
    for placement in cuts.placed:
        first.setdefault(placement.shard, placement)
    return [first[shard] for shard in sorted(first)]


def _earlier(
    records: DataFrame,
    cuts: Cuts,
    first_of_shard: Sequence[Placement],
    aggregates: Sequence[Aggregate],
    columns: Sequence[str],
) -> pa.Table:
    """The slices before each shard, of which there are few; see `RunningShards`.

    A stretch is aggregated only once, for any number of later shards.
    """
    of_bucket, of_shard = [], []
    for (stretch, first), after in zip(enumerate(first_of_shard), first_of_shard[1:], strict=False):
        of_bucket += [(number, stretch) for number in range(first.bucket, after.bucket)]
        of_shard += [
            (stretch, later.shard, later.rows_before) for later in first_of_shard[stretch + 1 :]
        ]
    in_stretches = joined_by_bucket(records, cuts, of_bucket, f"{_STRETCH} bigint")
    separate, own = with_separate_columns(in_stretches, aggregates)
    first_record = F.min(F.struct(*columns)).alias("_first")
    found = in_groups(separate, own, [_STRETCH], [first_record])
    schema = f"{_STRETCH} bigint, {TIME_SHARD} bigint, {ROWS_BEFORE} bigint"
    later = small_frame(records.sparkSession, of_shard, schema)
    states = {state_column(index): each.column for index, each in enumerate(own)}
    table = (
        found.join(F.broadcast(later), _STRETCH)
        .select(
            "_first.*",
            *(F.col(column).alias(name) for name, column in states.items()),
            TIME_SHARD,
            F.lit(False).alias(IN_HOME_SHARD),
            ROWS_BEFORE,
        )
        .orderBy(TIME_SHARD, *columns)
        .toArrow()
    )
    shard, rows_before = (np.array(table.column(name)) for name in (TIME_SHARD, ROWS_BEFORE))
    slices_of = np.bincount(shard)
    at = table.column_names.index(ROWS_BEFORE)
    return table.set_column(at, ROWS_BEFORE, pa.array(rows_before - slices_of[shard]))
