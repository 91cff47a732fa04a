"""Records in the order in which Spark passes them to the kernels, without Spark."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from zlib import crc32

import numpy as np
import pyarrow as pa

from windows_pipeline.kernels.groups import group_starts
from windows_pipeline.kernels.order import SORT_KEY


def cut_up(
    records: pa.RecordBatch, group: Sequence[str], cuts: Sequence[int]
) -> Iterator[pa.RecordBatch]:
    """Records in radix order, in batches, some of them empty; their groups share a few hashes."""
    hashes = [crc32(repr(key).encode()) % 3 for key in records.select(group).to_pylist()]
    return _cut(sorted_as_by_spark(records, np.array(hashes, np.int64)), cuts)


def cut_up_by_group(
    records: pa.RecordBatch, group: Sequence[str], cuts: Sequence[int]
) -> Iterator[pa.RecordBatch]:
    """Records of one group after the other, each group's as they come, in batches."""
    names = [repr(key) for key in records.select(group).to_pylist()]
    order = sorted(range(len(names)), key=names.__getitem__)
    return _cut(with_sort_key(records.take(pa.array(order, pa.int64())), group), cuts)


def _cut(whole: pa.RecordBatch, cuts: Sequence[int]) -> Iterator[pa.RecordBatch]:
    positions = sorted(cut % (whole.num_rows + 1) for cut in cuts)
    for start, end in pairwise([0, *positions, whole.num_rows]):
        yield whole.slice(start, end - start)


def sorted_as_by_spark(records: pa.RecordBatch, hashes: np.ndarray) -> pa.RecordBatch:
    """Records as Spark orders them whose groups have these hashes, ties as they come."""
    time_ms = np.array(records.column("_event_time_ms").fill_null(0), np.int64)
    sort_keys = (hashes << 40) | (time_ms & (2**40 - 1))
    order = pa.array(np.argsort(sort_keys, kind="stable"))
    return records.append_column(SORT_KEY, pa.array(sort_keys)).take(order)


def with_sort_key(batch: pa.RecordBatch, group: Sequence[str]) -> pa.RecordBatch:
    """Records by group, with numbers of the groups as Spark's sort keys."""
    starts = group_starts(pa.Table.from_batches([batch]), group)
    numbers = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    return batch.append_column(SORT_KEY, pa.array(numbers))
