"""Finds the hopping, tumbling and sliding windows that fire, and the record that makes each."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from windows_pipeline.compat.numba_jit import compiled
from windows_pipeline.kernels.firings.window_state import AS_IN_FLINK, INTERVAL, LATENESS, ticks_of


class ClockedRecords(NamedTuple):
    """Records by group and in order of arrival, with clock times, as compiled code takes them.

    A record's clock is the stream time that it met less the trigger's out-of-orderness.

    Attributes:
        starts: Where each group's records begin; one more entry for the end of the last.
        by_time: The records of each group by event time; by arrival where times are equal.
        time_ms: Event times.
        clock_ms: The clock that each record met.
        entry: The index of the first watermark advance at or after each record; see
            `Advances.entry`.
        advances: The clock at each watermark advance, ascending.
    """

    starts: np.ndarray
    by_time: np.ndarray
    time_ms: np.ndarray
    clock_ms: np.ndarray
    entry: np.ndarray
    advances: np.ndarray


class MadeWindows(NamedTuple):
    """Windows, by group and end, that a record made before they closed.

    Attributes:
        group: The group of each window.
        start_ms: The first event time that belongs to it.
        last_ms: The last event time that belongs to it.
        low: Where the records within its bounds begin, by event time.
        high: Where they end.
        maker: The record that makes the window. Earlier records within the bounds are in the
            window from then on; the maker itself need not be in it.
    """

    group: np.ndarray
    start_ms: np.ndarray
    last_ms: np.ndarray
    low: np.ndarray
    high: np.ndarray
    maker: np.ndarray

    def only(self, chosen: np.ndarray | slice) -> MadeWindows:
        """The windows of a mask or a slice."""
        return MadeWindows(*(field[chosen] for field in self))


class NewInput(NamedTuple):
    """The new records and watermark advances: only firings after them are asked for.

    Attributes:
        records: A mask of the records, by group and in order of arrival.
        advances: A mask of the watermark advances.
        with_earlier: Whether to return also the earlier firings of windows that fire again or
            close.
    """

    records: np.ndarray
    advances: np.ndarray
    with_earlier: bool


class RequestedWindows(NamedTuple):
    """The left and right sliding windows of records, by group and end.

    Attributes:
        group: The group of each window.
        end_ms: Its end, which belongs to it.
        low: Where the records within its bounds begin, by event time.
        high: Where they end.
        requester: The first record whose left or right window it is.
    """

    group: np.ndarray
    end_ms: np.ndarray
    low: np.ndarray
    high: np.ndarray
    requester: np.ndarray


def time_windows(
    clocked: ClockedRecords,
    lateness_ms: int,
    size_ms: int,
    advance_ms: int,
    from_ms: int,
    to_ms: int,
) -> MadeWindows:
    """Finds hopping and tumbling windows; the first record in a window makes it (rule C1).

    Args:
        clocked: The records.
        lateness_ms: How far the clock moves from a window's end to its close.
        size_ms: The windows' size.
        advance_ms: From one window to the next.
        from_ms: The first start to find, a multiple of the advance.
        to_ms: The start before which to stop.
    """
    group, start_ms, low, high = _time_window_bounds(clocked, size_ms, advance_ms, from_ms, to_ms)
    maker = earliest(clocked.by_time, low, high)
    windows = MadeWindows(group, start_ms, start_ms + size_ms - 1, low, high, maker)
    return windows.only(clocked.clock_ms[maker] < start_ms + size_ms + lateness_ms)


@compiled
def _time_window_bounds(
    clocked: ClockedRecords, size_ms: int, advance_ms: int, from_ms: int, to_ms: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    starts, by_time, time_ms = clocked.starts, clocked.by_time, clocked.time_ms
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
            if start > time:  # the record lies in a gap, or before the first window
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


def sliding_windows(
    requested: RequestedWindows, clocked: ClockedRecords, lateness_ms: int, difference_ms: int
) -> tuple[MadeWindows, np.ndarray]:
    """Finds sliding windows; one is made once it is requested and contains a record (B3, E2).

    Returns:
        The windows; and a mask of the requested windows that no record entered before they closed.
    """
    first = earliest(clocked.by_time, requested.low, requested.high)
    closes = requested.end_ms + 1 + lateness_ms
    is_made = (requested.low < requested.high) & (clocked.clock_ms[first] < closes)
    maker = np.maximum(requested.requester, first)
    end_ms = requested.end_ms
    windows = MadeWindows(
        requested.group, end_ms - difference_ms, end_ms, requested.low, requested.high, maker
    )
    return windows.only(is_made), ~is_made


def windows_that_may_fire(
    windows: MadeWindows, clocked: ClockedRecords, new: NewInput, policy: np.ndarray
) -> MadeWindows:
    """The windows that a new record, a new tick, or a new advance past their end may fire."""
    passes, advances = windows.last_ms + 1, clocked.advances
    ticks = new.advances if policy[AS_IN_FLINK] else new.advances[ticks_of(advances, policy)]
    by_advance = np.append(new.advances, bool(policy[INTERVAL] and ticks.any()))
    new_before = np.concatenate(([0], np.cumsum(new.records[clocked.by_time])))
    may_fire = by_advance[np.searchsorted(advances, passes)] | new.records[windows.maker]
    may_fire |= new_before[windows.high] > new_before[windows.low]
    if new.with_earlier and len(advances):
        may_fire |= passes + policy[LATENESS] <= advances[-1]
    return windows.only(may_fire)


@compiled
def requested_windows(
    clocked: ClockedRecords, lateness_ms: int, difference_ms: int, first_start_ms: int
) -> tuple[np.ndarray, ...]:
    """Finds the left and right windows of records that came before these closed (rules B3, B5).

    Args:
        clocked: The records.
        lateness_ms: How far the clock moves from a window's end to its close.
        difference_ms: The windows' time difference.
        first_start_ms: No window starts before it (rule B6); `NEVER_MS` for no bound.

    Returns:
        The fields of `RequestedWindows`, in order.
    """
    starts, by_time = clocked.starts, clocked.by_time
    time_ms, clock_ms = clocked.time_ms, clocked.clock_ms
    n = len(time_ms)
    found = np.empty((5, 2 * n), np.int64)
    count = 0
    for g in range(len(starts) - 1):
        low, high = starts[g], starts[g + 1]
        while low < high and time_ms[by_time[low]] < first_start_ms:
            low += 1
        # Records before `left` have had their left windows, those before `right` their right
        # windows, which end later. So the current window contains the records [right, left).
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
            # The last window that contains `of_right` ends a millisecond earlier. If that was
            # closed, the record is late and makes no right window (rule A5).
            if of_right < n and clock_ms[of_right] >= closes - 1:
                of_right = n
            requester = min(of_left, of_right)
            if requester < n:
                found[0, count], found[1, count] = g, end
                found[2, count], found[3, count], found[4, count] = right, left, requester
                count += 1
    return found[0, :count], found[1, :count], found[2, :count], found[3, :count], found[4, :count]


@compiled
def _first_up_to(
    by_time: np.ndarray, time_ms: np.ndarray, at: int, high: int, last_ms: int
) -> tuple[int, int]:
    """The first arrival among records from `at` to an event time, and the index after them."""
    first = len(time_ms)
    while at < high and time_ms[by_time[at]] <= last_ms:
        first = min(first, by_time[at])
        at += 1
    return first, at


@compiled
def earliest(by_time: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """The first record to arrive within each window's bounds, 0 where there is none.

    Neither bound falls from one window to the next.
    """
    found = np.zeros(len(low), np.int64)
    queue = np.empty(len(by_time), np.int64)  # indexes of records that arrived before later ones
    head = tail = index = 0
    for w in range(len(low)):
        index = max(index, low[w])
        while index < high[w]:
            while tail > head and by_time[queue[tail - 1]] > by_time[index]:
                tail -= 1
            queue[tail] = index
            tail += 1
            index += 1
        while head < tail and queue[head] < low[w]:
            head += 1
        if low[w] < high[w]:
            found[w] = by_time[queue[head]]
    return found
