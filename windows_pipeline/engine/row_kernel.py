"""What Spark runs on each partition for row windows: takes sorted rows, returns results."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

import numpy as np
import pyarrow as pa

from windows_pipeline.aggregates import Aggregate
from windows_pipeline.engine.preaggregation.after_slices import (
    AfterSlices,
    after_slices,
    states_after_slices,
)
from windows_pipeline.engine.preaggregation.combine import combine_states
from windows_pipeline.engine.record_shards import ROWS_BEFORE
from windows_pipeline.engine.running_shards import state_column
from windows_pipeline.engine.time_shards import IN_HOME_SHARD, TIME_SHARD
from windows_pipeline.kernels.aggregates.dispatch import aggregate_windows, parts_of
from windows_pipeline.kernels.groups import sorted_groups
from windows_pipeline.kernels.windows.arrays import WindowArrays
from windows_pipeline.kernels.windows.chunk import event_times
from windows_pipeline.kernels.windows.filled import WindowedRecords
from windows_pipeline.kernels.windows.row_frames import Frames, frames_of, united
from windows_pipeline.tuning import TUNING, Tuning
from windows_pipeline.windows.frames.row_windows import RowWindow

NUMBER, GROUP_ROWS = "number", "group_rows"
"""The columns of a row's number, from 1, and of the number of the last row in its group."""


def result_column(index: int) -> str:
    """The column of an aggregate's results, by its index: its name may be another column's."""
    return f"result_{index}"


