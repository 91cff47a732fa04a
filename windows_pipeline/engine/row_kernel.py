"""What Spark runs on each partition for row windows: sorted rows in, the same with results out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

import numpy as np
import pyarrow as pa

from windows_pipeline.aggregates import Aggregate
from windows_pipeline.engine.time_shards import IS_OWN, SLICE
from windows_pipeline.kernels.aggregates.dispatch import aggregate_windows, parts_of
from windows_pipeline.kernels.groups import whole_groups
from windows_pipeline.kernels.windows.chunk import event_times
from windows_pipeline.kernels.windows.filled import WindowedRecords
from windows_pipeline.kernels.windows.row_frames import Frames, frames_of
from windows_pipeline.kernels.windows.sliding import Windows
from windows_pipeline.windows.row_windows import RowWindow

NUMBER, ROWS_THERE = "number", "rows_there"
"""A row's number in its group, from 1, and how many rows that has."""


def result_column(place: int) -> str:
    """The column of an aggregate's results, by its place: its name may be any, also another's."""
    return f"result_{place}"


class RowKernel:
    """Gives each row's results; see `row_evaluation.evaluate_rows`."""

    def __init__(
        self,
        targets: Mapping[int, RowWindow],
        keys: Sequence[str],
        aggregates: Sequence[Aggregate],
        keep: Sequence[str],
        *,
        tells_number: bool = False,
    ) -> None:
        self._targets = dict(targets)
        self._by = ["_computed_day", *keys]
        self._aggregates = list(aggregates)
        self._keep = list(keep)
        self._tells_number = tells_number

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Takes rows by group, and in it by time and arrival, or by arrival alone."""
        for table, starts in whole_groups(batches, self._by):
            for window, rows, starts_of_rows in self._alike(table, starts):
                yield from self._answer(window, rows, starts_of_rows)

    def _alike(
        self, table: pa.Table, starts: np.ndarray
    ) -> Iterator[tuple[RowWindow, pa.Table, np.ndarray]]:
        """Splits rows where other windows are wanted of them."""
        wanted = np.array(table.column("_computed_day"), np.int64)[starts[:-1]]
        cuts = [0, *(np.flatnonzero(np.diff(wanted)) + 1).tolist(), len(wanted)]
        for first, last in pairwise(cuts):
            low, high = int(starts[first]), int(starts[last])
            window = self._targets[int(wanted[first])]
            yield window, table.slice(low, high - low), starts[first : last + 1] - low

    def _answer(
        self, window: RowWindow, table: pa.Table, starts: np.ndarray
    ) -> Iterator[pa.RecordBatch]:
        # By arrival alone, a row's place stands for its time, also for `first` and `last`.
        has_time = window.time_column is not None
        time_ms = event_times(table) if has_time else np.arange(table.num_rows)
        frames = frames_of(window, starts, time_ms)
        own = np.arange(table.num_rows)
        if IS_OWN in table.column_names:
            own = np.flatnonzero(np.array(table.column(IS_OWN), np.bool_))

        def describe(number: int) -> str:
            row = int(own[number])
            at = f"at {time_ms[row]} (ms)" if has_time else "in the order of arrival"
            return f"the window of a row of key {self._key(table, row)!r} {at}"

        whole = WindowedRecords(frames.starts, time_ms, _windows(frames, own, time_ms), describe)
        done = 0
        for records in parts_of(whole, self._aggregates):
            rows = own[done : done + len(records.windows.group)]
            done += len(rows)
            yield from self._batches(table, starts, rows, frames, records)

    def _batches(
        self,
        table: pa.Table,
        starts: np.ndarray,
        rows: np.ndarray,
        frames: Frames,
        records: WindowedRecords,
    ) -> list[pa.RecordBatch]:
        kept = _taken(table.select(self._keep), rows)
        for name, bound_ms in (
            ("_window_start_ms", frames.start_ms),
            ("_window_end_ms", frames.end_ms),
        ):
            none = pa.nulls(len(rows), pa.int64())
            kept = kept.append_column(name, none if bound_ms is None else pa.array(bound_ms[rows]))
        for place, aggregate in enumerate(self._aggregates):
            results = aggregate_windows(aggregate, table.column(aggregate.column), records)
            kept = kept.append_column(result_column(place), results)
        if self._tells_number:
            group = np.searchsorted(starts, rows, "right")
            kept = kept.append_column(NUMBER, pa.array(rows - starts[group - 1] + 1))
            kept = kept.append_column(ROWS_THERE, pa.array(starts[group] - starts[group - 1]))
        batches: list[pa.RecordBatch] = kept.to_batches()
        return batches

    def _key(self, table: pa.Table, row: int) -> object:
        key = [table.column(name)[row].as_py() for name in self._by[1:] if name != SLICE]
        return key[0] if len(key) == 1 else tuple(key)


def _windows(frames: Frames, own: np.ndarray, time_ms: np.ndarray) -> Windows:
    """The windows of some of the rows, as the aggregates take them."""
    return Windows(
        frames.part[own],
        time_ms[own],
        np.zeros(len(own), np.bool_),
        frames.entered[own],
        frames.left[own],
        np.arange(len(time_ms)),
        np.zeros(len(time_ms), np.bool_),
    )


def _taken(table: pa.Table, rows: np.ndarray) -> pa.Table:
    """Some rows, in their order; without a copy where they lie side by side."""
    if len(rows) and rows[-1] - rows[0] == len(rows) - 1:
        return table.slice(int(rows[0]), len(rows))
    return table.take(pa.array(rows))
