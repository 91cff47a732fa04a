"""The sliding engine's kernel: sorted Arrow batches of records in, batches of windows out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windows_pipeline.aggregates import Aggregate, Function
from windows_pipeline.engine.groups import whole_groups
from windows_pipeline.engine.running import (
    order_codes,
    running_count,
    running_largest,
    running_sum_of_doubles,
    running_sum_of_integers,
)
from windows_pipeline.engine.sweep import Windows, sweep
from windows_pipeline.engine.timeline import NEVER_MS
from windows_pipeline.windows import SlidingWindows


class Closing(NamedTuple):
    """The close times before and after the unit that windows are computed for (rule A4)."""

    before_ms: int
    after_ms: int


class SlidingKernel:
    """What `DataFrame.mapInArrow` runs on each partition; see `sliding.sliding_windows`."""

    def __init__(
        self,
        spec: SlidingWindows,
        aggregates: Sequence[Aggregate],
        closings: Mapping[int, Closing],
    ) -> None:
        self._spec = spec
        self._aggregates = list(aggregates)
        self._closings = dict(closings)

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Gives the windows of a partition, whose records come sorted."""
        for table, starts in whole_groups(batches, ["target", "key"]):
            chunk = _Chunk(table, starts, self._spec, self._closings)
            yield from chunk.result(self._aggregates)


class _Values(NamedTuple):
    numbers: np.ndarray
    valid: np.ndarray


