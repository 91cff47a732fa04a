"""Finds the windows of a chunk of records, for every kind of window."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windows_pipeline.kernels.time import NEVER_MS
from windows_pipeline.kernels.windows.arrays import WindowArrays
from windows_pipeline.kernels.windows.assign import AssignedWindows, Reason, assign
from windows_pipeline.kernels.windows.chunk import Chunk
from windows_pipeline.kernels.windows.forward import forward_sweep
from windows_pipeline.kernels.windows.hopping import hopping_sweep
from windows_pipeline.kernels.windows.sessions import (
    NO_SESSION,
    sessions_by_arrival,
    sessions_by_gap,
)
from windows_pipeline.kernels.windows.sliding import entry_order, sweep
from windows_pipeline.windows import (
    ForwardSlidingWindows,
    SessionWindows,
    SlidingWindows,
    TimeWindows,
)

LONGEST_RUN = 1 << 16
"""The most hopping windows of the same records that are returned as one run."""


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


def find_windows(chunk: Chunk, arrival: Sequence[str]) -> ChunkWindows:
    """Finds the windows that the computed days changed or closed.

    Args:
        chunk: The records.
        arrival: The columns that order the arrival of records with equal close times; only
            sessions need them (rule D2).
    """
    if isinstance(chunk.spec, SessionWindows):
        return _sessions(chunk, chunk.spec, arrival)
    return _assigned(chunk, chunk.spec)


def _assigned(chunk: Chunk, spec: AssignedWindows) -> ChunkWindows:
    assignment = assign(spec, chunk.time_ms, chunk.close_ms)
    reason = assignment.reason.copy()
    is_in_time = reason == Reason.NONE
    in_time = chunk.only(is_in_time)
    advance_ms = 1
    match spec:
        case SlidingWindows():
            windows = _sliding(in_time, spec)
        case ForwardSlidingWindows():
            enter_ms = assignment.enter_ms[is_in_time]
            windows = _forward(in_time, spec, enter_ms)
        case TimeWindows():
            enter_ms = assignment.enter_ms[is_in_time]
            last_end_ms = assignment.last_end_ms[is_in_time]
            windows = _hopping(in_time, spec, enter_ms, last_end_ms)
            advance_ms = spec.advance_ms
    reason[np.flatnonzero(is_in_time)[windows.dropped]] = Reason.PARTLY_LATE
    return ChunkWindows(
        in_time.table,
        in_time.close_ms,
        in_time.starts,
        in_time.time_ms,
        windows,
        spec.length_ms,
        advance_ms,
        reason,
    )


def _sliding(chunk: Chunk, spec: SlidingWindows) -> WindowArrays:
    first_ms = spec.first_window_start_ms
    return WindowArrays(
        *sweep(
            chunk.starts,
            chunk.time_ms,
            chunk.close_ms,
            chunk.is_new,
            chunk.close_before_ms,
            chunk.close_after_ms,
            spec.time_difference_ms,
            NEVER_MS if first_ms is None else first_ms,
            spec.emit_empty,
        )
    )


def _forward(chunk: Chunk, spec: ForwardSlidingWindows, enter_ms: np.ndarray) -> WindowArrays:
    order = entry_order(chunk.starts, enter_ms)
    found = forward_sweep(
        chunk.starts,
        chunk.time_ms,
        enter_ms,
        order,
        chunk.is_new,
        chunk.close_before_ms,
        chunk.close_after_ms,
        spec.size_ms,
    )
    return _all_counted(found, order)


def _hopping(
    chunk: Chunk, spec: TimeWindows, enter_ms: np.ndarray, last_end_ms: np.ndarray
) -> WindowArrays:
    order = entry_order(chunk.starts, enter_ms)
    *found, run_end_ms = hopping_sweep(
        chunk.starts,
        enter_ms,
        last_end_ms,
        order,
        chunk.is_new,
        chunk.close_before_ms,
        chunk.close_after_ms,
        spec.advance_ms,
        spec.emit_empty,
    )
    return _short_runs(_all_counted(found, order), run_end_ms, spec.advance_ms)


def _short_runs(windows: WindowArrays, last_end_ms: np.ndarray, advance_ms: int) -> WindowArrays:
    """Cuts runs of hopping windows that are too long for Spark to unroll at once."""
    last_number = (last_end_ms - windows.end_ms) // advance_ms
    if (last_number < LONGEST_RUN).all():
        return windows._replace(last_end_ms=last_end_ms)
    pieces = last_number // LONGEST_RUN + 1
    run = np.repeat(np.arange(len(pieces)), pieces)
    number = (np.arange(len(run)) - (np.cumsum(pieces) - pieces)[run]) * LONGEST_RUN
    end_ms = windows.end_ms[run] + number * advance_ms
    further = np.minimum(last_number[run] - number, LONGEST_RUN - 1)
    return windows._replace(
        group=windows.group[run],
        end_ms=end_ms,
        closed=windows.closed[run],
        entered=windows.entered[run],
        left=windows.left[run],
        last_end_ms=end_ms + further * advance_ms,
    )


def _all_counted(found: Sequence[np.ndarray], enter_order: np.ndarray) -> WindowArrays:
    """Windows of a kind that counts every record that is in time for at least one window."""
    group, end_ms, closed, entered, left = found
    dropped = np.zeros(len(enter_order), np.bool_)
    return WindowArrays(group, end_ms, closed, entered, left, enter_order, dropped)


def _sessions(chunk: Chunk, spec: SessionWindows, arrival: Sequence[str]) -> ChunkWindows:
    """Sessions, with the records reordered by session: sessions can overlap in event time."""
    session = _session_of(chunk, spec, arrival)
    late = session == NO_SESSION
    order = np.argsort(session, kind="stable")[np.count_nonzero(late) :]
    begins = np.diff(session[order], prepend=NO_SESSION) != 0
    starts = np.concatenate((np.flatnonzero(begins), [len(order)]))
    time_ms = chunk.time_ms[order]
    group = np.searchsorted(chunk.starts, order[starts[:-1]], "right") - 1
    end_ms = time_ms[starts[1:] - 1]
    is_closed = end_ms < chunk.close_after_ms[group]
    new_inside = np.diff(np.concatenate(([0], np.cumsum(chunk.is_new[order])))[starts]) > 0
    is_result = (end_ms >= chunk.close_before_ms[group]) & (is_closed | new_inside)
    windows = WindowArrays(
        np.flatnonzero(is_result),
        end_ms[is_result],
        is_closed[is_result],
        starts[1:][is_result],
        starts[:-1][is_result],
        np.arange(len(order)),
        np.zeros(len(order), np.bool_),
    )
    reason = np.where(late, Reason.LATE, Reason.NONE).astype(np.int8)
    table = chunk.table
    if not np.array_equal(order, np.arange(len(late))):
        table = table.take(pa.array(order))
    return ChunkWindows(table, chunk.close_ms[order], starts, time_ms, windows, None, 1, reason)


def _session_of(chunk: Chunk, spec: SessionWindows, arrival: Sequence[str]) -> np.ndarray:
    """The session of each record: by gaps where all records are within grace, else by arrival."""
    session = sessions_by_gap(chunk.starts, chunk.time_ms, spec.gap_ms)
    beyond_grace = chunk.time_ms < chunk.close_ms + spec.gap_ms
    if not beyond_grace.any():
        return session
    group = _groups_of(chunk)
    by_arrival = np.isin(group, group[beyond_grace])
    part = chunk.only(by_arrival)
    joined = sessions_by_arrival(
        part.starts, part.time_ms, part.close_ms, _arrival_order(part, arrival), spec.gap_ms
    )
    record = np.flatnonzero(by_arrival)[joined]
    session[by_arrival] = np.where(joined == NO_SESSION, NO_SESSION, record)
    return session


def _arrival_order(chunk: Chunk, arrival: Sequence[str]) -> np.ndarray:
    """Each group's records in order of arrival: by stream time, then by the columns `arrival`."""
    columns = [pa.array(_groups_of(chunk)), pa.array(chunk.close_ms)]
    columns += [chunk.table.column(name) for name in arrival]
    names = [str(index) for index in range(len(columns))]
    by = [(name, "ascending") for name in names]
    return np.asarray(pc.sort_indices(pa.table(columns, names), sort_keys=by), np.int64)


def _groups_of(chunk: Chunk) -> np.ndarray:
    """The number of each record's group."""
    return np.repeat(np.arange(len(chunk.starts) - 1), np.diff(chunk.starts))
