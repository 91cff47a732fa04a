"""Recounts windows by binary search: records that had entered, less records that had left.

The recount takes many keys at once. It needs no order of the rows within a key and shares no code
with the engine's sweep.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

import numpy as np
import pyarrow as pa

from windows_pipeline.checks.recounts.shards import IS_OWN, SHARD
from windows_pipeline.kernels.groups import CHUNK_ROWS, sorted_groups
from windows_pipeline.kernels.time import NEVER_MS
from windows_pipeline.kernels.values import writable
from windows_pipeline.windows import FixedWindows

GROUP = ("_computed_day", "key")
"""The columns of a group, but for its shard."""
_INPUT_ONLY = ("_is_new", "arrival_unit", "source_partition", "offset", SHARD, IS_OWN)
"""Input columns that the result lacks: sessions need arrival, other windows shards."""
_ADDED = pa.schema(
    [
        ("recount", pa.int64()),
        ("recount_first_ms", pa.int64()),
        ("recount_last_ms", pa.int64()),
        ("departed_on_bound", pa.bool_()),
        ("near_partly_late", pa.int64()),
        ("same_records", pa.int64()),
        ("same_end", pa.int64()),
        ("counted", pa.int64()),
    ]
)


class ChunkRecount(ABC):
    """The recount of whole groups: records against windows."""

    @abstractmethod
    def window_columns(self) -> dict[str, pa.Array]:
        """The recount of each window, by column."""

    @abstractmethod
    def held(self) -> np.ndarray:
        """Whether any window holds each record."""

    @abstractmethod
    def counts_in_none(self) -> np.ndarray:
        """Whether no window can count the record, present or not."""

    def record_columns(self, wanted: np.ndarray) -> dict[str, pa.Array]:
        """The columns of the wanted records, a boolean mask."""
        del wanted
        return {}


ChunkMaker = Callable[[pa.Table, np.ndarray, pa.Table, np.ndarray], ChunkRecount]
"""Makes a recount from records, their group numbers, windows, and their group numbers."""
Recount = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]
"""A function that `DataFrame.mapInArrow` runs on each partition."""


def window_recount(spec: FixedWindows, chunk_rows: int = CHUNK_ROWS) -> Recount:
    """The function by which `recount_windows` recounts sliding, hopping and tumbling windows.

    It needs rows sorted by `shards.by_group` by `_computed_day`, `key` and `_shard`: windows
    (`is_window`) with `_window_end_ms`, and records, none late or outside every window, with
    `_event_time_ms`, `_close_time_ms` and `_is_new`. Columns that a kind of row lacks are null. It
    returns the rows of `recount_groups`, with the columns that `recount_windows` documents.
    """
    make = partial(_Chunk, spec=spec)
    return partial(recount_groups, make, _ADDED, (*GROUP, SHARD), (), chunk_rows)


def recount_groups(
    make: ChunkMaker,
    added: pa.Schema,
    group: Sequence[str],
    order: Sequence[str],
    chunk_rows: int,
    batches: Iterator[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    """Recounts whole groups.

    Args:
        make: Recounts the records and windows of whole groups.
        added: The columns to add, in place of the columns that only the input has.
        group: The columns of a group, by which `shards.by_group` has sorted the rows.
        order: The columns that sort the rows of a group.
        chunk_rows: About how many rows to recount at once.
        batches: Windows and records. If groups are cut into shards, `_is_own` says whether a row
            belongs to its shard; the recount uses the other rows and does not return them.

    Yields:
        All windows; then the new records that no window holds but some window may count; then a
        row for each group with new records: how many of them a window holds (`counted`).
    """
    for table, starts in sorted_groups(batches, group, order, chunk_rows):
        in_group = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
        is_window = table.column("is_window").to_numpy()
        records, windows = table.filter(pa.array(~is_window)), table.filter(pa.array(is_window))
        chunk = make(records, in_group[~is_window], windows, in_group[is_window])
        yield from _own_with_columns(windows, chunk.window_columns(), added)
        is_new, held = records.column("_is_new").to_numpy() & _is_own(records), chunk.held()
        unheld = is_new & ~held & ~chunk.counts_in_none()
        missing = records.filter(pa.array(unheld))
        yield from _with_columns(missing, chunk.record_columns(unheld), added)
        new_group = in_group[~is_window][is_new]
        counted = np.bincount(new_group, held[is_new], len(starts) - 1).astype(np.int64)
        with_new = np.unique(new_group)
        summed = _only_columns(table.take(starts[with_new]), GROUP)
        yield from _with_columns(summed, {"counted": pa.array(counted[with_new])}, added)


class _Chunk(ChunkRecount):
    """Recounts whole groups with instants as codes: numbers in the order of group and instant.

    A record is in the windows whose end lies in [enter, leave). The codes of different groups do
    not overlap, so one search serves all groups.

    An end is a window's last instant. The end of a hopping or tumbling window is one instant
    earlier, so a window [s, s + size) works like a sliding window of difference size - 1. The
    recount does not test where bounds may lie; other checks do.
    """

    def __init__(
        self,
        records: pa.Table,
        of_records: np.ndarray,
        windows: pa.Table,
        of_windows: np.ndarray,
        spec: FixedWindows,
    ) -> None:
        self.difference_ms = difference_of(spec)
        self.windows, self.of_windows = windows, of_windows
        time_ms, close_ms = numbers(records, "_event_time_ms"), numbers(records, "_close_time_ms")
        left_end_ms = time_ms
        first_ms = spec.first_window_start_ms
        if first_ms is not None:
            left_end_ms = np.maximum(time_ms, first_ms + self.difference_ms)
        partly_late = close_ms > left_end_ms
        self.instants_ms, codes = codes_of(
            [of_records, of_records, of_records[partly_late], of_windows],
            [
                np.maximum(left_end_ms, close_ms),
                time_ms + self.difference_ms + 1,
                left_end_ms[partly_late],
                numbers(windows, "_window_end_ms") - (spec.length_ms - self.difference_ms),
            ],
        )
        self.enter, self.leave, self.near, self.end = codes
        self.far = self.leave[partly_late]

    def window_columns(self) -> dict[str, pa.Array]:
        by_entry = np.argsort(self.enter)
        leave = np.sort(self.leave)
        entered = np.searchsorted(self.enter[by_entry], self.end, "right")
        left = np.searchsorted(leave, self.end, "right")
        # If the window contains a record, it contains the record that leaves last.
        last_leave = np.maximum.accumulate(self.leave[by_entry])
        near = np.searchsorted(np.sort(self.near), self.end, "right")
        # A partly late record stays near for one instant after it left.
        near -= np.searchsorted(np.sort(self.far), self.end, "left")
        empty = entered == left
        return {
            "recount": pa.array(entered - left),
            "recount_first_ms": pa.array(self._time_ms(leave, left), mask=empty),
            "recount_last_ms": pa.array(self._time_ms(last_leave, entered - 1), mask=empty),
            "departed_on_bound": pa.array(left > np.searchsorted(leave, self.end, "left")),
            "near_partly_late": pa.array(near),
            "same_records": self._same_records(near == 0),
            "same_end": pa.array(how_many_equal([self.end])),
        }

    def _same_records(self, is_comparable: np.ndarray) -> pa.Array:
        """How many windows of the group have the same first time, last time and record count.

        Null for empty windows, and where a partly late record is near (not `is_comparable`).
        """
        names = ("_first_event_time_ms", "_last_event_time_ms", "record_count")
        stored = [self.of_windows, *[numbers(self.windows, name) for name in names]]
        judged = is_comparable & (stored[-1] > 0)
        same = np.zeros(len(judged), np.int64)
        same[judged] = how_many_equal([column[judged] for column in stored])
        return pa.array(same, mask=~judged)

    def held(self) -> np.ndarray:
        """Whether any window ends between a record's entering and leaving."""
        ends = np.sort(self.end)
        return np.searchsorted(ends, self.enter, "left") < np.searchsorted(ends, self.leave, "left")

    def counts_in_none(self) -> np.ndarray:
        """False for all: no late record, and none outside every window, is among the records."""
        return np.zeros(len(self.enter), np.bool_)

    def _time_ms(self, leave: np.ndarray, indices: np.ndarray) -> np.ndarray:
        """The event times of records by index into `leave`; arbitrary beyond its end."""
        code = np.append(leave, 0)[indices]
        leave_ms = self.instants_ms[code % len(self.instants_ms)]
        times_ms: np.ndarray = leave_ms - self.difference_ms - 1
        return times_ms


