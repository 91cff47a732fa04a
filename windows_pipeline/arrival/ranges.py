"""Numbers records by arrival in ranges, so that no task sorts a whole source partition (A1)."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import date
from functools import partial
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from windows_pipeline.arrival.order import ORDERED_WITHIN, order_of_arrival
from windows_pipeline.compat.local_frame import small_frame
from windows_pipeline.compat.numba_jit import compiled
from windows_pipeline.kernels.groups import group_starts
from windows_pipeline.kernels.order import require_order

_LOG = logging.getLogger(__name__)
RANGE = "_range"
"""The column of a record's range, an int."""
_ROWS_BEFORE, _MAX_BEFORE = "_rows_before", "_max_before"
_NOTHING_MS = -(2**63)
"""The running maximum before the first record."""


class RangedOrder(NamedTuple):
    """Records in the order of arrival.

    Attributes:
        records: The frame that `in_arrival_order` returns.
        cached: The persisted frame behind `records`; the caller unpersists it.
    """

    records: DataFrame
    cached: DataFrame


class RangeSum(NamedTuple):
    """A range's part of an arrival unit and source partition: row count, latest event time (ms)."""

    range: int
    arrival_unit: date
    source_partition: str | None
    rows: int
    max_event_time_ms: int | None


class RangeBase(NamedTuple):
    """What earlier ranges hold of an arrival unit and source partition that goes on in a range."""

    range: int
    arrival_unit: date
    source_partition: str | None
    rows_before: int
    max_before: int | None


@contextmanager
def freed_on_error(cached: DataFrame) -> Iterator[None]:
    """Frees a cached frame if the block raises an error.

    Spark answers a later read of files with the same names from the frame, even if the files were
    changed since.
    """
    try:
        yield
    except BaseException:
        cached.unpersist()
        raise


def in_arrival_order_by_ranges(
    accepted: DataFrame, arrival: str | None, ranges: int
) -> RangedOrder:
    """Numbers records as `in_arrival_order` does, in ranges of about equal size.

    Spark sorts the records into ranges of the whole order, and each task numbers its range in one
    pass. The driver collects one sum a range, arrival unit and source partition, adds up the sums
    of the earlier ranges, and the tasks add these to their numbers. Records that tie in the whole
    order are equal and lie in one range, so the numbers don't depend on where ranges end.

    Spark computes the records twice: first a sample for the ranges' bounds, then the ranges. The
    ranges are persisted, because computed again they could end elsewhere than the sums say.

    Args:
        accepted: The records, with the columns that `in_arrival_order` needs.
        arrival: The arrival column's name; None for no such column.
        ranges: The number of ranges, which is the number of tasks that sort.
    """
    order = order_of_arrival(accepted.columns, arrival)
    in_ranges = numbered_in_ranges(accepted, ORDERED_WITHIN, order, ranges)
    cached = in_ranges.persist(StorageLevel.MEMORY_AND_DISK)
    sums = cached.groupBy(RANGE, *ORDERED_WITHIN).agg(F.count("*"), F.max("_event_time_ms"))
    with freed_on_error(cached):
        in_order = sorted(RangeSum(*row) for row in sums.collect())
    return RangedOrder(with_bases(cached, RANGE, in_order), cached)


def with_bases(numbered: DataFrame, stretch: str, sums: Iterable[RangeSum]) -> DataFrame:
    """Turns numbers within stretches into numbers within arrival units and source partitions.

    Args:
        numbered: Records with `offset` and `_running_max_ms` (ms), counted within their stretch.
        stretch: The column of the stretch, a whole number; it is dropped.
        sums: The sums of the stretches, in the order of arrival.
    """
    kind = numbered.schema[stretch].dataType.simpleString()
    before = small_frame(
        numbered.sparkSession,
        bases_of(sums),
        f"{stretch} {kind}, arrival_unit date, source_partition string, {_ROWS_BEFORE} bigint, "
        f"{_MAX_BEFORE} bigint",
    )
    return (
        numbered.join(F.broadcast(before), [stretch, *ORDERED_WITHIN], "left")
        .withColumn("offset", F.col("offset") + F.coalesce(_ROWS_BEFORE, F.lit(0)))
        .withColumn("_running_max_ms", F.greatest("_running_max_ms", _MAX_BEFORE))
        .drop(stretch, _ROWS_BEFORE, _MAX_BEFORE)
    )


