"""Which hopping, tumbling and sliding windows records make, and which of them makes each."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from windows_pipeline.compat.numba_jit import compiled
from windows_pipeline.kernels.firings.window_state import AS_IN_FLINK, INTERVAL, LATENESS, ticks_of


class Came(NamedTuple):
    """Records in the order of arrival, by group, as compiled code takes them.

    Attributes:
        starts: Where each group's records begin; one more entry for the end of the last.
        by_time: The records of each group by event time; by arrival where times are equal.
        time_ms: Event times.
        clock_ms: The clock that each record met: stream time less the out-of-orderness.
        entry: The rise before which each record came; see `rises.Rises.entry`.
        rises: The clock at each rise, ascending.
    """

    starts: np.ndarray
    by_time: np.ndarray
    time_ms: np.ndarray
    clock_ms: np.ndarray
    entry: np.ndarray
    rises: np.ndarray


class Lives(NamedTuple):
    """Windows that records are in, by group and end, whose makers came before they closed.

    Attributes:
        group: The group of each.
        start_ms: The first event time that belongs to it.
        last_ms: The last.
        low: Where the records within its bounds begin, by event time.
        high: Where they end.
        maker: The record that makes it; it finds the earlier ones there, and need not be in it.
    """

    group: np.ndarray
    start_ms: np.ndarray
    last_ms: np.ndarray
    low: np.ndarray
    high: np.ndarray
    maker: np.ndarray

    def only(self, kept: np.ndarray | slice) -> Lives:
        """The windows of a mask or a slice."""
        return Lives(*(field[kept] for field in self))


class New(NamedTuple):
    """Which records and rises firings are wanted after.

    Attributes:
        records: A mask of the records, in the order of arrival by group.
        rises: A mask of the rises.
        with_earlier: Whether earlier firings are wanted, too, of windows that fire or close anew.
    """

    records: np.ndarray
    rises: np.ndarray
    with_earlier: bool


class Asked(NamedTuple):
    """The windows that records ask for: left and right ones, by group and end.

    Attributes:
        group: The group of each.
        end_ms: Its end, which belongs to it.
        low: Where the records within its bounds begin, by event time.
        high: Where they end.
        asker: The first record that asked for it.
    """

    group: np.ndarray
    end_ms: np.ndarray
    low: np.ndarray
    high: np.ndarray
    asker: np.ndarray


def time_lives(
    came: Came, lateness_ms: int, size_ms: int, advance_ms: int, from_ms: int, to_ms: int
) -> Lives:
    """Hopping and tumbling windows: the first record in one makes it (rule C1).

    Args:
        came: The records.
        lateness_ms: From the clock that a window passes at to the one that closes it.
        size_ms: The windows' size.
        advance_ms: From one window to the next.
        from_ms: The first start wanted, a multiple of the advance.
        to_ms: Only starts before it are wanted.
    """
    group, start_ms, low, high = _time_windows(came, size_ms, advance_ms, from_ms, to_ms)
    maker = earliest(came.by_time, low, high)
    lives = Lives(group, start_ms, start_ms + size_ms - 1, low, high, maker)
    return lives.only(came.clock_ms[maker] < start_ms + size_ms + lateness_ms)


@compiled
def _time_windows(
    came: Came, size_ms: int, advance_ms: int, from_ms: int, to_ms: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    starts, by_time, time_ms = came.starts, came.by_time, came.time_ms
    found = np.empty((4, 1024), np.int64)
    count = 0
    for g in range(len(starts) - 1):
        end = starts[g + 1]
        low = high = starts[g]
        start = from_ms
        while low < end:
            time = time_ms[by_time[low]]
            start = max(start, (time - size_ms) // advance_ms * advance_ms + advance_ms)
            if start >= to_ms:
                break
            if start > time:  # it lies in a gap, or before the first window
                low += 1
                continue
            high = max(high, low)
            while high < end and time_ms[by_time[high]] < start + size_ms:
                high += 1
            if count == found.shape[1]:
                longer = np.empty((4, 2 * count), np.int64)
                longer[:, :count] = found
                found = longer
            found[0, count], found[1, count] = g, start
            found[2, count], found[3, count] = low, high
            count += 1
            start += advance_ms
            while low < end and time_ms[by_time[low]] < start:
                low += 1
    return found[0, :count], found[1, :count], found[2, :count], found[3, :count]


def sliding_lives(
    asked: Asked, came: Came, lateness_ms: int, difference_ms: int
) -> tuple[Lives, np.ndarray]:
    """Sliding windows: one is made as soon as it is asked for and holds a record (rules B3, E2).

    Returns:
        The windows; and a mask of those asked for that nothing came into before they closed.
    """
    found = earliest(came.by_time, asked.low, asked.high)
    closes = asked.end_ms + 1 + lateness_ms
    lives = (asked.low < asked.high) & (came.clock_ms[found] < closes)
    maker = np.maximum(asked.asker, found)
    start_ms = asked.end_ms - difference_ms
    all_ = Lives(asked.group, start_ms, asked.end_ms, asked.low, asked.high, maker)
    return all_.only(lives), ~lives


def stirred(lives: Lives, came: Came, new: New, policy: np.ndarray) -> Lives:
    """The windows that may fire anew: by a new record, as they pass, or early by a new tick."""
    passes, rises = lives.last_ms + 1, came.rises
    ticks = new.rises if policy[AS_IN_FLINK] else new.rises[ticks_of(rises, policy)]
    by_rise = np.append(new.rises, bool(policy[INTERVAL] and ticks.any()))
    new_before = np.concatenate(([0], np.cumsum(new.records[came.by_time])))
    stirred_ = by_rise[np.searchsorted(rises, passes)] | new.records[lives.maker]
    stirred_ |= new_before[lives.high] > new_before[lives.low]
    if new.with_earlier and len(rises):
        stirred_ |= passes + policy[LATENESS] <= rises[-1]
    return lives.only(stirred_)


@compiled
def asked_windows(
    came: Came, lateness_ms: int, difference_ms: int, first_start_ms: int
) -> tuple[np.ndarray, ...]:
    """The windows that records asked for before these closed (rules B3, B5).

    Args:
        came: The records.
        lateness_ms: From the clock that a window passes at to the one that closes it.
        difference_ms: The windows' time difference.
        first_start_ms: No window starts before it (rule B6); `timeline.NEVER_MS` for no bound.

    Returns:
        The fields of `Asked`, in order.
    """
    starts, by_time = came.starts, came.by_time
    time_ms, clock_ms = came.time_ms, came.clock_ms
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
            of_left, left = _first_up_to(by_time, time_ms, left, high, end)
            of_right, right = _first_up_to(by_time, time_ms, right, high, end - difference_ms - 1)
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


@compiled
def _first_up_to(
    by_time: np.ndarray, time_ms: np.ndarray, at: int, high: int, last_ms: int
) -> tuple[int, int]:
    """The first to arrive of the records from a place on up to an event time; the place after."""
    first = len(time_ms)
    while at < high and time_ms[by_time[at]] <= last_ms:
        first = min(first, by_time[at])
        at += 1
    return first, at


@compiled
def earliest(by_time: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """The first to arrive within each window's bounds, 0 where there is none.

    Neither bound falls from one window to the next.
    """
    found = np.zeros(len(low), np.int64)
    queue = np.empty(len(by_time), np.int64)  # places whose records come before all further ones
    head = tail = place = 0
    for w in range(len(low)):
        place = max(place, low[w])
        while place < high[w]:
            while tail > head and by_time[queue[tail - 1]] > by_time[place]:
                tail -= 1
            queue[tail] = place
            tail += 1
            place += 1
        while head < tail and queue[head] < low[w]:
            head += 1
        if low[w] < high[w]:
            found[w] = by_time[queue[head]]
    return found
