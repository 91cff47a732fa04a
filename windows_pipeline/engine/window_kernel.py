"""What Spark runs on each partition: sorted Arrow batches of records in, windows out.

Hopping windows are returned as runs of windows that contain the same records; `evaluate_windows` in
engine/windows.py unrolls them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from windows_pipeline.aggregates import Aggregate
from windows_pipeline.engine.preaggregation.combine import (
    combine_slices,
    event_time_bounds_of_slices,
    record_count_of_slices,
)
from windows_pipeline.engine.radix_sort import groups_in_order
from windows_pipeline.engine.time_shards import (
    TIME_SHARD,
    ending_in_shard,
    in_home_shard,
    shard_of_groups,
)
from windows_pipeline.kernels.aggregates.dispatch import (
    aggregate_windows,
    event_time_bounds,
    parts_of,
)
from windows_pipeline.kernels.windows.assign import Reason
from windows_pipeline.kernels.windows.chunk import ChunkWindows, ComputedDay, chunks_of
from windows_pipeline.kernels.windows.filled import WindowedRecords
from windows_pipeline.kernels.windows.find import find_windows
from windows_pipeline.tuning import TUNING, Tuning

RUN = ("_last_window_end_ms", "_advance_ms")
"""The columns of a run: the end of its last window, and the distance between its windows."""


class WindowKernel:
    """Computes the windows of each partition; see `evaluate_windows` in engine/windows.py.

    Attributes:
        group: The columns whose values make a group. A single computed day is left out, unless
            there is no other column.
        result_keys: The columns of `group` that windows have: all but the time shard.
        length_ms: From each window's start to its end. None where a window starts with its first
            record, or where computed days have windows of different lengths.
        with_starts: Whether windows have different lengths; then there is a column
            `_window_start_ms`.
        with_partly_late: Whether partly late records that no window counts are returned.
        with_failed: Whether an aggregate that can't be computed is null, with its name in the
            column `failed` (rule G3); otherwise it raises an error.
        with_runs: Whether a row is a run of windows that contain the same records: its first
            window and the columns `RUN`. True where any computed day has hopping or tumbling
            windows.
    """

    def __init__(
        self,
        computed_days: Mapping[int, ComputedDay],
        keys: Sequence[str],
        arrival: Sequence[str],
        aggregates: Sequence[Aggregate],
        *,
        with_partly_late: bool = False,
        of_slices: bool = False,
        shard_ms: int | None = None,
        in_shards: bool = False,
        only_closed: bool = False,
        with_failed: bool = False,
        tuning: Tuning = TUNING,
    ) -> None:
        self._computed_days = dict(computed_days)
        self._only_closed = only_closed
        self.with_failed = with_failed
        self._keys = list(keys)
        shard = [TIME_SHARD] if in_shards else []
        is_single_day = len(computed_days) == 1 and bool(self._keys or shard)
        self.result_keys = self._keys if is_single_day else ["_computed_day", *keys]
        self.group = [*self.result_keys, *shard]
        self._shard_ms = shard_ms
        self._arrival = list(arrival)
        self._aggregates = list(aggregates)
        self.with_partly_late = with_partly_late
        self._of_slices = of_slices
        specs = [day.windows for day in computed_days.values()]
        lengths_ms = {spec.length_ms for spec in specs}
        self.with_starts = len(lengths_ms) != 1
        self.length_ms = None if self.with_starts else lengths_ms.pop()
        self.with_runs = any(spec.step_ms is not None for spec in specs)
        self._tuning = tuning

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Takes a partition's batches as `in_radix_order` sorts them."""
        for table, starts in groups_in_order(batches, self.group, self._tuning.chunk_rows):
            for chunk in chunks_of(table, starts, self._computed_days):
                found = find_windows(chunk, self._arrival)
                if self._shard_ms is not None:
                    found = self._ending_in_shard(found, self._shard_ms)
                if self._only_closed:
                    found = replace(found, windows=found.windows.only(found.windows.closed))
                yield from self._windows(found)

    def _ending_in_shard(self, found: ChunkWindows, shard_ms: int) -> ChunkWindows:
        of_group = shard_of_groups(found.table, found.starts)
        windows = ending_in_shard(found.windows, of_group, shard_ms, found.advance_ms)
        if windows.dropped.any():
            is_home = in_home_shard(found.table, found.length_ms, shard_ms)
            windows = windows._replace(dropped=windows.dropped & is_home)
        return replace(found, windows=windows)

    def _windows(self, found: ChunkWindows) -> Iterator[pa.RecordBatch]:
        def describe(window: int) -> str:
            return self._describe(found, window)

        noted: list[tuple[str, np.ndarray]] | None = [] if self.with_failed else None
        whole = WindowedRecords(found.starts, found.time_ms, found.windows, describe, noted)
        for records in parts_of(whole, self._aggregates, self._tuning):
            batch = self._batch(found, records)
            yield batch
        if self.with_partly_late and found.windows.dropped.any():
            yield self._partly_late(found, batch.schema)

    def _batch(self, found: ChunkWindows, records: WindowedRecords) -> pa.RecordBatch:
        windows, table = records.windows, found.table
        if self._of_slices:
            first_ms, last_ms = event_time_bounds_of_slices(table, records)
            record_count = record_count_of_slices(table, records)
        else:
            first_ms, last_ms = event_time_bounds(records)
            record_count = pa.array(windows.entered - windows.left)
        columns = self._keys_of(found, found.starts[windows.group])
        if self.with_starts:
            length_ms, end_ms = found.length_ms, windows.end_ms
            start_ms = first_ms if length_ms is None else pa.array(end_ms - length_ms)
            columns["_window_start_ms"] = start_ms
        columns |= {
            "_window_end_ms": pa.array(windows.end_ms),
            "_first_event_time_ms": first_ms,
            "_last_event_time_ms": last_ms,
            "record_count": record_count,
        }
        columns |= self._aggregated(table, records)
        columns["closed"] = pa.array(windows.closed)
        if self.with_partly_late:
            no_record = pa.nulls(len(windows.group), pa.int64())
            columns["_partly_late_time_ms"] = columns["_partly_late_close_ms"] = no_record
        if self.with_runs:
            last_end_ms = windows.end_ms if windows.last_end_ms is None else windows.last_end_ms
            advances_ms = np.full(len(last_end_ms), found.advance_ms)
            columns |= zip(RUN, (pa.array(last_end_ms), pa.array(advances_ms)), strict=True)
        return pa.RecordBatch.from_pydict(columns)

    def _aggregated(self, table: pa.Table, records: WindowedRecords) -> dict[str, pa.Array]:
        """The aggregates, and the names of those that can't be computed."""
        columns = {
            aggregate.result_column: combine_slices(aggregate, table, records)
            if self._of_slices
            else aggregate_windows(aggregate, table.column(aggregate.column), records)
            for aggregate in self._aggregates
        }
        return {**columns, "failed": records.failed()} if self.with_failed else columns

    def _keys_of(self, found: ChunkWindows, records: np.ndarray) -> dict[str, pa.Array]:
        """The computed day and the keys of some records."""
        index = pa.array(records)
        return {
            name: found.table.column(name).take(index).combine_chunks() for name in self.result_keys
        }

    def _partly_late(self, found: ChunkWindows, schema: pa.Schema) -> pa.RecordBatch:
        """One row for each distinct event and close time of the records that no window counts."""
        records = np.flatnonzero(found.windows.dropped)
        time_ms, close_ms = found.time_ms[records], found.close_ms[records]
        group = np.searchsorted(found.starts, records, "right") - 1
        stacked = np.stack([group, time_ms, close_ms])
        _, distinct = np.unique(stacked, axis=1, return_index=True)
        rows = {field.name: pa.nulls(len(distinct), field.type) for field in schema}
        rows |= self._keys_of(found, records[distinct])
        rows["_partly_late_time_ms"] = pa.array(time_ms[distinct])
        rows["_partly_late_close_ms"] = pa.array(close_ms[distinct])
        return pa.RecordBatch.from_pydict(rows)

    def _describe(self, found: ChunkWindows, window: int) -> str:
        """Names a window in an error."""
        end_ms = int(found.windows.end_ms[window])
        record = int(found.starts[found.windows.group[window]])
        start_ms = (
            int(found.time_ms[record]) if found.length_ms is None else end_ms - found.length_ms
        )
        key = [found.table.column(name)[record].as_py() for name in self._keys]
        shown = key[0] if len(key) == 1 else tuple(key)
        return f"the window of key {shown!r} from {start_ms} to {end_ms} (ms)"


class LateKernel:
    """Returns the records of each partition that no window counts, with `reason` (rule A5)."""

    def __init__(
        self,
        computed_days: Mapping[int, ComputedDay],
        keys: Sequence[str],
        arrival: Sequence[str],
        *,
        shard_ms: int | None = None,
        in_shards: bool = False,
    ) -> None:
        self._computed_days = dict(computed_days)
        self.group = ["_computed_day", *keys, *([TIME_SHARD] if in_shards else [])]
        self._arrival = list(arrival)
        self._shard_ms = shard_ms

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Takes a partition's batches as `in_radix_order` sorts them, with any other columns."""
        for table, starts in groups_in_order(batches, self.group):
            for chunk in chunks_of(table, starts, self._computed_days):
                found = find_windows(chunk, self._arrival)
                reason = found.reason
                if self._shard_ms is not None:
                    is_home = in_home_shard(chunk.table, found.length_ms, self._shard_ms)
                    reason = np.where(is_home, reason, Reason.NONE)
                late = np.flatnonzero(reason != Reason.NONE)
                names = pa.array([Reason(code).name.lower() for code in reason[late]], pa.string())
                rows = chunk.table.take(pa.array(late)).append_column("reason", names)
                yield from rows.to_batches()
