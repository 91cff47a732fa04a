"""The order of arrival as a scan over ranges: no task takes a whole source partition."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from datetime import date
from functools import partial
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from windows_pipeline.arrival.order import PLACE, order_of_arrival
from windows_pipeline.compat.local_frame import small_frame
from windows_pipeline.compat.numba_jit import compiled
from windows_pipeline.kernels.groups import group_starts

_LOG = logging.getLogger(__name__)
RANGE = "_range"
"""The column of a record's range, an int; a source's columns begin with a letter."""
_ROWS_BEFORE, _MAX_BEFORE = "_rows_before", "_max_before"
"""Columns for a while."""
_NOTHING_MS = -(2**63)
"""The largest event time of no record."""


class RangedOrder(NamedTuple):
    """Records in the order of arrival.

    Attributes:
        records: What `in_arrival_order` gives.
        cached: The persisted frame that they are cheaply made of, to let go of at the end.
    """

    records: DataFrame
    cached: DataFrame


class RangeSum(NamedTuple):
    """What a range has of a unit and source partition."""

    range: int
    arrival_unit: date
    source_partition: str | None
    rows: int
    max_event_time: int | None


class RangeBase(NamedTuple):
    """What the ranges before one have of a unit and source partition that goes on in it."""

    range: int
    arrival_unit: date
    source_partition: str | None
    rows_before: int
    max_before: int | None


def in_arrival_order_by_ranges(
    accepted: DataFrame, arrival: str | None, ranges: int
) -> RangedOrder:
    """Gives what `in_arrival_order` gives, in ranges of records of about equal size.

    Spark sorts the records in ranges of the whole order, each of which is numbered by itself
    in one pass; a sum a range, unit and source partition goes to the driver, which adds up
    what the ranges before have, and that is added back. Records that tie in all of the order
    are in one range, and alike, so the numbers don't depend on where ranges end.

    The records are computed twice, first for a sample that tells the ranges' bounds, and
    persisted: the sums belong to these ranges.

    Args:
        accepted: As `in_arrival_order` takes them.
        arrival: The arrival column's name; None for no such column.
        ranges: How many ranges, so how many tasks sort.
    """
    order = order_of_arrival(accepted.columns, arrival)
    in_ranges = numbered_in_ranges(accepted, PLACE, order, ranges)
    cached = in_ranges.persist(StorageLevel.MEMORY_AND_DISK)
    sums = cached.groupBy(RANGE, *PLACE).agg(F.count("*"), F.max("event_time"))
    in_order = sorted(RangeSum(*row) for row in sums.collect())
    return RangedOrder(with_bases(cached, RANGE, in_order), cached)


def with_bases(numbered: DataFrame, stretch: str, sums: Iterable[RangeSum]) -> DataFrame:
    """Adds to the numbers of each stretch what the stretches before it have.

    Args:
        numbered: Records with `offset` and `running_max`, as if their stretch were all there is.
        stretch: The column of the stretch, a whole number; it is dropped.
        sums: What each stretch has, in the order of arrival.
    """
    kind = numbered.schema[stretch].dataType.simpleString()
    before = small_frame(
        numbered.sparkSession,
        bases_of(sums),
        f"{stretch} {kind}, arrival_unit date, source_partition string, {_ROWS_BEFORE} bigint, "
        f"{_MAX_BEFORE} bigint",
    )
    return (
        numbered.join(F.broadcast(before), [stretch, *PLACE], "left")
        .withColumn("offset", F.col("offset") + F.coalesce(_ROWS_BEFORE, F.lit(0)))
        .withColumn("running_max", F.greatest("running_max", _MAX_BEFORE))
        .drop(stretch, _ROWS_BEFORE, _MAX_BEFORE)
    )


def numbered_in_ranges(
    records: DataFrame, within: Sequence[str], order: Sequence[Column], ranges: int
) -> DataFrame:
    """Cuts the whole order into ranges, and numbers the records of each as if it were all there is.

    The records are computed twice, first for a sample that tells the ranges' bounds; these are not
    the same at each time.

    Args:
        records: `event_time` (bigint, ms) and the columns of the order.
        within: The columns within which records are numbered.
        order: What orders those that are alike in these.
        ranges: How many ranges.

    Returns:
        The records with `_range` (int), `offset` and `running_max` (bigint, ms).
    """
    _LOG.info("sorting records in %d ranges", ranges)
    whole = [*map(F.col, within), *order]
    if "original" in records.columns:  # rejected records are alike in the rest
        whole.append(F.col("original"))
    in_ranges = (
        records.repartitionByRange(ranges, *whole)
        .sortWithinPartitions(*whole)
        .withColumn(RANGE, F.spark_partition_id())
    )
    schema = T.StructType(
        [
            *in_ranges.schema,
            T.StructField("offset", T.LongType()),
            T.StructField("running_max", T.LongType()),
        ]
    )
    return in_ranges.mapInArrow(partial(_numbered_batches, list(within)), schema)


def bases_of(sums: Iterable[RangeSum]) -> list[RangeBase]:
    """Adds up what earlier ranges have; a row for each unit and partition that goes on.

    Args:
        sums: The ranges, in order.
    """
    rows: dict[tuple[date, str | None], int] = {}
    largest: dict[tuple[date, str | None], int] = {}
    bases = []
    for one in sums:
        place = (one.arrival_unit, one.source_partition)
        if place in rows:
            bases.append(RangeBase(one.range, *place, rows[place], largest.get(place)))
        rows[place] = rows.get(place, 0) + one.rows
        if one.max_event_time is not None:
            largest[place] = max(largest.get(place, one.max_event_time), one.max_event_time)
    return bases


def _numbered_batches(
    within: list[str], batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """The records of a range, in order, with their numbers."""
    place: tuple[object, ...] = ()
    rows, largest_ms = 0, _NOTHING_MS
    for batch in batches:
        if not batch.num_rows:
            continue
        if _place(batch, 0, within) != place:
            rows, largest_ms = 0, _NOTHING_MS
        starts = group_starts(pa.Table.from_batches([batch]), within)
        time_ms = np.array(batch.column("event_time").fill_null(_NOTHING_MS), np.int64)
        offset, running_ms = _numbered(starts, time_ms, rows, largest_ms)
        place = _place(batch, batch.num_rows - 1, within)
        rows, largest_ms = int(offset[-1]) + 1, int(running_ms[-1])
        running = pa.array(running_ms, mask=running_ms == _NOTHING_MS)
        yield batch.append_column("offset", pa.array(offset)).append_column("running_max", running)


def _place(batch: pa.RecordBatch, row: int, within: list[str]) -> tuple[object, ...]:
    return tuple(batch.column(name)[row].as_py() for name in within)


@compiled
def _numbered(
    starts: np.ndarray, time_ms: np.ndarray, rows_before: int, largest_before_ms: int
) -> tuple[np.ndarray, np.ndarray]:
    """Numbers runs of records, the first of which goes on from what came before."""
    offset = np.empty(len(time_ms), np.int64)
    running_ms = np.empty(len(time_ms), np.int64)
    rows, largest_ms = rows_before, largest_before_ms
    for run in range(len(starts) - 1):
        if run > 0:
            rows, largest_ms = 0, _NOTHING_MS
        for record in range(starts[run], starts[run + 1]):
            largest_ms = max(largest_ms, time_ms[record])
            offset[record], running_ms[record] = rows, largest_ms
            rows += 1
    return offset, running_ms
