"""What Spark runs on each partition: sorted Arrow batches of records in, firings out (rule E2)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from windows_pipeline.aggregates import Aggregate
from windows_pipeline.engine.firings.watermark_steps import Rises
from windows_pipeline.kernels.aggregates.dispatch import (
    aggregate_windows,
    event_time_bounds,
    parts_of,
)
from windows_pipeline.kernels.firings.find import Arrived, Firings, find_firings
from windows_pipeline.kernels.firings.window_state import FiringReason
from windows_pipeline.kernels.firings.windows import New
from windows_pipeline.kernels.groups import whole_groups
from windows_pipeline.kernels.time import END_OF_INPUT_MS
from windows_pipeline.kernels.values import as_array, writable
from windows_pipeline.kernels.windows.chunk import event_times
from windows_pipeline.kernels.windows.filled import WindowedRecords
from windows_pipeline.windows import FiringWindows, SessionWindows
from windows_pipeline.windows.triggers import Trigger

AFTER = "after_"
"""Before the names of the columns that say which record a firing came after."""
_REASONS = pa.array([reason.name for reason in FiringReason])
_CAUSES = pa.array(["RECORD", "STREAM_TIME"])


class FiringTarget(NamedTuple):
    """The windows that are wanted, and when they fire."""

    windows: FiringWindows
    trigger: Trigger


class FiringKernel:
    """Gives the firings of each partition; see `firing_evaluation.fire`."""

    def __init__(
        self,
        targets: Mapping[int, FiringTarget],
        rises: Mapping[int, Rises],
        keys: Sequence[str],
        arrival: Sequence[str],
        aggregates: Sequence[Aggregate],
        *,
        with_earlier: bool = False,
    ) -> None:
        self._targets = dict(targets)
        self._rises = dict(rises)
        self._by = ["_computed_day", *keys]
        self._arrival = list(arrival)
        self._aggregates = list(aggregates)
        self._with_earlier = with_earlier

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Takes records sorted by target, keys and arrival."""
        for table, starts in whole_groups(batches, self._by):
            numbers = np.array(table.column("_computed_day"), np.int64)[starts[:-1]]
            cuts = np.flatnonzero(np.diff(numbers)) + 1
            for first, last in pairwise([0, *cuts.tolist(), len(numbers)]):
                low, high = int(starts[first]), int(starts[last])
                own = table.slice(low, high - low).combine_chunks()
                yield from self._fire(int(numbers[first]), own, starts[first : last + 1] - low)

    def _fire(self, number: int, table: pa.Table, starts: np.ndarray) -> Iterator[pa.RecordBatch]:
        target, rises = self._targets[number], self._rises[number]
        at = table.select(self._arrival)
        time_ms = event_times(table)
        stream_time_ms = writable(np.asarray(table.column("_stream_time_ms"), np.int64))
        arrived = Arrived(
            starts,
            time_ms,
            stream_time_ms,
            rises.entry(stream_time_ms, at),
            rises.stream_time_ms,
        )
        new = None
        if "_is_new" in table.column_names:
            is_new = np.array(table.column("_is_new"), np.bool_)
            new = New(is_new, rises.is_new, self._with_earlier)
        # Records and rises in one row, by which a firing says what it came after.
        moments = _below(at, rises.at)
        met_ms = np.concatenate((stream_time_ms, rises.stream_time_ms))
        for found in find_firings(target.windows, target.trigger, arrived, new):
            own = found if new is None or new.with_earlier else found.only(_after_new(found, new))
            if not len(own.id):
                continue
            after = own.after + own.by_rise * len(stream_time_ms)
            told = self._told(target, own, met_ms[after], moments.take(pa.array(after)))
            yield from self._rows(table, starts, own, told)

    def _told(
        self, target: FiringTarget, found: Firings, met_ms: np.ndarray, moments: pa.Table
    ) -> dict[str, pa.Array]:
        """The columns that don't depend on the panes' records."""
        end_ms = found.end_ms
        if isinstance(target.windows, SessionWindows):
            end_ms = end_ms - target.windows.gap_ms
        return {
            "_window_start_ms": pa.array(found.start_ms),
            "_window_end_ms": pa.array(end_ms),
            "firing_id": pa.array(found.id),
            "reason": _REASONS.take(pa.array(found.reason)),
            "cause": _CAUSES.take(pa.array(found.by_rise.astype(np.int64))),
            "_stream_time_ms": pa.array(met_ms, mask=met_ms == END_OF_INPUT_MS),
            **{AFTER + name: as_array(moments.column(name)) for name in self._arrival},
            "is_final": pa.array(found.is_final),
        }

    def _rows(
        self, table: pa.Table, starts: np.ndarray, found: Firings, told: Mapping[str, pa.Array]
    ) -> Iterator[pa.RecordBatch]:
        def describe(firing: int) -> str:
            key = [table.column(name)[int(first[firing])].as_py() for name in self._by[1:]]
            start, end = told["_window_start_ms"][firing], told["_window_end_ms"][firing]
            return (
                f"firing {found.id[firing]} of the window of key "
                f"{key[0] if len(key) == 1 else tuple(key)!r} from {start} to {end} (ms)"
            )

        first = starts[found.group]
        record = pa.array(found.record)
        values = {one.column: table.column(one.column).take(record) for one in self._aggregates}
        done = 0
        for panes in parts_of(found.panes._replace(describe=describe), self._aggregates):
            number = len(panes.windows.group)
            span = slice(done, done + number)
            of_group = pa.array(first[span])
            yield pa.RecordBatch.from_pydict(
                {name: table.column(name).take(of_group).combine_chunks() for name in self._by}
                | {name: column.slice(done, number) for name, column in told.items()}
                | self._filled(panes, values)
            )
            done += number

    def _filled(
        self, panes: WindowedRecords, values: Mapping[str, pa.ChunkedArray]
    ) -> dict[str, pa.Array]:
        first_ms, last_ms = event_time_bounds(panes)
        columns = {
            "_first_event_time_ms": first_ms,
            "_last_event_time_ms": last_ms,
            "record_count": pa.array(panes.windows.entered - panes.windows.left),
        }
        for one in self._aggregates:
            columns[one.name] = aggregate_windows(one, values[one.column], panes)
        return columns


def _after_new(found: Firings, new: New) -> np.ndarray:
    """A mask of the firings after a new record or rise."""
    is_new = np.concatenate((new.records, new.rises))
    after_new: np.ndarray = is_new[found.after + found.by_rise * len(new.records)]
    return after_new


def _below(records: pa.Table, rises: pa.Table) -> pa.Table:
    """Two tables of the same columns as one, whatever each says about nulls."""
    columns = {}
    for name in records.column_names:
        upper = records.column(name)
        lower = rises.column(name).cast(upper.type)
        columns[name] = pa.chunked_array([*upper.chunks, *lower.chunks]).combine_chunks()
    return pa.table(columns)
