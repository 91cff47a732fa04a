"""Finds the session of each record (rules D1, D2)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windows_pipeline.compat.numba_jit import compiled
from windows_pipeline.kernels.fenwick import mark, marks_before, position_of
from windows_pipeline.kernels.windows.arrays import WindowArrays
from windows_pipeline.kernels.windows.assign import Reason
from windows_pipeline.kernels.windows.chunk import Chunk, ChunkWindows
from windows_pipeline.windows import SessionWindows

NO_SESSION = -1
"""The session of a late record: the session that it would make is closed."""


@compiled
def sessions_by_gap(starts: np.ndarray, time_ms: np.ndarray, gap_ms: int) -> np.ndarray:
    """Splits records, all of them within grace, into sessions wherever the gap is exceeded.

    A record within grace is never late and finds every session within the gap open (rule D2), so
    the order of arrival does not matter.

    Args:
        starts: Where each group's records begin; one more entry for the end of the last.
        time_ms: Event times, ascending within a group.
        gap_ms: The longest silence within a session.

    Returns:
        By record, the first record of its session.
    """
    session = np.empty(len(time_ms), np.int64)
    for g in range(len(starts) - 1):
        first = starts[g]
        for r in range(starts[g], starts[g + 1]):
            if r > first and time_ms[r] - time_ms[r - 1] > gap_ms:
                first = r
            session[r] = first
    return session


@compiled
def sessions_by_arrival(
    starts: np.ndarray,
    time_ms: np.ndarray,
    close_ms: np.ndarray,
    arrival_order: np.ndarray,
    gap_ms: int,
) -> np.ndarray:
    """Joins records to sessions in the order of arrival.

    Args:
        starts: Where each group's records begin; one more entry for the end of the last.
        time_ms: Event times, ascending within a group.
        close_ms: The close time that each record met: never falling in the order of arrival.
        arrival_order: The records of each group in that order.
        gap_ms: The longest silence within a session.

    Returns:
        By record, a record of its session, the same for all of them; or `NO_SESSION`.
    """
    n = len(time_ms)
    parent = np.full(n, NO_SESSION, np.int64)
    # An open session is marked at its first record. Open sessions of a group are more than a gap
    # apart, so their order is the same by first record and by last record.
    is_open = np.zeros(n + 1, np.int64)
    last_ms = np.empty(n, np.int64)
    root = np.empty(n, np.int64)
    for g in range(len(starts) - 1):
        low, high = starts[g], starts[g + 1]
        open_count = 0
        for r in arrival_order[low:high]:
            time, close = time_ms[r], close_ms[r]
            while open_count and last_ms[position_of(is_open, 0)] < close:
                mark(is_open, position_of(is_open, 0), -1)
                open_count -= 1
            within_gap = low + np.searchsorted(time_ms[low:high], time + gap_ms, "right")
            first, last = r, time
            parent[r] = r
            before = marks_before(is_open, within_gap)
            while before:
                other = position_of(is_open, before - 1)
                if last_ms[other] < time - gap_ms:
                    break
                first, last = min(first, other), max(last, last_ms[other])
                parent[root[other]] = r
                mark(is_open, other, -1)
                before -= 1
                open_count -= 1
            if last < close:  # it joined no session: any open one would end later
                parent[r] = NO_SESSION
                continue
            mark(is_open, first, 1)
            last_ms[first], root[first] = last, r
            open_count += 1
        for _ in range(open_count):
            mark(is_open, position_of(is_open, 0), -1)
    return _roots(parent)


@compiled
def _roots(parent: np.ndarray) -> np.ndarray:
    for r in range(len(parent)):
        if parent[r] == NO_SESSION:
            continue
        root = r
        while parent[root] != root:
            root = parent[root]
        step = r
        while parent[step] != root:  # shortens the path for later records
            parent[step], step = root, parent[step]
    return parent


def session_windows(spec: SessionWindows, chunk: Chunk, arrival: Sequence[str]) -> ChunkWindows:
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
