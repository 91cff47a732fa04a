"""Fires windows one after the other, each by its records in order of arrival."""

from __future__ import annotations

import numpy as np

from windows_pipeline.compat.numba_jit import compiled
from windows_pipeline.kernels.firings.window_state import (
    COUNT,
    EVERY_N,
    FIRING_SIZE,
    LATENESS,
    NO_PANE,
    PANE,
    PASS,
    SIZE,
    STATE_SIZE,
    arrive,
    begin,
    fire_until,
    quiet_until,
)
from windows_pipeline.kernels.firings.windows import ClockedRecords, MadeWindows


@compiled
def firings_one_by_one(
    windows: MadeWindows,
    clocked: ClockedRecords,
    policy: np.ndarray,
    beyond_ms: int,
) -> tuple[np.ndarray, np.ndarray]:
    """Fires each window by itself.

    Args:
        windows: The windows.
        clocked: The records.
        policy: See `window_state.policy_of`.
        beyond_ms: From the last event time that belongs to a window to its end.

    Returns:
        The records of the panes, and the firings. F_PANE is where a pane's records begin, F_SIZE
        how many of them it shows, in order of arrival.
    """
    entries = np.empty(1024, np.int64)
    firings = np.empty((1024, FIRING_SIZE), np.int64)
    state = np.empty(STATE_SIZE, np.int64)
    used = np.zeros(2, np.int64)  # how many firings, how many entries
    for w in range(len(windows.group)):
        last_ms = windows.last_ms[w]
        begin(
            state,
            windows.group[w],
            windows.start_ms[w],
            last_ms + beyond_ms,
            last_ms + 1,
            clocked.advances,
        )
        entries, firings = _fire_window(
            state,
            np.sort(clocked.by_time[windows.low[w] : windows.high[w]]),
            windows.maker[w],
            clocked,
            policy,
            entries,
            firings,
            used,
        )
    return entries[: used[1]], firings[: used[0]]


@compiled
def _fire_window(
    state: np.ndarray,
    records: np.ndarray,
    maker: int,
    clocked: ClockedRecords,
    policy: np.ndarray,
    entries: np.ndarray,
    firings: np.ndarray,
    used: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Fires a window, and appends its records, by arrival, to the entries.

    Args:
        state: The window's state, without records.
        records: The records within its bounds, in order of arrival.
        maker: The record that makes the window.
        clocked: All records.
        policy: See `window_state.policy_of`.
        entries: The records of the panes so far.
        firings: The firings so far.
        used: How many firings and how many entries there are; changed in place.

    Returns:
        The entries and the firings.
    """
    clock_ms, entry, advances = clocked.clock_ms, clocked.entry, clocked.advances
    closes = state[PASS] + policy[LATENESS]
    entries = _with_room(entries, used[1] + len(records))
    fired_before, first = used[0], used[1]
    found = 0
    while found < len(records) and records[found] <= maker:
        entries[first + found] = records[found]
        found += 1
    state[PANE], state[SIZE], state[COUNT] = first, found, found - 1
    firings = _arrive(state, maker, True, clocked, policy, firings, used)
    end = first + found
    every_n = policy[EVERY_N]
    quiet = quiet_until(state, advances, policy)
    for i in records[found:]:
        if clock_ms[i] >= closes:
            break  # all later records have a later clock
        # Most records are only added to the pane, without the calls below.
        if entry[i] <= quiet and clock_ms[i] < state[PASS] and state[COUNT] + 1 != every_n:
            entries[end] = i
            state[SIZE] += 1
            state[COUNT] += 1
            end += 1
            continue
        firings = fire_until(state, entry[i] - 1, advances, policy, firings, used)
        if state[PANE] == NO_PANE:
            state[PANE] = end
        entries[end] = i
        state[SIZE] += 1
        end += 1
        firings = _arrive(state, i, False, clocked, policy, firings, used)
        quiet = quiet_until(state, advances, policy)
    firings = fire_until(state, len(advances) - 1, advances, policy, firings, used)
    if used[0] > fired_before:
        used[1] = end
    return entries, firings


@compiled
def _arrive(
    state: np.ndarray,
    i: int,
    is_first: bool,  # noqa: FBT001  compiled code takes its arguments by position
    clocked: ClockedRecords,
    policy: np.ndarray,
    firings: np.ndarray,
    used: np.ndarray,
) -> np.ndarray:
    time, clock, entry = clocked.time_ms[i], clocked.clock_ms[i], clocked.entry[i]
    return arrive(state, i, time, clock, entry, is_first, clocked.advances, policy, firings, used)


@compiled
def _with_room(entries: np.ndarray, size: int) -> np.ndarray:
    """The entries, copied to a longer array where there is no room for `size` of them."""
    if size <= len(entries):
        return entries
    longer = np.empty(2 * size, np.int64)
    longer[: len(entries)] = entries
    return longer
