"""Cuts sorted Arrow batches into chunks of whole groups, so that no partition fills the memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windows_pipeline.kernels.order import in_order, require_order
from windows_pipeline.tuning import TUNING

CHUNK_ROWS = TUNING.chunk_rows


def whole_groups(
    batches: Iterator[pa.RecordBatch], by: Sequence[str], chunk_rows: int = CHUNK_ROWS
) -> Iterator[tuple[pa.Table, np.ndarray]]:
    """Yields tables of whole groups, and where each group starts.

    Args:
        batches: Rows; those of a group are consecutive.
        by: The group's columns; nulls are equal to each other.
        chunk_rows: How many rows make a chunk; a larger group is a chunk of its own.

    Yields:
        The rows, and the groups' starts with one more entry for the end of the last group.
    """
    buffered: list[pa.RecordBatch] = []
    buffered_rows, least_rows = 0, chunk_rows
    for batch in batches:
        buffered.append(batch)
        buffered_rows += batch.num_rows
        if buffered_rows < least_rows:
            continue
        table = pa.Table.from_batches(buffered).combine_chunks()
        starts = group_starts(table, by)
        last = int(starts[-2])
        if last == 0:  # a single group so far: look again once there are twice as many rows
            least_rows = 2 * buffered_rows
            continue
        yield table.slice(0, last), starts[:-1]
        buffered = table.slice(last).to_batches()
        buffered_rows, least_rows = table.num_rows - last, chunk_rows
    if buffered_rows:
        table = pa.Table.from_batches(buffered).combine_chunks()
        yield table, group_starts(table, by)


def sorted_groups(
    batches: Iterator[pa.RecordBatch],
    by: Sequence[str],
    order: Sequence[str],
    chunk_rows: int = CHUNK_ROWS,
) -> Iterator[tuple[pa.Table, np.ndarray]]:
    """Yields tables of whole groups whose rows are in order; see `whole_groups`.

    Args:
        batches: Rows, sorted by `_sort_key` (a number that follows from the group), group and
            order.
        by: The group's columns.
        order: The columns that sort a group's rows.
        chunk_rows: See `whole_groups`.

    Raises:
        RuntimeError: The rows are in another order.
    """
    for table, starts in whole_groups(in_order(batches), by, chunk_rows):
        require_order(table, starts, order)
        yield table, starts


def group_starts(table: pa.Table, by: Sequence[str]) -> np.ndarray:
    """Where each run of equal group columns starts, with the number of rows as the last entry.

    Values are compared as Spark compares keys: nulls are equal to each other, NaN equals NaN, and
    structs are equal where all their fields are equal.
    """
    differs = np.zeros(max(table.num_rows - 1, 0), np.bool_)
    for name in by:
        differs |= _differs_from_next(table.column(name).combine_chunks())
    return np.concatenate(([0], np.flatnonzero(differs) + 1, [table.num_rows])).astype(np.int64)


def _differs_from_next(column: pa.Array) -> np.ndarray:
    """A mask, for all values but the last, of those that differ from the next value."""
    earlier, later = column.slice(0, max(len(column) - 1, 0)), column.slice(1)
    if pa.types.is_integer(column.type) and not column.null_count:
        differs: np.ndarray = np.not_equal(np.asarray(earlier), np.asarray(later))
        return differs
    differs = np.zeros(len(earlier), np.bool_)
    if column.null_count:
        differs = np.not_equal(*(_array(pc.is_null(part)) for part in (earlier, later)))
    if pa.types.is_struct(column.type):
        for field in column.flatten():
            differs |= _differs_from_next(field)
        return differs
    differs |= _array(pc.fill_null(pc.not_equal(earlier, later), False))
    if pa.types.is_floating(column.type):
        nans = [_array(pc.fill_null(pc.is_nan(part), False)) for part in (earlier, later)]
        differs &= ~(nans[0] & nans[1])
    return differs


def _array(values: pa.Array) -> np.ndarray:
    return np.array(values.to_numpy(zero_copy_only=False), np.bool_)
