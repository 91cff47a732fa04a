"""What Spark runs on each partition: sorted Arrow batches of records in, firings out (rule E2)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from windows_pipeline.aggregates import Aggregate
from windows_pipeline.engine.firings.watermark_steps import Advances
from windows_pipeline.engine.time_shards import TIME_SHARD, ends_in_shard, shard_of_groups
from windows_pipeline.kernels.aggregates.dispatch import (
    aggregate_windows,
    event_time_bounds,
    parts_of,
)
from windows_pipeline.kernels.firings.find import Arrived, Firings, find_firings
from windows_pipeline.kernels.firings.window_state import FiringReason
from windows_pipeline.kernels.firings.windows import NewInput
from windows_pipeline.kernels.groups import sorted_groups
from windows_pipeline.kernels.time import END_OF_INPUT_MS
from windows_pipeline.kernels.values import as_array, writable
from windows_pipeline.kernels.windows.chunk import event_times
from windows_pipeline.kernels.windows.filled import WindowedRecords
from windows_pipeline.windows import FiringWindows
from windows_pipeline.windows.firing.triggers import Trigger

AFTER = "_after_"
"""The prefix of the columns that identify the record after which a window fired."""
_REASONS = pa.array([reason.name for reason in FiringReason])
_CAUSES = pa.array(["RECORD", "STREAM_TIME"])


class FiringSpec(NamedTuple):
    """The windows to compute, and when they fire."""

    windows: FiringWindows
    trigger: Trigger


class FiringKernel:
    """Computes the firings of each partition; see `fire`."""

    def __init__(
        self,
        computed_days: Mapping[int, FiringSpec],
        advances: Mapping[int, Advances],
        keys: Sequence[str],
        arrival: Sequence[str],
        aggregates: Sequence[Aggregate],
        *,
        with_earlier: bool = False,
        with_failed: bool = False,
        shard_ms: int | None = None,
    ) -> None:
        self._with_failed = with_failed
        self._shard_ms = shard_ms
        self._computed_days = dict(computed_days)
        self._advances = dict(advances)
        self._keys = list(keys)
        self._by = ["_computed_day", *keys]
        self._group = [*self._by, *([] if shard_ms is None else [TIME_SHARD])]
        self._arrival = list(arrival)
        self._aggregates = list(aggregates)
        self._with_earlier = with_earlier

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Takes a partition's batches as `in_group_order` sorts them, by arrival."""
        order = ["_stream_time_ms", *self._arrival]
        for table, starts in sorted_groups(batches, self._group, order):
            days = np.array(table.column("_computed_day"), np.int64)[starts[:-1]]
            cuts = np.flatnonzero(np.diff(days)) + 1
            for first, last in pairwise([0, *cuts.tolist(), len(days)]):
                low, high = int(starts[first]), int(starts[last])
                of_day = table.slice(low, high - low).combine_chunks()
                yield from self._fire(int(days[first]), of_day, starts[first : last + 1] - low)

    def _fire(self, day: int, table: pa.Table, starts: np.ndarray) -> Iterator[pa.RecordBatch]:
        spec, advances = self._computed_days[day], self._advances[day]
        at = table.select(self._arrival)
        time_ms = event_times(table)
        stream_time_ms = writable(np.asarray(table.column("_stream_time_ms"), np.int64))
        arrived = Arrived(
            starts,
            time_ms,
            stream_time_ms,
            advances.entry(stream_time_ms, at),
            advances.stream_time_ms,
        )
        new = None
        if "_is_new" in table.column_names:
            is_new = np.array(table.column("_is_new"), np.bool_)
            new = NewInput(is_new, advances.is_new, self._with_earlier)
        # Records and then advances, so that a single index identifies what a firing came after.
        causes = _appended(at, advances.at)
        met_ms = np.concatenate((stream_time_ms, advances.stream_time_ms))
        if self._shard_ms is not None:
            shard_of_group = shard_of_groups(table, starts)
        for found in find_firings(spec.windows, spec.trigger, arrived, new):
            firings = found
            if self._shard_ms is not None:
                shard = shard_of_group[found.group]
                firings = found.only(ends_in_shard(found.end_ms, shard, self._shard_ms))
            if new is not None and not new.with_earlier:
                firings = firings.only(_after_new(firings, new))
            if not len(firings.id):
                continue
            after = firings.after + firings.by_advance * len(stream_time_ms)
            columns = self._columns(spec, firings, met_ms[after], causes.take(pa.array(after)))
            yield from self._rows(table, starts, firings, columns)

    def _columns(
        self, spec: FiringSpec, found: Firings, met_ms: np.ndarray, causes: pa.Table
    ) -> dict[str, pa.Array]:
        """The columns that do not depend on the panes' records."""
        end_ms, timeout_ms = found.end_ms, spec.windows.timeout_ms
        if timeout_ms is not None:
            end_ms = end_ms - timeout_ms
        return {
            "_window_start_ms": pa.array(found.start_ms),
            "_window_end_ms": pa.array(end_ms),
            "firing_id": pa.array(found.id),
            "reason": _REASONS.take(pa.array(found.reason)),
            "cause": _CAUSES.take(pa.array(found.by_advance.astype(np.int64))),
            "_stream_time_ms": pa.array(met_ms, mask=met_ms == END_OF_INPUT_MS),
            **{AFTER + name: as_array(causes.column(name)) for name in self._arrival},
            "is_final": pa.array(found.is_final),
        }

    def _rows(
        self, table: pa.Table, starts: np.ndarray, found: Firings, columns: Mapping[str, pa.Array]
    ) -> Iterator[pa.RecordBatch]:
        def describe(firing: int) -> str:
            key = [table.column(name)[int(first[firing])].as_py() for name in self._keys]
            start, end = columns["_window_start_ms"][firing], columns["_window_end_ms"][firing]
            return (
                f"firing {found.id[firing]} of the window of key "
                f"{key[0] if len(key) == 1 else tuple(key)!r} from {start} to {end} (ms)"
            )

        first = starts[found.group]
        record = pa.array(found.record)
        values = {each.column: table.column(each.column).take(record) for each in self._aggregates}
        done = 0
        noted: list[tuple[str, np.ndarray]] | None = [] if self._with_failed else None
        whole = found.panes._replace(describe=describe, noted=noted)
        for panes in parts_of(whole, self._aggregates):
            count = len(panes.windows.group)
            of_group = pa.array(first[done : done + count])
            yield pa.RecordBatch.from_pydict(
                {name: table.column(name).take(of_group).combine_chunks() for name in self._by}
                | {name: column.slice(done, count) for name, column in columns.items()}
                | self._aggregated(panes, values)
            )
            done += count

    def _aggregated(
        self, panes: WindowedRecords, values: Mapping[str, pa.ChunkedArray]
    ) -> dict[str, pa.Array]:
        first_ms, last_ms = event_time_bounds(panes)
        columns = {
            "_first_event_time_ms": first_ms,
            "_last_event_time_ms": last_ms,
            "record_count": pa.array(panes.windows.entered - panes.windows.left),
        }
        for each in self._aggregates:
            columns[each.result_column] = aggregate_windows(each, values[each.column], panes)
        if self._with_failed:
            columns["failed"] = panes.failed()
        return columns


def _after_new(found: Firings, new: NewInput) -> np.ndarray:
    """A mask of the firings after a new record or watermark advance."""
    is_new = np.concatenate((new.records, new.advances))
    after_new: np.ndarray = is_new[found.after + found.by_advance * len(new.records)]
    return after_new


def _appended(records: pa.Table, advances: pa.Table) -> pa.Table:
    """The rows of two tables with the same columns, which may differ in nullability."""
    columns = {}
    for name in records.column_names:
        upper = records.column(name)
        lower = advances.column(name).cast(upper.type)
        columns[name] = pa.chunked_array([*upper.chunks, *lower.chunks]).combine_chunks()
    return pa.table(columns)
