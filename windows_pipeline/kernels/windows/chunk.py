"""Whole groups of records as NumPy arrays, with the windows to compute of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windows_pipeline.kernels.time import NEVER_MS
from windows_pipeline.kernels.values import writable
from windows_pipeline.kernels.windows.arrays import WindowArrays
from windows_pipeline.windows import WindowSpec
from windows_pipeline.windows.arguments import MAX_INSTANT_MS


class Closing(NamedTuple):
    """The close times before and after the day that windows are computed for (rule A4)."""

    before_ms: int
    after_ms: int


class ComputedDay(NamedTuple):
    """The windows to compute, and the close times before and after the day they are computed for.

    A whole input is computed as a single day: before it no window was closed.
    """

    windows: WindowSpec
    close_before_ms: int = NEVER_MS
    close_after_ms: int = NEVER_MS


@dataclass(frozen=True)
class Chunk:
    """Whole groups of records of which the same windows are computed.

    Attributes:
        spec: The windows.
        table: The records, by group and event time.
        starts: Where each group's records begin; one more entry for the end of the last.
        time_ms: Event times.
        close_ms: The close time that each record met; `NEVER_MS` for none.
        is_new: Whether the record came with the computed day.
        close_before_ms: By group, the close time before that day.
        close_after_ms: By group, the close time after it.
    """

    spec: WindowSpec
    table: pa.Table
    starts: np.ndarray
    time_ms: np.ndarray
    close_ms: np.ndarray
    is_new: np.ndarray
    close_before_ms: np.ndarray
    close_after_ms: np.ndarray

    def only(self, chosen: np.ndarray) -> Chunk:
        """The chunk with the records of a mask, and without groups that then have no records."""
        if chosen.all():
            return self
        before = np.concatenate(([0], np.cumsum(chosen)))[self.starts]
        some = np.diff(before) > 0
        return Chunk(
            self.spec,
            self.table.filter(pa.array(chosen)),
            np.concatenate((before[:-1][some], before[-1:])),
            self.time_ms[chosen],
            self.close_ms[chosen],
            self.is_new[chosen],
            self.close_before_ms[some],
            self.close_after_ms[some],
        )


@dataclass(frozen=True)
class ChunkWindows:
    """Windows, and the records of a chunk that are in time for at least one window.

    Attributes:
        table: Those records.
        close_ms: The close time when each record arrived.
        starts: Where each group of records begins (for sessions: each session); one more entry
            for the end of the last.
        time_ms: The records' event times, ascending within a group.
        windows: The windows.
        length_ms: How far a window's start lies before its end; None where a window starts with
            its first record.
        advance_ms: From each window of a run to the next; 1 where each entry is a single window.
        reason: For each record of the whole chunk, the `Reason` why no window counts it.
    """

    table: pa.Table
    close_ms: np.ndarray
    starts: np.ndarray
    time_ms: np.ndarray
    windows: WindowArrays
    length_ms: int | None
    advance_ms: int
    reason: np.ndarray


def chunks_of(
    table: pa.Table, starts: np.ndarray, computed_days: Mapping[int, ComputedDay]
) -> Iterator[Chunk]:
    """Splits sorted records where the windows to compute change.

    Args:
        table: The records that `evaluate_windows` of engine/windows.py takes, sorted by group and
            event time. `_computed_day` may be left out where there is a single computed day.
        starts: Where each group's records begin; one more entry for the end of the last.
        computed_days: What to compute, by `_computed_day`.

    Raises:
        ValueError: An event time is null or out of range.
    """
    numbers = np.full(len(starts) - 1, next(iter(computed_days)))
    if "_computed_day" in table.column_names:
        numbers = np.array(table.column("_computed_day"), np.int64)[starts[:-1]]
    distinct, of_group = np.unique(numbers, return_inverse=True)
    days = [computed_days[int(number)] for number in distinct]
    before_ms = np.array([day.close_before_ms for day in days], np.int64)[of_group]
    after_ms = np.array([day.close_after_ms for day in days], np.int64)[of_group]
    if "_close_after_ms" in table.column_names:
        after_ms = np.array(table.column("_close_after_ms"), np.int64)[starts[:-1]]
    time_ms = event_times(table)
    rows = table.num_rows
    close_ms = (
        writable(np.asarray(table.column("_close_time_ms").fill_null(NEVER_MS), np.int64))
        if "_close_time_ms" in table.column_names
        else np.full(rows, NEVER_MS)
    )
    is_new = (
        np.array(table.column("_is_new"), np.bool_)
        if "_is_new" in table.column_names
        else np.ones(rows, np.bool_)
    )
    specs = [day.windows for day in days]
    spec_of_day = np.array([specs.index(spec) for spec in specs])
    changes = np.flatnonzero(np.diff(spec_of_day[of_group])) + 1
    cuts = [0, *changes.tolist(), len(numbers)]
    for first, last in pairwise(cuts):
        low, high = int(starts[first]), int(starts[last])
        yield Chunk(
            specs[of_group[first]],
            table.slice(low, high - low),
            starts[first : last + 1] - low,
            time_ms[low:high],
            close_ms[low:high],
            is_new[low:high],
            before_ms[first:last],
            after_ms[first:last],
        )


def event_times(table: pa.Table) -> np.ndarray:
    """The records' event times, in milliseconds.

    Raises:
        ValueError: An event time is null or out of range.
    """
    column = table.column("_event_time_ms")
    if column.null_count:
        raise ValueError(
            f"event_time: must not be null, but is in {column.null_count:,} records; leave them out"
        )
    bounds = pc.min_max(column).as_py()
    for time_ms in bounds.values():
        if abs(time_ms) > MAX_INSTANT_MS:
            raise ValueError(
                f"event_time: must be within {MAX_INSTANT_MS} ms of 1970, not {time_ms} ms; "
                "correct the record, or leave it out"
            )
    return writable(np.asarray(column, np.int64))
