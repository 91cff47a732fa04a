"""Windows over random records, with the records inside each by the contract's rules."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from tests.support.spark_cases import aggregate_of
from windows_pipeline.aggregates import Function, UserAggregate
from windows_pipeline.aggregates.column_type import parse_type
from windows_pipeline.kernels.aggregates.dispatch import aggregate_windows
from windows_pipeline.kernels.arrow_types import arrow_type
from windows_pipeline.kernels.time import NEVER_MS
from windows_pipeline.kernels.windows.arrays import WindowArrays
from windows_pipeline.kernels.windows.filled import WindowedRecords
from windows_pipeline.kernels.windows.sliding import sweep

DIFFERENCE_MS = 5
LAST_MS = 20


class Timed(NamedTuple):
    """A value (None for null) with its record's event time."""

    time_ms: int
    value: Any


class WindowedCase(NamedTuple):
    """Records with values, windows over them, and the records inside each."""

    records: WindowedRecords
    values: list[Any]
    inside: list[list[int]]

    def held(self) -> list[list[Timed]]:
        """Each window's own values."""
        times = self.records.time_ms.tolist()
        return [[Timed(times[r], self.values[r]) for r in inside] for inside in self.inside]

    def as_type(self, kind: str) -> WindowedCase:
        """With the values as a column of a type gives them back."""
        return self._replace(values=pa.array(self.values, arrow_of(kind)).to_pylist())

    def aggregated(
        self, function: Function | UserAggregate, kind: str, percentage: float | None = None
    ) -> pa.Array:
        """The engine's answer for the values as a column of a type."""
        aggregate = aggregate_of("result", function, "value", percentage)
        column = pa.array(self.values, arrow_of(kind))
        result = aggregate_windows(aggregate, column, self.records)
        assert result.type == arrow_of(aggregate.result_type(kind))
        assert len(result) == len(self.inside)
        return result


def noted(
    case: WindowedCase, function: Function | UserAggregate, kind: str
) -> tuple[list[Any], list[list[str]]]:
    """The engine's answer where failures are noted, and the failed aggregates (rule G3)."""
    noting = case.records._replace(noted=[])
    values = case._replace(records=noting).aggregated(function, kind).to_pylist()
    return values, noting.failed().to_pylist()


def arrow_of(kind: str) -> pa.DataType:
    """The Arrow type of a column type."""
    return arrow_type(parse_type(kind))


def named(window: int) -> str:
    """The name of a window in errors."""
    return f"window {window}"


@st.composite
def swept(draw: st.DrawFn, values: st.SearchStrategy[Any]) -> WindowedCase:
    """Sliding windows of up to three keys; some records were partly late, some values null."""
    sizes = draw(st.lists(st.integers(1, 7), min_size=1, max_size=3))
    times = [
        time
        for size in sizes
        for time in sorted(draw(st.integers(0, LAST_MS)) for _ in range(size))
    ]
    # At most to the end of the record's last window: later ones are wholly late.
    late_by = [draw(st.none() | st.integers(0, DIFFERENCE_MS)) for _ in times]
    met = [NEVER_MS if by is None else t + by for t, by in zip(times, late_by, strict=True)]
    starts = np.array([0, *accumulate(sizes)], np.int64)
    groups = len(sizes)
    windows = WindowArrays(
        *sweep(
            starts,
            np.array(times, np.int64),
            np.array(met, np.int64),
            np.ones(len(times), np.bool_),
            np.full(groups, NEVER_MS),
            np.full(groups, LAST_MS // 2),
            DIFFERENCE_MS,
            NEVER_MS,
            draw(st.booleans()),
        )
    )
    inside = [
        [
            r
            for r in range(starts[group], starts[group + 1])
            if end - DIFFERENCE_MS <= times[r] <= end  # rule B2
            if end >= met[r]  # rules A5, B5
        ]
        for group, end in zip(windows.group.tolist(), windows.end_ms.tolist(), strict=True)
    ]
    records = WindowedRecords(starts, np.array(times, np.int64), windows, named)
    return WindowedCase(records, [draw(values | st.none()) for _ in times], inside)


@st.composite
def free(draw: st.DrawFn, values: st.SearchStrategy[Any]) -> WindowedCase:
    """One key's records leave in their order, each at a moment after it entered."""
    leave = sorted(draw(st.lists(st.integers(1, 20), max_size=10)))
    enter = [draw(st.integers(0, last - 1)) for last in leave]
    moments = sorted(draw(st.lists(st.integers(0, 20), max_size=8)))
    inside = [[r for r in range(len(leave)) if enter[r] <= now < leave[r]] for now in moments]
    windows = WindowArrays(
        group=np.zeros(len(moments), np.int64),
        end_ms=np.array(moments, np.int64),
        closed=np.zeros(len(moments), np.bool_),
        entered=np.array([sum(e <= now for e in enter) for now in moments], np.int64),
        left=np.array([sum(e <= now for e in leave) for now in moments], np.int64),
        enter_order=np.argsort(np.array(enter, np.int64), kind="stable"),
        dropped=np.zeros(len(leave), np.bool_),
    )
    # Few event times, so that records of one time leave at several moments.
    times = np.array(sorted(draw(st.integers(0, 3)) for _ in leave), np.int64)
    records = WindowedRecords(np.array([0, len(leave)]), times, windows, named)
    return WindowedCase(records, [draw(values | st.none()) for _ in leave], inside)


def windowed(values: st.SearchStrategy[Any]) -> st.SearchStrategy[WindowedCase]:
    """Windows of the engine's sweep, or of any kind."""
    return swept(values) | free(values)


def one_window(values: Sequence[Any], times: Sequence[int] | None = None) -> WindowedCase:
    """A single window that holds every record, all at one time by default."""
    size = len(values)
    windows = WindowArrays(
        group=np.zeros(1, np.int64),
        end_ms=np.zeros(1, np.int64),
        closed=np.ones(1, np.bool_),
        entered=np.array([size]),
        left=np.zeros(1, np.int64),
        enter_order=np.arange(size),
        dropped=np.zeros(size, np.bool_),
    )
    time_ms = np.array([0] * size if times is None else times, np.int64)
    records = WindowedRecords(np.array([0, size]), time_ms, windows, named)
    return WindowedCase(records, list(values), [list(range(size))])


def texts(values: Sequence[Any]) -> list[str]:
    """Comparable to the bit: repr distinguishes NaN, 1, 1.0 and -0.0."""
    return list(map(repr, values))
