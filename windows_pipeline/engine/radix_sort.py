"""Brings the records of a group together, in the order of event time, by one number each.

Spark sorts by a single number by its digits (radix sort), and by several columns by comparing
rows, which takes longer than the shuffle itself. The number is a hash of the group above the low
bits of the event time. Few groups share a hash, and few groups have times on two sides of a
multiple of what these bits hold (34.8 years); their rows come out side by side and are put in
order here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from windows_pipeline.kernels.groups import CHUNK_ROWS, group_starts, whole_groups

SORT_KEY = "_sort_key"
"""That number's column; a source's begin with a letter."""
_TIME_BITS = 40
_LOW_BITS = 2**_TIME_BITS - 1


def in_radix_order(records: DataFrame, group: Sequence[str]) -> DataFrame:
    """Sends each group to a partition, and orders it for `groups_in_order`.

    Args:
        records: The group's columns, `_event_time_ms` (bigint) and any others.
        group: The group's columns.

    Returns:
        The records with `_sort_key` (bigint), in its order.
    """
    sort_key = _radix_key(group, "_event_time_ms")
    # After the shuffle, which need not move it.
    keyed = records.repartition(*group).withColumn(SORT_KEY, sort_key)
    return keyed.sortWithinPartitions(SORT_KEY)


def _radix_key(group: Sequence[str], time_ms: str) -> Column:
    """The number (bigint) that brings a group's records together, by a time in milliseconds."""
    # A null time is an error that names it, later.
    low_bits = F.coalesce(F.col(time_ms).bitwiseAND(F.lit(_LOW_BITS)), F.lit(0))
    return F.shiftleft(F.xxhash64(*group), _TIME_BITS).bitwiseOR(low_bits)


def groups_in_order(
    batches: Iterator[pa.RecordBatch], group: Sequence[str], chunk_rows: int = CHUNK_ROWS
) -> Iterator[tuple[pa.Table, np.ndarray]]:
    """Yields tables of whole groups by event time, with where each starts and the last ends.

    Args:
        batches: What `in_radix_order` gives.
        group: The group's columns; nulls are equal to each other.
        chunk_rows: How many rows make a chunk; groups that share a hash are not parted.
    """
    for rows, runs in whole_groups(map(_with_hash, batches), [SORT_KEY], chunk_rows):
        table = rows.drop_columns(SORT_KEY)
        starts = group_starts(table, group)
        mixed = _mixed_runs(table, runs, starts)
        if mixed.any():
            table = table.take(_in_order(table, runs, mixed, group)).combine_chunks()
            starts = group_starts(table, group)
        yield table, starts


def _with_hash(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The batch with the hash alone as its sort key."""
    place = batch.schema.get_field_index(SORT_KEY)
    hashes = pc.shift_right(batch.column(place), _TIME_BITS)
    return batch.set_column(place, SORT_KEY, hashes)


def _mixed_runs(table: pa.Table, runs: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """Which runs of one hash have several groups, or times that go back."""
    breaks = np.zeros(table.num_rows, np.bool_)
    breaks[starts[:-1]] = True
    time_ms = _times(table)
    breaks[1:] |= time_ms[1:] < time_ms[:-1]
    breaks[runs[:-1]] = False
    mixed = np.zeros(len(runs) - 1, np.bool_)
    mixed[np.searchsorted(runs, np.flatnonzero(breaks), "right") - 1] = True
    return mixed


def _in_order(
    table: pa.Table, runs: np.ndarray, mixed: np.ndarray, group: Sequence[str]
) -> pa.Array:
    """The places of the rows, those of some runs by group and event time within these."""
    run = np.repeat(np.arange(len(mixed)), np.diff(runs))
    rows = np.flatnonzero(mixed[run])
    own = table.select([*group, "_event_time_ms"]).take(pa.array(rows))
    codes = [code for name in group for code in _codes(own.column(name).combine_chunks())]
    places = np.arange(table.num_rows)
    places[rows] = rows[np.lexsort((_times(own), *codes, run[rows]))]
    return pa.array(places)


def _codes(column: pa.Array) -> Iterator[np.ndarray]:
    """Numbers that are equal where the values are, as `group_starts` compares them."""
    if pa.types.is_struct(column.type):
        yield column.is_null().to_numpy(zero_copy_only=False)
        for field in column.flatten():
            yield from _codes(field)
        return
    if pa.types.is_floating(column.type):
        column = pc.add(column, 0.0)  # one zero
    yield column.dictionary_encode("encode").indices.to_numpy()


def _times(table: pa.Table) -> np.ndarray:
    return np.array(table.column("_event_time_ms").fill_null(0), np.int64)
