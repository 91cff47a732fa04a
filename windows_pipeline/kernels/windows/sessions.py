"""Finds the session of each record (rules D1, D2)."""

from __future__ import annotations

import numpy as np

from windows_pipeline.compat.numba_jit import compiled
from windows_pipeline.kernels.fenwick import mark, marks_before, position_of

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