def numbered_in_ranges(
    records: DataFrame, within: Sequence[str], order: Sequence[str], ranges: int
) -> DataFrame:
    """Cuts the whole order into ranges, and numbers the records within each.

    Spark computes the records twice, first a sample for the ranges' bounds; the bounds may differ
    each time the frame is computed.

    Args:
        records: `_event_time_ms` (bigint, ms) and the columns of the order.
        within: Numbers restart with each value of these columns.
        order: The columns that order the records with equal values of `within`.
        ranges: The number of ranges.

    Returns:
        The records with `_range` (int), `offset` and `_running_max_ms` (bigint, ms).
    """
    _LOG.info("sorting records in %d ranges", ranges)
    whole = [*within, *order]
    if "original" in records.columns:  # rejected records tie in all other columns
        whole.append("original")
    columns = [F.col(f"`{name}`") for name in whole]
    in_ranges = (
        records.repartitionByRange(ranges, *columns)
        .sortWithinPartitions(*columns)
        .withColumn(RANGE, F.spark_partition_id())
    )
    schema = T.StructType(
        [
            *in_ranges.schema,
            T.StructField("offset", T.LongType()),
            T.StructField("_running_max_ms", T.LongType()),
        ]
    )
    return in_ranges.mapInArrow(partial(_numbered_batches, list(within), whole), schema)


def bases_of(sums: Iterable[RangeSum]) -> list[RangeBase]:
    """Adds up earlier ranges' sums, for each arrival unit and source partition that continues.

    Args:
        sums: The sums of the ranges, in order.
    """
    rows: dict[tuple[date, str | None], int] = {}
    largest: dict[tuple[date, str | None], int] = {}
    bases = []
    for part in sums:
        key = (part.arrival_unit, part.source_partition)
        if key in rows:
            bases.append(RangeBase(part.range, *key, rows[key], largest.get(key)))
        rows[key] = rows.get(key, 0) + part.rows
        if part.max_event_time_ms is not None:
            largest[key] = max(largest.get(key, part.max_event_time_ms), part.max_event_time_ms)
    return bases


def _numbered_batches(
    within: list[str], order: list[str], batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Adds `offset` and `_running_max_ms` to the sorted records of a range.

    Raises:
        RuntimeError: The records are not sorted by `order`.
    """
    last_key: tuple[object, ...] = ()
    last: list[pa.RecordBatch] = []
    rows, largest_ms = 0, _NOTHING_MS
    for batch in batches:
        if not batch.num_rows:
            continue
        if _key(batch, 0, within) != last_key:
            rows, largest_ms = 0, _NOTHING_MS
        with_last = pa.Table.from_batches([*last, batch.select(order)])
        require_order(with_last, np.array([0, with_last.num_rows]), order)
        last = [batch.select(order).slice(batch.num_rows - 1)]
        starts = group_starts(pa.Table.from_batches([batch]), within)
        time_ms = np.array(batch.column("_event_time_ms").fill_null(_NOTHING_MS), np.int64)
        offset, running_ms = _numbered(starts, time_ms, rows, largest_ms)
        last_key = _key(batch, batch.num_rows - 1, within)
        rows, largest_ms = int(offset[-1]) + 1, int(running_ms[-1])
        running = pa.array(running_ms, mask=running_ms == _NOTHING_MS)
        yield batch.append_column("offset", pa.array(offset)).append_column(
            "_running_max_ms", running
        )


def _key(batch: pa.RecordBatch, row: int, within: list[str]) -> tuple[object, ...]:
    return tuple(batch.column(name)[row].as_py() for name in within)


@compiled
def _numbered(
    starts: np.ndarray, time_ms: np.ndarray, rows_before: int, largest_before_ms: int
) -> tuple[np.ndarray, np.ndarray]:
    """Numbers runs of records; the first run continues that of the batch before."""
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
