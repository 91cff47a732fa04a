"""The firings of windows, one window after the other: its records in the order of arrival."""

from __future__ import annotations

import numpy as np

from windows_pipeline.compat.numba_jit import compiled
from windows_pipeline.kernels.firings.window_state import (
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
from windows_pipeline.kernels.firings.windows import Came, Lives


@compiled
def firings_one_by_one(
    lives: Lives,
    came: Came,
    policy: np.ndarray,
    beyond_ms: int,
) -> tuple[np.ndarray, np.ndarray]:
    """Fires each window by itself.

    Args:
        lives: The windows.
        came: The records.
        policy: See `firing_life.policy_of`.
        beyond_ms: From the last event time that belongs to a window to its end.

    Returns:
        The records of the panes, and the firings: of a pane, where its records begin among
        these, and how many of them it shows, in the order of arrival.
    """
    entries = np.empty(1024, np.int64)
    firings = np.empty((1024, FIRING_SIZE), np.int64)
    life = np.empty(LIFE_SIZE, np.int64)
    used = np.zeros(2, np.int64)  # how many firings, how many entries
    for w in range(len(lives.group)):
        last_ms = lives.last_ms[w]
        begin(life, lives.group[w], lives.start_ms[w], last_ms + beyond_ms, last_ms + 1, came.rises)
        entries, firings = _fire_window(
            life,
            np.sort(came.by_time[lives.low[w] : lives.high[w]]),
            lives.maker[w],
            came,
            policy,
            entries,
            firings,
            used,
        )
    return entries[: used[1]], firings[: used[0]]


@compiled
def _fire_window(
    life: np.ndarray,
    records: np.ndarray,
    maker: int,
    came: Came,
    policy: np.ndarray,
    entries: np.ndarray,
    firings: np.ndarray,
    used: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Fires a window; puts the records that it takes, by arrival, behind the entries in use.

    Args:
        life: The window's, which holds nothing so far.
        records: The records within its bounds, in the order of arrival.
        maker: The record that makes it.
        came: All records.
        policy: See `firing_life.policy_of`.
        entries: The records of the panes so far.
        firings: What was fired so far.
        used: How many of the firings and of the entries are in use, which changes.

    Returns:
        The entries and the firings.
    """
    clock_ms, entry, rises = came.clock_ms, came.entry, came.rises
    closes = life[PASS] + policy[LATENESS]
    entries = _with_room(entries, used[1] + len(records))
    fired_before, first = used[0], used[1]
    found = 0
    while found < len(records) and records[found] <= maker:
        entries[first + found] = records[found]
        found += 1
    life[PANE], life[SIZE], life[COUNT] = first, found, found - 1
    firings = _arrive(life, maker, True, came, policy, firings, used)
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
        firings = _arrive(life, i, False, came, policy, firings, used)
        quiet = quiet_until(life, rises, policy)
    firings = tell_until(life, len(rises) - 1, rises, policy, firings, used)
    if used[0] > fired_before:
        used[1] = end
    return entries, firings


@compiled
def _arrive(
    life: np.ndarray,
    i: int,
    is_first: bool,  # noqa: FBT001  compiled code takes its arguments by place
    came: Came,
    policy: np.ndarray,
    firings: np.ndarray,
    used: np.ndarray,
) -> np.ndarray:
    time, clock, entry = came.time_ms[i], came.clock_ms[i], came.entry[i]
    return arrive(life, i, time, clock, entry, is_first, came.rises, policy, firings, used)


@compiled
def _with_room(entries: np.ndarray, size: int) -> np.ndarray:
    """The entries, in a longer array where these are too few."""
    if size <= len(entries):
        return entries
    longer = np.empty(2 * size, np.int64)
    longer[: len(entries)] = entries
    return longer
