"""The firings of hopping and tumbling windows: each window's records in the order of arrival."""

from __future__ import annotations

import numba
import numpy as np

from windows_pipeline.engine.firing_life import (
    COUNT,
    EVERY_N,
    FIRING_SIZE,
    LATENESS,
    LIFE_SIZE,
    NO_PANE,
    PANE,
    PASS,
    SIZE,
    arrive,
    begin,
    quiet_until,
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
    used = np.zeros(2, np.int64)  # how many firings, how many entries
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
            begin(life, g, start, start + size_ms, start + size_ms, rises)
            records = np.sort(by_time[lo:hi])
            entries, firings = fire_window(
                life,
                records,
                records[0],
                time_ms,
                clock_ms,
                entry,
                rises,
                policy,
                entries,
                firings,
                used,
            )
            start += advance_ms
            while lo < high and time_ms[by_time[lo]] < start:
                lo += 1
    return entries[: used[1]], firings[: used[0]]


@numba.njit(cache=True)
def fire_window(
    life: np.ndarray,
    records: np.ndarray,
    maker: int,
    time_ms: np.ndarray,
    clock_ms: np.ndarray,
    entry: np.ndarray,
    rises: np.ndarray,
    policy: np.ndarray,
    entries: np.ndarray,
    firings: np.ndarray,
    used: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Fires one window; puts the records that it takes, by arrival, behind the entries in use.

    Args:
        life: The window's, which holds nothing so far.
        records: The records within its bounds, in the order of arrival.
        maker: The record that makes it; it finds the earlier ones there, and need not be in it.
        time_ms: See `time_firings`.
        clock_ms: See `time_firings`.
        entry: See `time_firings`.
        rises: See `time_firings`.
        policy: See `time_firings`.
        entries: The records of the panes so far.
        firings: What was fired so far.
        used: How many of the firings and of the entries are in use, which changes.

    Returns:
        The entries and the firings.
    """
    closes = life[PASS] + policy[LATENESS]
    if clock_ms[maker] >= closes:
        return entries, firings
    entries = with_room(entries, used[1] + len(records))
    fired_before, first = used[0], used[1]
    found = 0
    while found < len(records) and records[found] <= maker:
        entries[first + found] = records[found]
        found += 1
    life[PANE], life[SIZE], life[COUNT] = first, found, found - 1
    firings = _arrive(life, maker, True, time_ms, clock_ms, entry, rises, policy, firings, used)
    end = first + found
    every_n = policy[EVERY_N]
    quiet = quiet_until(life, rises, policy)
    for i in records[found:]:
        if clock_ms[i] >= closes:
            break  # also for those that come after
        # Most records are told in a line, without the calls.
        if entry[i] <= quiet and clock_ms[i] < life[PASS] and life[COUNT] + 1 != every_n:
            entries[end] = i
            life[SIZE] += 1
            life[COUNT] += 1
            end += 1
            continue
        firings = tell_until(life, entry[i] - 1, rises, policy, firings, used)
        if life[PANE] == NO_PANE:
            life[PANE] = end
        entries[end] = i
        life[SIZE] += 1
        end += 1
        firings = _arrive(life, i, False, time_ms, clock_ms, entry, rises, policy, firings, used)
        quiet = quiet_until(life, rises, policy)
    firings = tell_until(life, len(rises) - 1, rises, policy, firings, used)
    if used[0] > fired_before:
        used[1] = end
    return entries, firings


@numba.njit(cache=True)
def _arrive(
    life: np.ndarray,
    i: int,
    is_first: bool,  # noqa: FBT001  compiled code takes its arguments by place
    time_ms: np.ndarray,
    clock_ms: np.ndarray,
    entry: np.ndarray,
    rises: np.ndarray,
    policy: np.ndarray,
    firings: np.ndarray,
    used: np.ndarray,
) -> np.ndarray:
    return arrive(
        life, i, time_ms[i], clock_ms[i], entry[i], is_first, rises, policy, firings, used
    )


@numba.njit(cache=True)
def with_room(entries: np.ndarray, size: int) -> np.ndarray:
    """The entries, in a longer array where these are too few."""
    if size <= len(entries):
        return entries
    longer = np.empty(2 * size, np.int64)
    longer[: len(entries)] = entries
    return longer
