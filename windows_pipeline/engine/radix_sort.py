"""Sorts records by group and event time, by a single number that Spark can radix-sort.

Spark sorts by several columns by comparing rows, which takes longer than the shuffle itself; it
sorts by a single number digit by digit. The number is a hash of the group, followed by the low 40
bits of the event time. Two cases remain: groups that share a hash, and groups whose times lie on
both sides of a multiple of 2**40 ms (34.8 years). Their rows come out consecutively, and
`groups_in_order` sorts them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from windows_pipeline.kernels.groups import CHUNK_ROWS, group_starts, whole_groups
from windows_pipeline.kernels.order import SORT_KEY, in_order

_TIME_BITS = 40
_LOW_BITS = 2**_TIME_BITS - 1


def in_radix_order(records: DataFrame, group: Sequence[str]) -> DataFrame:
    """Sends each group to one partition, and sorts the partition for `groups_in_order`.

    Args:
        records: The group's columns, `_event_time_ms` (bigint) and any others.
        group: The group's columns.

    Returns:
        The records with `_sort_key` (bigint), sorted by it.
    """
    sort_key = _radix_key(group, "_event_time_ms")
    # Computed after the shuffle, which then need not move it.
    keyed = records.repartition(*group).withColumn(SORT_KEY, sort_key)
    return keyed.sortWithinPartitions(SORT_KEY)


def in_group_order(records: DataFrame, group: Sequence[str], order: Sequence[Column]) -> DataFrame:
    """Sends each group to one partition, and sorts the partition for `sorted_groups`.

    Args:
        records: The group's columns and any others.
        group: The group's columns, the number of a computed day first.
        order: What sorts a group's rows.

    Returns:
        The records with `_sort_key` (bigint): the day, then a hash of the group, which is faster
        to compare than the group.
    """
    hashed = F.xxhash64(*group).bitwiseAND(F.lit(_LOW_BITS))
    sort_key = F.shiftleft(F.col(group[0]).cast("bigint"), _TIME_BITS).bitwiseOR(hashed)
    keyed = records.repartition(*group).withColumn(SORT_KEY, sort_key)
    return keyed.sortWithinPartitions(SORT_KEY, *group, *order)


def _radix_key(group: Sequence[str], time_ms: str) -> Column:
    """The sort key (bigint): a hash of the group, then the low bits of a time in milliseconds."""
    # The kernels refuse a null time, and name it.
    low_bits = F.coalesce(F.col(time_ms).bitwiseAND(F.lit(_LOW_BITS)), F.lit(0))
    return F.shiftleft(F.xxhash64(*group), _TIME_BITS).bitwiseOR(low_bits)


def groups_in_order(
    batches: Iterator[pa.RecordBatch], group: Sequence[str], chunk_rows: int = CHUNK_ROWS
) -> Iterator[tuple[pa.Table, np.ndarray]]:
    """Yields tables of whole groups by event time, and where each group starts.

    Args:
        batches: The result of `in_radix_order`.
        group: The group's columns; nulls are equal to each other.
        chunk_rows: How many rows make a chunk; groups that share a hash stay in one.

    Yields:
        The rows, and the groups' starts with one more entry for the end of the last group.

    Raises:
        RuntimeError: The rows are not sorted by `_sort_key`.
    """
    hashed = map(_with_hash, in_order(batches, with_key=True))
    for rows, runs in whole_groups(hashed, [SORT_KEY], chunk_rows):
        table = rows.drop_columns(SORT_KEY)
        starts = group_starts(table, group)
        unsorted = _unsorted_runs(table, runs, starts)
        if unsorted.any():
            table = table.take(_sorted_rows(table, runs, unsorted, group)).combine_chunks()
            starts = group_starts(table, group)
        yield table, starts


def _with_hash(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The batch with only the hash in the column of the sort key."""
    index = batch.schema.get_field_index(SORT_KEY)
    hashes = pc.shift_right(batch.column(index), _TIME_BITS)
    return batch.set_column(index, SORT_KEY, hashes)


def _unsorted_runs(table: pa.Table, runs: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """A mask of the runs of equal hashes that contain several groups, or times that fall."""
    breaks = np.zeros(table.num_rows, np.bool_)
    breaks[starts[:-1]] = True
    time_ms = _times(table)
    breaks[1:] |= time_ms[1:] < time_ms[:-1]
    breaks[runs[:-1]] = False
    unsorted = np.zeros(len(runs) - 1, np.bool_)
    unsorted[np.searchsorted(runs, np.flatnonzero(breaks), "right") - 1] = True
    return unsorted


def _sorted_rows(
    table: pa.Table, runs: np.ndarray, unsorted: np.ndarray, group: Sequence[str]
) -> pa.Array:
    """The row numbers in order: those of the unsorted runs by group and event time."""
    run = np.repeat(np.arange(len(unsorted)), np.diff(runs))
    rows = np.flatnonzero(unsorted[run])
    to_sort = table.select([*group, "_event_time_ms"]).take(pa.array(rows))
    codes = [code for name in group for code in _codes(to_sort.column(name).combine_chunks())]
    order = np.arange(table.num_rows)
    order[rows] = rows[np.lexsort((_times(to_sort), *codes, run[rows]))]
    return pa.array(order)


def _codes(column: pa.Array) -> Iterator[np.ndarray]:
    """Numbers that are equal where values are equal, by the comparison of `group_starts`."""
    if pa.types.is_struct(column.type):
        yield column.is_null().to_numpy(zero_copy_only=False)
        for field in column.flatten():
            yield from _codes(field)
        return
    if pa.types.is_floating(column.type):
        column = pc.add(column, 0.0)  # turns -0.0 into 0.0
    yield column.dictionary_encode("encode").indices.to_numpy()


def _times(table: pa.Table) -> np.ndarray:
    return np.array(table.column("_event_time_ms").fill_null(0), np.int64)