def difference_of(spec: FixedWindows) -> int:
    """From a record to the last instant of the last window that can hold the record, in ms."""
    return spec.length_ms - 1 if spec.excludes_end else spec.length_ms


def codes_of(
    groups: Sequence[np.ndarray], instants_ms: Sequence[np.ndarray]
) -> tuple[np.ndarray, list[np.ndarray]]:
    """Returns the sorted distinct instants, and codes: group * number of instants + rank.

    Codes use ranks, because a group number and milliseconds together may not fit 64 bits.
    """
    distinct_ms, rank = np.unique(np.concatenate(instants_ms), return_inverse=True)
    code = np.concatenate(groups) * len(distinct_ms) + rank
    return distinct_ms, np.split(code, np.cumsum([len(part) for part in groups[:-1]]))


def how_many_equal(columns: Sequence[np.ndarray]) -> np.ndarray:
    """How many rows equal each row, itself included."""
    order = np.lexsort(columns)
    begins = np.ones(len(order), np.bool_)
    begins[1:] = np.logical_or.reduce([np.diff(column[order]) != 0 for column in columns])
    run = np.cumsum(begins) - 1
    equal = np.empty(len(order), np.int64)
    equal[order] = np.bincount(run)[run]
    return equal


def _only_columns(rows: pa.Table, names: Sequence[str]) -> pa.Table:
    """The rows with only these columns, nulls in the others, and `is_window` false."""
    columns = [
        rows.column(field.name) if field.name in names else pa.nulls(rows.num_rows, field.type)
        for field in rows.schema
    ]
    table = pa.table(columns, schema=rows.schema)
    index = rows.schema.get_field_index("is_window")
    return table.set_column(index, rows.schema.field(index), pa.repeat(False, rows.num_rows))


def numbers(rows: pa.Table, name: str) -> np.ndarray:
    """The values of a column as 64-bit integers; `NEVER_MS` for null."""
    return writable(np.asarray(rows.column(name).fill_null(NEVER_MS), np.int64))


def _is_own(rows: pa.Table) -> np.ndarray:
    """Whether each row belongs to the shard that it is in."""
    if IS_OWN not in rows.column_names:
        return np.ones(rows.num_rows, np.bool_)
    return np.array(rows.column(IS_OWN), np.bool_)


def _own_with_columns(
    rows: pa.Table, columns: Mapping[str, pa.Array], added: pa.Schema
) -> Iterator[pa.RecordBatch]:
    own = pa.array(_is_own(rows))
    yield from _with_columns(
        rows.filter(own), {name: column.filter(own) for name, column in columns.items()}, added
    )


def _with_columns(
    rows: pa.Table, columns: Mapping[str, pa.Array], added: pa.Schema
) -> Iterator[pa.RecordBatch]:
    rows = rows.drop_columns([name for name in _INPUT_ONLY if name in rows.column_names])
    for field in added:
        rows = rows.append_column(
            field, columns.get(field.name, pa.nulls(rows.num_rows, field.type))
        )
    yield from rows.to_batches()
