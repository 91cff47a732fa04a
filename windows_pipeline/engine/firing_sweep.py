"""The firings of hopping and tumbling windows: each window's records in the order of arrival."""

from __future__ import annotations

import numba
import numpy as np

from windows_pipeline.engine.firing_life import (
    FIRING_SIZE,
    LATENESS,
    LIFE_SIZE,
    NO_PANE,
    PANE,
    PASS,
    SIZE,
    arrive,
    begin,
    tell_until,
)


@numba.njit(cache=True)
def time_firings(
    starts: np.ndarray,
    by_time: np.ndarray,
    time_ms: np.ndarray,
    clock_ms: np.ndarray,
    entry: np.ndarray,
    rises: np.ndarray,
    policy: np.ndarray,
    size_ms: int,
    advance_ms: int,
    from_ms: int,
    to_ms: int,
) -> tuple[np.ndarray, np.ndarray]:
    """Fires the windows of some groups that start in a span.

    Args:
        starts: Where each group's records begin; one more entry for the end of the last.
        by_time: The records of each group by event time.
        time_ms: Event times, in the order of arrival within a group.
        clock_ms: The clock that each record met.
        entry: The rise before which each record came.
        rises: The clock at each rise, ascending.
        policy: See `firing_life.policy_of`.
        size_ms: The windows' size.
        advance_ms: From one window to the next.
        from_ms: The first start wanted, a multiple of the advance.
        to_ms: Only starts before it are wanted.

    Returns:
        The records of the panes, and the firings: of a pane, where its records begin among
        these, and how many of them it shows, in the order of arrival.
    """
    entries = np.empty(1024, np.int64)
    firings = np.empty((1024, FIRING_SIZE), np.int64)
    life = np.empty(LIFE_SIZE, np.int64)
    used = count = 0
    for g in range(len(starts) - 1):
        high = starts[g + 1]
        lo = hi = starts[g]
        start = from_ms
        while lo < high:
            time = time_ms[by_time[lo]]
            start = max(start, (time - size_ms) // advance_ms * advance_ms + advance_ms)
            if start >= to_ms:
                break
            if start > time:  # it lies in a gap, or before the first window
                lo += 1
                continue
            hi = max(hi, lo)
            while hi < high and time_ms[by_time[hi]] < start + size_ms:
                hi += 1
            records = np.sort(by_time[lo:hi])
            entries = _with_room(entries, used + len(records))
            begin(life, g, start, start + size_ms, start + size_ms, rises)
            fired_before = count
            held, firings, count = _fire_window(
                life,
                records,
                time_ms,
                clock_ms,
                entry,
                rises,
                policy,
                entries,
                used,
                firings,
                count,
            )
            if count > fired_before:
                used += held
            start += advance_ms
            while lo < high and time_ms[by_time[lo]] < start:
                lo += 1
    return entries[:used], firings[:count]


@numba.njit(cache=True)
def _fire_window(
    life: np.ndarray,
    records: np.ndarray,
    time_ms: np.ndarray,
    clock_ms: np.ndarray,
    entry: np.ndarray,
    rises: np.ndarray,
    policy: np.ndarray,
    entries: np.ndarray,
    used: int,
    firings: np.ndarray,
    count: int,
) -> tuple[int, np.ndarray, int]:
    """Fires one window; puts the records that it takes, by arrival, behind those in use.

    Returns:
        How many it takes, the firings, and how many there are.
    """
    held = 0
    for i in records:
        if clock_ms[i] >= life[PASS] + policy[LATENESS]:
            break  # closed, also for those that come after
        firings, count = tell_until(life, entry[i] - 1, rises, policy, firings, count)
        if life[PANE] == NO_PANE:
            life[PANE] = used + held
        entries[used + held] = i
        life[SIZE] += 1
        held += 1
        firings, count = arrive(
            life, i, time_ms[i], clock_ms[i], entry[i], held == 1, rises, policy, firings, count
        )
    firings, count = tell_until(life, len(rises) - 1, rises, policy, firings, count)
    return held, firings, count


@numba.njit(cache=True)
def _with_room(entries: np.ndarray, size: int) -> np.ndarray:
    if size <= len(entries):
        return entries
    longer = np.empty(2 * size, np.int64)
    longer[: len(entries)] = entries
    return longer
