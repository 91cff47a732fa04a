"""What Spark runs on each partition: sorted Arrow batches of records in, windows out.

Hopping windows go out as runs of those that hold the same records, which `evaluation` unrolls.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from windows_pipeline.aggregates import Aggregate
from windows_pipeline.engine.preaggregation.combine import (
    combine_panes,
    event_time_bounds_of_panes,
    record_count_of_panes,
)
from windows_pipeline.engine.radix_sort import groups_in_order
from windows_pipeline.engine.time_shards import SLICE, of_own_slice, settle_in
from windows_pipeline.kernels.aggregates.dispatch import (
    aggregate_windows,
    event_time_bounds,
    parts_of,
)
from windows_pipeline.kernels.windows.assign import Reason
from windows_pipeline.kernels.windows.chunk import Target, chunks_of
from windows_pipeline.kernels.windows.filled import WindowedRecords
from windows_pipeline.kernels.windows.find import FoundWindows, find_windows
from windows_pipeline.windows import SessionWindows, TimeWindows, WindowSpec

RUN = ("_last_window_end_ms", "_advance_ms")
"""The columns of a run's last window and of the way from each of its windows to the next."""


class WindowKernel:
    """Gives the windows of each partition; see `evaluation.evaluate`.

    Attributes:
        group: The columns whose values make a group; one target alone has none, beside others.
        told: Those that windows have: all but the slice.
        length_ms: From each window's start to its end; None where one starts with its first
            record, or where they differ in it.
        tells_starts: Whether they differ in it; then there is a column `_window_start_ms`.
        tells_uncounted: Whether there are rows of records that no window counts.
        tells_runs: Whether a row is a run of windows that hold the same records: the first of
            them, and the columns `RUN`. So it is where any windows are hopping or tumbling.
    """

    def __init__(
        self,
        targets: Mapping[int, Target],
        keys: Sequence[str],
        arrival: Sequence[str],
        aggregates: Sequence[Aggregate],
        *,
        tells_uncounted: bool = False,
        of_panes: bool = False,
        slice_ms: int | None = None,
        only_closed: bool = False,
    ) -> None:
        self._targets = dict(targets)
        self._only_closed = only_closed
        self._keys = list(keys)
        cut = [] if slice_ms is None else [SLICE]
        alone = len(targets) == 1 and bool(self._keys or cut)
        self.told = self._keys if alone else ["_computed_day", *keys]
        self.group = [*self.told, *cut]
        self._slice_ms = slice_ms
        self._arrival = list(arrival)
        self._aggregates = list(aggregates)
        self.tells_uncounted = tells_uncounted
        self._of_panes = of_panes
        lengths_ms = {_length_ms(each.windows) for each in targets.values()}
        self.tells_starts = len(lengths_ms) != 1
        self.length_ms = None if self.tells_starts else lengths_ms.pop()
        self.tells_runs = any(isinstance(each.windows, TimeWindows) for each in targets.values())

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Takes what `radix_order.in_radix_order` gives of a partition."""
        for table, starts in groups_in_order(batches, self.group):
            for chunk in chunks_of(table, starts, self._targets):
                found = find_windows(chunk, self._arrival)
                if self._slice_ms is not None:
                    found = self._of_own_slice(found, self._slice_ms)
                if self._only_closed:
                    found = replace(found, windows=found.windows.only(found.windows.closed))
                yield from self._windows(found)

    def _of_own_slice(self, found: FoundWindows, slice_ms: int) -> FoundWindows:
        of_group = np.array(found.table.column(SLICE).take(pa.array(found.starts[:-1])), np.int64)
        own = of_own_slice(found.windows, of_group, slice_ms, found.advance_ms)
        if own.uncounted.any():
            settles = settle_in(found.table, found.length_ms, slice_ms)
            own = own._replace(uncounted=own.uncounted & settles)
        return replace(found, windows=own)

    def _windows(self, found: FoundWindows) -> Iterator[pa.RecordBatch]:
        def describe(window: int) -> str:
            return self._describe(found, window)

        whole = WindowedRecords(found.starts, found.time_ms, found.windows, describe)
        for records in parts_of(whole, self._aggregates):
            batch = self._batch(found, records)
            yield batch
        if self.tells_uncounted and found.windows.uncounted.any():
            yield self._uncounted(found, batch.schema)

    def _batch(self, found: FoundWindows, records: WindowedRecords) -> pa.RecordBatch:
        windows, table = records.windows, found.table
        if self._of_panes:
            first_ms, last_ms = event_time_bounds_of_panes(table, records)
            record_count = record_count_of_panes(table, records)
        else:
            first_ms, last_ms = event_time_bounds(records)
            record_count = pa.array(windows.entered - windows.left)
        columns = self._groups(found, found.starts[windows.group])
        if self.tells_starts:
            length_ms, end_ms = found.length_ms, windows.end_ms
            start_ms = first_ms if length_ms is None else pa.array(end_ms - length_ms)
            columns["_window_start_ms"] = start_ms
        columns |= {
            "_window_end_ms": pa.array(windows.end_ms),
            "_first_event_time_ms": first_ms,
            "_last_event_time_ms": last_ms,
            "record_count": record_count,
        }
        for one in self._aggregates:
            columns[one.name] = (
                combine_panes(one, table, records)
                if self._of_panes
                else aggregate_windows(one, table.column(one.column), records)
            )
        columns["closed"] = pa.array(windows.closed)
        if self.tells_uncounted:
            no_record = pa.nulls(len(windows.group), pa.int64())
            columns["_partly_late_time_ms"] = columns["_partly_late_close_ms"] = no_record
        if self.tells_runs:
            last_end_ms = windows.end_ms if windows.last_end_ms is None else windows.last_end_ms
            advances_ms = np.full(len(last_end_ms), found.advance_ms)
            columns |= zip(RUN, (pa.array(last_end_ms), pa.array(advances_ms)), strict=True)
        return pa.RecordBatch.from_pydict(columns)

    def _groups(self, found: FoundWindows, records: np.ndarray) -> dict[str, pa.Array]:
        place = pa.array(records)
        return {name: found.table.column(name).take(place).combine_chunks() for name in self.told}

    def _uncounted(self, found: FoundWindows, schema: pa.Schema) -> pa.RecordBatch:
        """Rows of the distinct event and close times of the records that no window counts."""
        marked = np.flatnonzero(found.windows.uncounted)
        times, closes = found.time_ms[marked], found.close_ms[marked]
        group = np.searchsorted(found.starts, marked, "right") - 1
        _, kept = np.unique(np.stack([group, times, closes]), axis=1, return_index=True)
        rows = {field.name: pa.nulls(len(kept), field.type) for field in schema}
        rows |= self._groups(found, marked[kept])
        rows["_partly_late_time_ms"] = pa.array(times[kept])
        rows["_partly_late_close_ms"] = pa.array(closes[kept])
        return pa.RecordBatch.from_pydict(rows)

    def _describe(self, found: FoundWindows, window: int) -> str:
        """Names a window in an error."""
        end_ms = int(found.windows.end_ms[window])
        record = int(found.starts[found.windows.group[window]])
        start_ms = (
            int(found.time_ms[record]) if found.length_ms is None else end_ms - found.length_ms
        )
        key = [found.table.column(name)[record].as_py() for name in self._keys]
        named = key[0] if len(key) == 1 else tuple(key)
        return f"the window of key {named!r} from {start_ms} to {end_ms} (ms)"


def _length_ms(spec: WindowSpec) -> int | None:
    return None if isinstance(spec, SessionWindows) else spec.length_ms


class LateKernel:
    """Gives the records of each partition that no window counts, with `reason` (rule A5)."""

    def __init__(
        self,
        targets: Mapping[int, Target],
        keys: Sequence[str],
        arrival: Sequence[str],
        *,
        slice_ms: int | None = None,
    ) -> None:
        self._targets = dict(targets)
        self.group = ["_computed_day", *keys, *([] if slice_ms is None else [SLICE])]
        self._arrival = list(arrival)
        self._slice_ms = slice_ms

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Takes what `radix_order.in_radix_order` gives of a partition, with any other columns."""
        for table, starts in groups_in_order(batches, self.group):
            for chunk in chunks_of(table, starts, self._targets):
                found = find_windows(chunk, self._arrival)
                reason = found.reason
                if self._slice_ms is not None:
                    settles = settle_in(chunk.table, found.length_ms, self._slice_ms)
                    reason = np.where(settles, reason, Reason.NONE)
                wanted = np.flatnonzero(reason != Reason.NONE)
                names = pa.array(
                    [Reason(code).name.lower() for code in reason[wanted]], pa.string()
                )
                rows = chunk.table.take(pa.array(wanted)).append_column("reason", names)
                yield from rows.to_batches()