class _Chunk:
    """Whole groups of records in Arrow, swept into windows."""

    def __init__(
        self,
        table: pa.Table,
        starts: np.ndarray,
        spec: SlidingWindows,
        closings: dict[int, Closing],
    ) -> None:
        self.spec = spec
        self.table = table
        self.starts = starts
        self.time_ms = _numbers(table, "event_time_ms", 0).numbers
        self.close_time_ms = _numbers(table, "close_time_ms", NEVER_MS).numbers
        targets = _numbers(table, "target", 0).numbers[starts[:-1]]
        closing_of = [closings[int(target)] for target in targets]
        self.windows = Windows(
            *sweep(
                starts,
                self.time_ms,
                self.close_time_ms,
                table.column("is_new").to_numpy(),
                np.array([closing.before_ms for closing in closing_of], np.int64),
                np.array([closing.after_ms for closing in closing_of], np.int64),
                spec.time_difference_ms,
                NEVER_MS if spec.first_window_start_ms is None else spec.first_window_start_ms,
                spec.emit_empty,
            )
        )

    def result(self, aggregates: list[Aggregate]) -> Iterator[pa.RecordBatch]:
        windows = self.windows
        group = pa.array(self.starts[windows.group])
        counts = windows.entered - windows.left
        computed = {
            "target": self.table.column("target").take(group).combine_chunks(),
            "key": self.table.column("key").take(group).combine_chunks(),
            "window_start_ms": pa.array(windows.end_ms - self.spec.time_difference_ms),
            "window_end_ms": pa.array(windows.end_ms),
            "first_event_time_ms": self._extreme(_all(~self.time_ms), self.time_ms),
            "last_event_time_ms": self._extreme(_all(self.time_ms), self.time_ms),
            "record_count": pa.array(counts),
        }
        for aggregate in aggregates:
            computed[aggregate.name] = self._aggregate(aggregate)
        no_window = pa.nulls(len(counts), pa.int64())
        computed["closed"] = pa.array(windows.closed)
        computed["uncounted_time_ms"] = computed["uncounted_close_ms"] = no_window
        yield pa.RecordBatch.from_pydict(computed)
        if windows.uncounted.any():
            yield self._uncounted(computed)

    def _uncounted(self, computed: dict[str, pa.Array]) -> pa.RecordBatch:
        """Rows of the distinct event and close times of the records marked."""
        marked = np.flatnonzero(self.windows.uncounted)
        times, closes = self.time_ms[marked], self.close_time_ms[marked]
        group = np.searchsorted(self.starts, marked, "right") - 1
        _, kept = np.unique(np.stack([group, times, closes]), axis=1, return_index=True)
        rows = {name: pa.nulls(len(kept), column.type) for name, column in computed.items()}
        first = pa.array(self.starts[group[kept]])
        rows["target"] = self.table.column("target").take(first).combine_chunks()
        rows["key"] = self.table.column("key").take(first).combine_chunks()
        rows["uncounted_time_ms"] = pa.array(times[kept])
        rows["uncounted_close_ms"] = pa.array(closes[kept])
        return pa.RecordBatch.from_pydict(rows)

    def _aggregate(self, aggregate: Aggregate) -> pa.Array:
        if aggregate.function is Function.COUNT:  # of a column of any type
            valid = _is_valid(self.table.column(aggregate.column))
            return pa.array(running_count(self.windows, valid))
        values = _numbers(self.table, aggregate.column, 0)
        match aggregate.function:
            case Function.MIN:
                return self._extreme(
                    _Values(~order_codes(values.numbers), values.valid), values.numbers
                )
            case Function.MAX:
                return self._extreme(
                    _Values(order_codes(values.numbers), values.valid), values.numbers
                )
            case Function.SUM:
                return self._sum(aggregate, values)
            case Function.AVG:
                return self._average(values)

    def _extreme(self, codes: _Values, values: np.ndarray) -> pa.Array:
        record = running_largest(self.windows, codes.numbers, codes.valid)
        plain = values + 0.0 if values.dtype == np.float64 else values  # -0.0 becomes 0.0
        return pa.array(plain[record] if len(plain) else plain, mask=record < 0)

    def _sum(self, aggregate: Aggregate, values: _Values) -> pa.Array:
        empty = running_count(self.windows, values.valid) == 0
        if values.numbers.dtype == np.float64:
            sums = running_sum_of_doubles(self.windows, values.numbers, values.valid)
            return pa.array(sums, mask=empty)
        high, low = running_sum_of_integers(self.windows, values.numbers, values.valid)
        overflows = np.flatnonzero((high < -(2**31)) | (high >= 2**31))
        if len(overflows):
            self._refuse_overflow(aggregate, int(overflows[0]))
        return pa.array((high << 32) | low, mask=empty)

    def _refuse_overflow(self, aggregate: Aggregate, window: int) -> None:
        group = int(self.starts[self.windows.group[window]])
        key = self.table.column("key")[group].as_py()
        end_ms = int(self.windows.end_ms[window])
        raise ArithmeticError(
            f"{aggregate} overflows bigint in the window of key {key!r} from "
            f"{end_ms - self.spec.time_difference_ms} to {end_ms} (ms); "
            "declare the column as double, or sum a smaller unit"
        )

    def _average(self, values: _Values) -> pa.Array:
        count = running_count(self.windows, values.valid)
        if values.numbers.dtype == np.float64:
            sums = running_sum_of_doubles(self.windows, values.numbers, values.valid)
            return pa.array(sums / np.maximum(count, 1), mask=count == 0)
        high, low = running_sum_of_integers(self.windows, values.numbers, values.valid)
        means = (high * 2.0**32 + low) / np.maximum(count, 1)
        # From 2**53 on the sum itself is rounded; Python divides whole numbers exactly.
        for window in np.flatnonzero((high < -(2**21)) | (high >= 2**21)):
            means[window] = (int(high[window]) << 32 | int(low[window])) / int(count[window])
        return pa.array(means, mask=count == 0)


def _all(codes: np.ndarray) -> _Values:
    return _Values(codes, np.ones(len(codes), np.bool_))


def _numbers(table: pa.Table, name: str, null: int) -> _Values:
    """A column as 64-bit numbers, with `null` in the place of nulls."""
    column = table.column(name).combine_chunks()
    dense = column.fill_null(null).to_numpy(zero_copy_only=False)
    kind = np.float64 if dense.dtype.kind == "f" else np.int64
    return _Values(dense.astype(kind), _is_valid(column))


def _is_valid(column: pa.Array | pa.ChunkedArray) -> np.ndarray:
    return np.asarray(pc.is_valid(column), np.bool_)
