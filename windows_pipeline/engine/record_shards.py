"""Cuts the records of one key into shards by number, where time shards do not suffice.

A count window or a block needs a record's number among all, a frame by rows its n-th neighbour, and
a session has no longest length. Where all records have one key, two small queries count them in
buckets of their order, and `shard_plan` chooses the shards from the counts. Sessions are cut where
no record comes for longer than the gap: none lies in two shards then, late records included.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from windows_pipeline.compat.local_frame import small_frame
from windows_pipeline.engine.shard_plan import Bucket, Placement, placements
from windows_pipeline.engine.time_shards import IN_HOME_SHARD, TIME_SHARD
from windows_pipeline.tuning import Tuning
from windows_pipeline.windows import GracedRows, LookAround, PipelineWindows

ROWS_BEFORE = "_rows_before"
"""The column of how many records come before the first one in the row's shard."""
_BUCKET = "_bucket"
_BUCKETS = 4096
"""The most buckets, and so the most rows that are collected."""


class Order(NamedTuple):
    """An order of records, and the range in which most of the records lie.

    Attributes:
        position: A number (bigint) that never falls in this order.
        low: The position from which on buckets are counted; records before are in the first.
        high: The position up to which they are counted; records after are in the last.
        records: How many records there are.
    """

    position: Column
    low: int
    high: int
    records: int


class Cuts(NamedTuple):
    """Where the records of one key are cut into shards.

    Attributes:
        bucket: The number (bigint) of a record's bucket.
        placed: The shards of each bucket.
    """

    bucket: Column
    placed: list[Placement]


def in_record_shards(
    records: DataFrame,
    spec: PipelineWindows,
    tuning: Tuning,
) -> DataFrame:
    """Puts each record into its home shard, and copies into other shards whose windows hold it.

    Args:
        records: `_event_time_ms`; for windows by arrival `record_arrival_unit` and `offset`; and
            any other columns. For row windows each record once, none of them late.
        spec: The windows.
        tuning: Whether all records have one key, and how many make a shard.

    Returns:
        The records with `_time_shard` (bigint), `_in_home_shard` (boolean) and `_rows_before`
        (bigint); a record that another shard needs comes again, as a copy. Where they are one
        shard, the same frame.
    """
    look_around = spec.look_around
    if not tuning.one_key or look_around is None:
        return records
    cuts = cuts_by(records, _order_of(records, spec), tuning, look_around)
    if cuts is None:
        return records
    return in_shards(records, cuts)


def cuts_since_the_first(records: DataFrame, spec: GracedRows, tuning: Tuning) -> Cuts | None:
    """The cuts for records whose windows begin with the very first record.

    Of such windows a shard has what the rest of them needs; see `running_shards`.

    Args:
        records: See `in_record_shards`.
        spec: The windows.
        tuning: See `in_record_shards`.

    Returns:
        The cuts. None where records stay one shard, or no window begins with the first record.
    """
    bounded = tuple(frame.as_bounded() for frame in spec.frames)
    if not tuning.one_key or bounded == spec.frames:
        return None
    look_around = LookAround.of_all([frame.look_around for frame in bounded])
    if look_around is None:
        return None
    # Frames of a pipeline are ordered by time.
    order = order_of_time(records, F.col("_event_time_ms"))
    return cuts_by(records, order, tuning, look_around)


def _order_of(records: DataFrame, spec: PipelineWindows) -> Order:
    if spec.by_arrival:
        return order_of_arrival(records)
    return order_of_time(records, F.col("_event_time_ms"))


def order_of_time(records: DataFrame, time_ms: Column) -> Order:
    """The order of a time; a few outliers do not make buckets wider."""
    row = records.agg(
        F.count("*").alias("records"),
        F.percentile_approx(time_ms, [0.01, 0.99], 1000).alias("bounds"),
    ).head()
    low, high = (row and row.bounds) or (0, 0)
    return Order(time_ms, low, high, row.records if row else 0)


def order_of_arrival(records: DataFrame) -> Order:
    """The order of arrival unit and offset, of records of a single source partition."""
    day, offset = F.unix_date("record_arrival_unit"), F.col("offset")
    row = records.agg(
        F.count("*").alias("records"),
        F.min(day).alias("first_day"),
        F.max(day).alias("last_day"),
        F.max(offset).alias("last_offset"),
    ).head()
    if row is None or not row.records:
        return Order(offset, 0, 0, 0)
    offsets = row.last_offset + 1
    position = (day - F.lit(row.first_day)).cast("bigint") * F.lit(offsets) + offset
    return Order(position, 0, (row.last_day - row.first_day + 1) * offsets, row.records)


def cuts_by(
    records: DataFrame, order: Order, tuning: Tuning, look_around: LookAround
) -> Cuts | None:
    """Chooses the shards of records.

    Args:
        records: Records of one key and any columns.
        order: The order in which windows hold consecutive records.
        tuning: How many records a shard has at least.
        look_around: What windows need of the records around theirs.

    Returns:
        The cuts; None where the records are one shard.
    """
    least = tuning.shard_records
    if order.records < 2 * least:
        return None
    width = (order.high - order.low) // _BUCKETS + 1
    number = F.call_function("div", order.position - F.lit(order.low), F.lit(width))
    bucket = F.greatest(F.lit(0), F.least(number, F.lit(_BUCKETS - 1))).cast("bigint")
    placed = placements(_counted(records, order.position, bucket), least, look_around)
    return Cuts(bucket, placed) if any(each.shard > 0 for each in placed) else None


def in_shards(records: DataFrame, cuts: Cuts) -> DataFrame:
    """Puts each record into its shards; see `in_record_shards`."""
    columns = f"{TIME_SHARD} bigint, {IN_HOME_SHARD} boolean, {ROWS_BEFORE} bigint"
    return joined_by_bucket(records, cuts, cuts.placed, columns)


def joined_by_bucket(
    records: DataFrame, cuts: Cuts, rows: Iterable[Sequence[object]], columns: str
) -> DataFrame:
    """Adds to each record what is known of its bucket.

    Args:
        records: Any columns.
        cuts: The buckets.
        rows: The number of a bucket, and values of `columns`; a bucket may have several rows, or
            none, and then its records are left out.
        columns: The names and types of the columns to add.
    """
    known = small_frame(records.sparkSession, rows, f"{_BUCKET} bigint, {columns}")
    return records.withColumn(_BUCKET, cuts.bucket).join(F.broadcast(known), _BUCKET).drop(_BUCKET)


def _counted(records: DataFrame, position: Column, bucket: Column) -> list[Bucket]:
    """The buckets that hold records, in order."""
    counts = (
        records.select(bucket.alias(_BUCKET), position.alias("position"))
        .groupBy(_BUCKET)
        .agg(F.count("*"), F.min("position"), F.max("position"))
    )
    return sorted(Bucket(*row) for row in counts.collect())
