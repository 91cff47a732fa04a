"""Recounts windows by binary search in what entered and what left, many keys at once.

Neither the order of the rows within a key nor the engine's sweep has a part in it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Protocol

import numpy as np
import pyarrow as pa

from windows_pipeline.engine.radix_sort import groups_in_order
from windows_pipeline.engine.time_shards import IN_HOME_SHARD, TIME_SHARD
from windows_pipeline.kernels.groups import CHUNK_ROWS
from windows_pipeline.kernels.time import NEVER_MS
from windows_pipeline.kernels.values import writable
from windows_pipeline.windows import FixedWindows, TimeWindows

_TAKEN_ONLY = ("_is_new", "arrival_unit", "source_partition", "offset", TIME_SHARD, IN_HOME_SHARD)
"""The columns that are not given back, if there: of arrival for sessions, else of time shards."""
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


class ChunkEvidence(Protocol):
    """What the records of whole groups say of their windows."""

    def beside_windows(self) -> dict[str, pa.Array]:
        """The columns that are put beside the windows."""
        ...

    def held(self) -> np.ndarray:
        """Whether a window holds each record."""
        ...

    def counts_in_none(self) -> np.ndarray:
        """Whether no window, found or not, can count each record."""
        ...

    def beside_records(self, wanted: np.ndarray) -> dict[str, pa.Array]:
        """The columns that are put beside the records of a mask."""
        ...


ChunkMaker = Callable[[pa.Table, np.ndarray, pa.Table, np.ndarray], ChunkEvidence]
"""Makes the evidence of records and their groups, windows and theirs."""


def evidence_of_groups(
    tables: Iterator[tuple[pa.Table, np.ndarray]], make: ChunkMaker, added: pa.Schema
) -> Iterator[pa.RecordBatch]:
    """Gives all windows, new records that no window holds, and how many each group's hold.

    Args:
        tables: Windows and records as the kernels take them, whole groups of `_computed_day` and
            `key`,
            with where each starts and the last ends. Where these are cut into time shards, rows
            without `_in_home_shard` are copies: they are looked at and not returned.
        make: Makes the evidence of whole groups.
        added: The columns that are put beside the rows, in the place of those taken only.
    """
    for table, starts in tables:
        group = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
        is_window = table.column("is_window").to_numpy()
        records, windows = table.filter(pa.array(~is_window)), table.filter(pa.array(is_window))
        chunk = make(records, group[~is_window], windows, group[is_window])
        yield from _own_with_columns(windows, chunk.beside_windows(), added)
        is_new, held = records.column("_is_new").to_numpy() & _in_home_shard(records), chunk.held()
        unheld = is_new & ~held & ~chunk.counts_in_none()
        told = records.filter(pa.array(unheld))
        yield from _with_columns(told, chunk.beside_records(unheld), added)
        new_group = group[~is_window][is_new]
        counted = np.bincount(new_group, held[is_new], len(starts) - 1).astype(np.int64)
        with_new = np.unique(new_group)
        summed = _only_columns(table.take(starts[with_new]), ["_computed_day", "key"])
        yield from _with_columns(summed, {"counted": pa.array(counted[with_new])}, added)


class EvidenceKernel:
    """What `DataFrame.mapInArrow` runs on each partition; see `evidence.window_evidence`.

    The rows come as `in_radix_order` gives them by `_computed_day`, `key` and `_time_shard`:
    windows (`is_window`) with `_window_end_ms`, and records, none wholly late or uncovered, with
    `_event_time_ms`, `_close_time_ms` and `_is_new`; what a row has no value for is null. It gives
    all windows, the new records that no window holds, and a row a group that has new records:
    how many are `counted`; of each time shard those that are at home in it (`_in_home_shard`).
    Without these three columns, with those that `window_evidence` adds.
    """

    def __init__(self, spec: FixedWindows, chunk_rows: int = CHUNK_ROWS) -> None:
        self._spec = spec
        self._chunk_rows = chunk_rows

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Gives the evidence of a partition."""
        groups = groups_in_order(batches, ["_computed_day", "key", TIME_SHARD], self._chunk_rows)
        return evidence_of_groups(groups, self._chunk, _ADDED)

    def _chunk(
        self, records: pa.Table, of_records: np.ndarray, windows: pa.Table, of_windows: np.ndarray
    ) -> ChunkEvidence:
        return _Chunk(records, of_records, windows, of_windows, self._spec)


