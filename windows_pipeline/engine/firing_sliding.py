"""The firings of sliding windows: each from the moment that a record makes it (rules B3, E2)."""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np

from windows_pipeline.engine.firing_life import (
    FIRING_SIZE,
    LATENESS,
    LIFE_SIZE,
    PANE,
    add_firing,
    begin,
    rise_at,
)
from windows_pipeline.engine.firing_sweep import fire_window, with_room

_ON_TIME = 1


class Asked(NamedTuple):
    """The windows that records ask for: left and right ones, by group and end.

    Attributes:
        group: The group of each.
        end_ms: Its end.
        low: Where the records within its bounds begin, by event time.
        high: Where they end.
        asker: The first record that asked for it.
    """

    group: np.ndarray
    end_ms: np.ndarray
    low: np.ndarray
    high: np.ndarray
    asker: np.ndarray


@numba.njit(cache=True)
def asked_windows(
    starts: np.ndarray,
    by_time: np.ndarray,
    time_ms: np.ndarray,
    clock_ms: np.ndarray,
    lateness_ms: int,
    difference_ms: int,
    first_start_ms: int,
) -> tuple[np.ndarray, ...]:
    """The windows that records asked for before these closed (rules B3, B5).

    Args:
        starts: See `firing_sweep.time_firings`.
        by_time: See `time_firings`.
        time_ms: See `time_firings`.
        clock_ms: See `time_firings`.
        lateness_ms: From the clock that a window passes at to the one that closes it.
        difference_ms: The windows' time difference.
        first_start_ms: No window starts before it (rule B6); `timeline.NEVER_MS` for no bound.

    Returns:
        The fields of `Asked`, in order.
    """
    n = len(time_ms)
    found = np.empty((5, 2 * n), np.int64)
    count = 0
    for g in range(len(starts) - 1):
        low, high = starts[g], starts[g + 1]
        while low < high and time_ms[by_time[low]] < first_start_ms:
            low += 1
        # The records from `left` on have their left windows before them, those from `right` on
        # their right ones, which end later. So these bound what the window at hand holds, too.
        left = right = low
        while right < high:
            end = time_ms[by_time[right]] + 1 + difference_ms
            if left < high:
                end = min(end, max(time_ms[by_time[left]], first_start_ms + difference_ms))
            of_left, left = _earliest(by_time, time_ms, left, high, end)
            of_right, right = _earliest(by_time, time_ms, right, high, end - difference_ms - 1)
            closes = end + 1 + lateness_ms
            if of_left < n and clock_ms[of_left] >= closes:
                of_left = n
            # The last window that holds it ends a millisecond earlier: then it is late (rule A5).
            if of_right < n and clock_ms[of_right] >= closes - 1:
                of_right = n
            asker = min(of_left, of_right)
            if asker < n:
                found[0, count], found[1, count] = g, end
                found[2, count], found[3, count], found[4, count] = right, left, asker
                count += 1
    return found[0, :count], found[1, :count], found[2, :count], found[3, :count], found[4, :count]


@numba.njit(cache=True)
def _earliest(
    by_time: np.ndarray, time_ms: np.ndarray, at: int, high: int, last_ms: int
) -> tuple[int, int]:
    """The first to arrive of the records from a place on up to an event time; the place after."""
    first = len(time_ms)
    while at < high and time_ms[by_time[at]] <= last_ms:
        first = min(first, by_time[at])
        at += 1
    return first, at


@numba.njit(cache=True)
def sliding_firings(
    group: np.ndarray,
    end_ms: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
    asker: np.ndarray,
    by_time: np.ndarray,
    time_ms: np.ndarray,
    clock_ms: np.ndarray,
    entry: np.ndarray,
    rises: np.ndarray,
    policy: np.ndarray,
    difference_ms: int,
    silent_rises: int,
) -> tuple[np.ndarray, np.ndarray]:
    """Fires windows; see `firing_sweep.time_firings`.

    A window is made as soon as it is asked for and holds a record. All that came within its
    bounds before it closed counts, whatever else there is, so each is fired by itself.

    Args:
        group: See `Asked`.
        end_ms: See `Asked`.
        low: See `Asked`.
        high: See `Asked`.
        asker: See `Asked`.
        by_time: See `time_firings`.
        time_ms: See `time_firings`.
        clock_ms: See `time_firings`.
        entry: See `time_firings`.
        rises: See `time_firings`.
        policy: See `time_firings`; not Flink's.
        difference_ms: The windows' time difference.
        silent_rises: How many of the rises can close a silence, which fires then (rule B8); 0
            where silences are no windows.

    Returns:
        See `time_firings`.
    """
    entries = np.empty(1024, np.int64)
    firings = np.empty((1024, FIRING_SIZE), np.int64)
    life = np.empty(LIFE_SIZE, np.int64)
    used = np.zeros(2, np.int64)  # how many firings, how many entries
    for w in range(len(group)):
        passes = end_ms[w] + 1
        closes = passes + policy[LATENESS]
        begin(life, group[w], end_ms[w] - difference_ms, end_ms[w], passes, rises)
        records = np.sort(by_time[low[w] : high[w]])
        if len(records) and clock_ms[records[0]] < closes:
            maker = max(asker[w], records[0])
            entries, firings = fire_window(
                life, records, maker, time_ms, clock_ms, entry, rises, policy, entries, firings,
                used,
            )  # fmt: skip
            continue
        closing = rise_at(rises, closes)
        if closing < silent_rises:
            # It shows nothing of a pane that has the record before.
            entries = with_room(entries, used[1] + 1)
            entries[used[1]] = asker[w]
            life[PANE] = used[1]
            used[1] += 1
            firings = add_firing(life, ~closing, _ON_TIME, True, firings, used)
    return entries[: used[1]], firings[: used[0]]