class RowKernel:
    """Computes the results of each row's window; see `evaluate_rows`."""

    def __init__(
        self,
        computed_days: Mapping[int, RowWindow],
        keys: Sequence[str],
        aggregates: Sequence[Aggregate],
        arrival: Sequence[str],
        keep: Sequence[str],
        *,
        frames: Sequence[tuple[RowWindow, ...]] = (),
        with_numbers: bool = False,
        with_failed: bool = False,
        earlier: pa.Table | None = None,
        tuning: Tuning = TUNING,
    ) -> None:
        self._frames = tuple(frames)
        self._computed_days = dict(computed_days)
        self._by = ["_computed_day", *keys]
        self._order: list[str] = []
        by_arrival = {window.by_arrival for window in computed_days.values()}
        if len(by_arrival) == 1:  # otherwise the order differs from day to day
            self._order = [*([] if True in by_arrival else ["_event_time_ms"]), *arrival]
        self._aggregates = list(aggregates)
        self._keep = list(keep)
        self._with_numbers = with_numbers
        self._with_failed = with_failed
        self._earlier = earlier
        self._tuning = tuning

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Takes a partition's batches as `in_group_order` sorts them, by time and arrival."""
        chunk_rows = self._tuning.chunk_rows
        for table, starts in sorted_groups(batches, self._by, self._order, chunk_rows):
            for window, rows, starts_of_rows in self._by_window(table, starts):
                yield from self._results(window, rows, starts_of_rows)

    def _by_window(
        self, table: pa.Table, starts: np.ndarray
    ) -> Iterator[tuple[RowWindow, pa.Table, np.ndarray]]:
        """Splits rows where the computed day changes, and with it the windows."""
        days = np.array(table.column("_computed_day"), np.int64)[starts[:-1]]
        cuts = [0, *(np.flatnonzero(np.diff(days)) + 1).tolist(), len(days)]
        for first, last in pairwise(cuts):
            low, high = int(starts[first]), int(starts[last])
            window = self._computed_days[int(days[first])]
            yield window, table.slice(low, high - low), starts[first : last + 1] - low

    def _results(
        self, window: RowWindow, table: pa.Table, starts: np.ndarray
    ) -> Iterator[pa.RecordBatch]:
        earlier = None
        if self._earlier is not None:
            earlier = after_slices(table, starts, self._earlier)
            table, starts = earlier.table, earlier.starts
        # Where only arrival orders rows, a row's position is its time, for `first` and `last` too.
        has_time = window.time_column is not None
        time_ms = event_times(table) if has_time else np.arange(table.num_rows)
        rows_before = _rows_before(table, starts)
        of_aggregates = self._frames or ((window,),) * len(self._aggregates)
        found = {
            some: united([frames_of(each, starts, time_ms, rows_before) for each in some])
            for some in dict.fromkeys(of_aggregates or ((window,),))
        }
        outer = united(list(found.values()))
        home_rows = np.arange(table.num_rows)
        if IN_HOME_SHARD in table.column_names:
            home_rows = np.flatnonzero(np.array(table.column(IN_HOME_SHARD), np.bool_))

        def describe(number: int) -> str:
            row = int(home_rows[number])
            at = f"at {time_ms[row]} (ms)" if has_time else "in the order of arrival"
            return f"the window of a row of key {self._key(table, row)!r} {at}"

        noted: list[tuple[str, np.ndarray]] | None = [] if self._with_failed else None

        def over(frames: Frames) -> WindowedRecords:
            windows = _windows(frames, home_rows, time_ms)
            return WindowedRecords(frames.starts, time_ms, windows, describe, noted)

        whole = {some: over(frames) for some, frames in found.items()}
        values = self._values(table, time_ms, earlier)
        done = 0
        for part in parts_of(over(outer), self._aggregates, self._tuning):
            rows = home_rows[done : done + len(part.windows.group)]
            end = done + len(rows)
            # All aggregates note their failures in one list, in their order.
            of_frames = {
                some: each.part(done, end)._replace(noted=part.noted)
                for some, each in whole.items()
            }
            done = end
            records = [of_frames[some] for some in of_aggregates]
            yield from self._batches(table, values, starts, rows, outer, part, records)

    def _batches(
        self,
        table: pa.Table,
        values: Sequence[pa.Array | pa.ChunkedArray],
        starts: np.ndarray,
        rows: np.ndarray,
        frames: Frames,
        part: WindowedRecords,
        of_aggregates: Sequence[WindowedRecords],
    ) -> list[pa.RecordBatch]:
        results = _taken(table.select(self._keep), rows)
        for name, bound_ms in (
            ("_window_start_ms", frames.start_ms),
            ("_window_end_ms", frames.end_ms),
        ):
            nulls = pa.nulls(len(rows), pa.int64())
            column = nulls if bound_ms is None else pa.array(bound_ms[rows])
            results = results.append_column(name, column)
        compute = aggregate_windows if self._earlier is None else combine_states
        for index, (aggregate, records) in enumerate(
            zip(self._aggregates, of_aggregates, strict=True)
        ):
            column = compute(aggregate, values[index], records)
            results = results.append_column(result_column(index), column)
        if self._with_failed:
            results = results.append_column("failed", part.failed())
        if self._with_numbers:
            group = np.searchsorted(starts, rows, "right")
            before = _rows_before(table, starts)[group - 1] - starts[group - 1]
            results = results.append_column(NUMBER, pa.array(rows + before + 1))
            results = results.append_column(GROUP_ROWS, pa.array(starts[group] + before))
        batches: list[pa.RecordBatch] = results.to_batches()
        return batches

    def _values(
        self, table: pa.Table, time_ms: np.ndarray, earlier: AfterSlices | None
    ) -> list[pa.Array | pa.ChunkedArray]:
        """What each aggregate is computed from: values, or partial results after earlier ones."""
        if earlier is None:
            return [table.column(aggregate.column) for aggregate in self._aggregates]
        return [
            states_after_slices(aggregate, earlier, state_column(index), time_ms)
            for index, aggregate in enumerate(self._aggregates)
        ]

    def _key(self, table: pa.Table, row: int) -> object:
        key = [table.column(name)[row].as_py() for name in self._by[1:] if name != TIME_SHARD]
        return key[0] if len(key) == 1 else tuple(key)


def _rows_before(table: pa.Table, starts: np.ndarray) -> np.ndarray:
    """How many rows come before each group's first one, in other shards."""
    if ROWS_BEFORE not in table.column_names:
        return np.zeros(len(starts) - 1, np.int64)
    before: np.ndarray = np.array(table.column(ROWS_BEFORE), np.int64)[starts[:-1]]
    return before


def _windows(frames: Frames, rows: np.ndarray, time_ms: np.ndarray) -> WindowArrays:
    """The windows of some of the rows, in the form that the aggregates take."""
    return WindowArrays(
        frames.part[rows],
        time_ms[rows],
        np.zeros(len(rows), np.bool_),
        frames.entered[rows],
        frames.left[rows],
        np.arange(len(time_ms)),
        np.zeros(len(time_ms), np.bool_),
    )


def _taken(table: pa.Table, rows: np.ndarray) -> pa.Table:
    """Some rows in ascending order; without a copy where they are consecutive."""
    if len(rows) and rows[-1] - rows[0] == len(rows) - 1:
        return table.slice(int(rows[0]), len(rows))
    return table.take(pa.array(rows))