class _Chunk:
    """The instants of whole groups as codes: numbers in the order of group and instant.

    A record is in the windows that end from the instant it enters to before the one it leaves
    at. As no group's codes lie among another's, one search answers for all groups.

    Ends are taken as last instants, so those of hopping and tumbling windows one earlier: then a
    window [s, s + size) is as a sliding one of difference size - 1. Where its bounds can lie has
    no part in it: the checks say that.
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
        if spec.first_window_start_ms is not None:
            first_end_ms = spec.first_window_start_ms + self.difference_ms
            left_end_ms = np.maximum(time_ms, first_end_ms)
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

    def beside_windows(self) -> dict[str, pa.Array]:
        by_entry = np.argsort(self.enter)
        leave = np.sort(self.leave)
        entered = np.searchsorted(self.enter[by_entry], self.end, "right")
        left = np.searchsorted(leave, self.end, "right")
        # Of those that entered, the one to leave last is in the window if any is.
        last_leave = np.maximum.accumulate(self.leave[by_entry])
        near = np.searchsorted(np.sort(self.near), self.end, "right")
        # A partly late record is near for one instant after it left, too.
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

    def _same_records(self, told_apart: np.ndarray) -> pa.Array:
        """How many windows of its group say that they hold the records that each one holds.

        Null where that tells nothing: where a partly late record is near, and where none is held.
        """
        names = ("_first_event_time_ms", "_last_event_time_ms", "record_count")
        said = [self.of_windows, *[numbers(self.windows, name) for name in names]]
        judged = told_apart & (said[-1] > 0)
        same = np.zeros(len(judged), np.int64)
        same[judged] = how_many_equal([column[judged] for column in said])
        return pa.array(same, mask=~judged)

    def held(self) -> np.ndarray:
        """Whether a window ends while each record is in it."""
        ends = np.sort(self.end)
        return np.searchsorted(ends, self.enter, "left") < np.searchsorted(ends, self.leave, "left")

    def counts_in_none(self) -> np.ndarray:
        """None: what is wholly late or uncovered is not among the records."""
        return np.zeros(len(self.enter), np.bool_)

    def beside_records(self, wanted: np.ndarray) -> dict[str, pa.Array]:
        """Nothing."""
        del wanted
        return {}

    def _time_ms(self, leave: np.ndarray, places: np.ndarray) -> np.ndarray:
        """The event times of records by their leaving; anything where the place is none."""
        code = np.append(leave, 0)[places]
        leave_ms = self.instants_ms[code % len(self.instants_ms)]
        times_ms: np.ndarray = leave_ms - self.difference_ms - 1
        return times_ms


def difference_of(spec: FixedWindows) -> int:
    """From a record to the last instant of the last window that can hold it, in milliseconds."""
    return spec.length_ms - 1 if isinstance(spec, TimeWindows) else spec.length_ms


def codes_of(
    groups: Sequence[np.ndarray], instants_ms: Sequence[np.ndarray]
) -> tuple[np.ndarray, list[np.ndarray]]:
    """The distinct instants, and group * their number + rank of each instant.

    Ranks, as a group number and milliseconds together may not fit 64 bits.
    """
    distinct_ms, rank = np.unique(np.concatenate(instants_ms), return_inverse=True)
    code = np.concatenate(groups) * len(distinct_ms) + rank
    return distinct_ms, np.split(code, np.cumsum([len(part) for part in groups[:-1]]))


def how_many_equal(columns: Sequence[np.ndarray]) -> np.ndarray:
    """How many rows are equal to each row, itself included."""
    order = np.lexsort(columns)
    begins = np.ones(len(order), np.bool_)
    begins[1:] = np.logical_or.reduce([np.diff(column[order]) != 0 for column in columns])
    run = np.cumsum(begins) - 1
    equal = np.empty(len(order), np.int64)
    equal[order] = np.bincount(run)[run]
    return equal


def _only_columns(rows: pa.Table, names: Sequence[str]) -> pa.Table:
    """The rows with these columns and nulls in the others, none of them a window."""
    kept = [
        rows.column(field.name) if field.name in names else pa.nulls(rows.num_rows, field.type)
        for field in rows.schema
    ]
    of_none = pa.table(kept, schema=rows.schema)
    place = rows.schema.get_field_index("is_window")
    is_none = pa.repeat(False, rows.num_rows)
    return of_none.set_column(place, rows.schema.field(place), is_none)


def numbers(rows: pa.Table, name: str) -> np.ndarray:
    """The values of a column; `NEVER_MS` for none."""
    return writable(np.asarray(rows.column(name).fill_null(NEVER_MS), np.int64))


def _in_home_shard(rows: pa.Table) -> np.ndarray:
    """Whether each row is in its home shard."""
    if IN_HOME_SHARD not in rows.column_names:
        return np.ones(rows.num_rows, np.bool_)
    return np.array(rows.column(IN_HOME_SHARD), np.bool_)


def _own_with_columns(
    rows: pa.Table, columns: Mapping[str, pa.Array], added: pa.Schema
) -> Iterator[pa.RecordBatch]:
    own = pa.array(_in_home_shard(rows))
    yield from _with_columns(
        rows.filter(own), {name: column.filter(own) for name, column in columns.items()}, added
    )


def _with_columns(
    rows: pa.Table, columns: Mapping[str, pa.Array], added: pa.Schema
) -> Iterator[pa.RecordBatch]:
    rows = rows.drop_columns([name for name in _TAKEN_ONLY if name in rows.column_names])
    for field in added:
        rows = rows.append_column(
            field, columns.get(field.name, pa.nulls(rows.num_rows, field.type))
        )
    yield from rows.to_batches()
