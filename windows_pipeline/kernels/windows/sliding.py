"""Finds sliding windows in one pass over each key's records in time order.

In the order of window ends, a record enters at the later of its left window's end and the close
time that it met, and leaves one millisecond after the end of the last window that contains it
(rules B3, B5). The windows are the left and right windows that records make. A window contains
the records that have entered by its end and not left.
"""

from __future__ import annotations

import numpy as np

from windows_pipeline.compat.numba_jit import compiled
from windows_pipeline.kernels.time import NEVER_MS
from windows_pipeline.kernels.windows.arrays import WindowArrays
from windows_pipeline.kernels.windows.assign import Assignment
from windows_pipeline.kernels.windows.chunk import Chunk
from windows_pipeline.windows import SlidingWindows


@compiled
def sweep(
    starts: np.ndarray,
    time_ms: np.ndarray,
    close_ms: np.ndarray,
    is_new: np.ndarray,
    close_before_ms: np.ndarray,
    close_after_ms: np.ndarray,
    difference_ms: int,
    first_start_ms: int,
    emit_empty: bool,  # noqa: FBT001  compiled code takes its arguments by position
) -> tuple[np.ndarray, ...]:
    """Finds each group's windows that its new records changed or its close time closed.

    Args:
        starts: Where each group's records begin; one more entry for the end of the last.
        time_ms: Event times, ascending within a group; every record is in time for some window.
        close_ms: The close time that each record met on arrival (rule A3).
        is_new: Whether the record came with the day that the group is computed for.
        close_before_ms: By group, the close time before that day (rule A4).
        close_after_ms: By group, the close time after it.
        difference_ms: The windows' time difference.
        first_start_ms: No window starts before it (rule B6); `NEVER_MS` for no bound.
        emit_empty: Whether empty windows after silences are results (rule B8).

    Returns:
        The fields of `WindowArrays`, in order.
    """
    n = len(time_ms)
    group = np.empty(2 * n, np.int64)
    end_ms = np.empty(2 * n, np.int64)
    closed = np.empty(2 * n, np.bool_)
    entered = np.empty(2 * n, np.int64)
    left = np.empty(2 * n, np.int64)
    enter_order = np.arange(n)
    dropped = np.zeros(n, np.bool_)
    left_end_ms = np.maximum(time_ms, first_start_ms + difference_ms)
    enter_ms = np.maximum(left_end_ms, close_ms)
    leave_ms = time_ms + difference_ms + 1
    ends = np.empty(2 * n, np.int64)
    found = 0
    for g in range(len(starts) - 1):
        low, high = starts[g], starts[g + 1]
        _sort_by_entry(enter_order, enter_ms, low, high)
        i = j = p = q = low
        new_inside = 0
        ends_found = 0
        while True:
            # A record does not make a left window that was closed on its arrival (rule B3).
            while i < high and left_end_ms[i] < close_ms[i]:
                i += 1
            if i == high and j == high:
                break
            end = leave_ms[j] if i == high else left_end_ms[i]
            if j < high:
                end = min(end, leave_ms[j])
            made_before = False
            while i < high and (left_end_ms[i] == end or left_end_ms[i] < close_ms[i]):
                if left_end_ms[i] >= close_ms[i] and not is_new[i]:
                    made_before = True
                i += 1
            while j < high and leave_ms[j] == end:
                if not is_new[j]:
                    made_before = True
                j += 1
            while p < high and enter_ms[enter_order[p]] <= end:
                new_inside += is_new[enter_order[p]]
                p += 1
            while q < high and leave_ms[q] <= end:
                new_inside -= is_new[q]
                q += 1
            ends[ends_found] = end
            ends_found += 1
            if end < close_before_ms[g]:
                continue
            is_closed = end < close_after_ms[g]
            if p > q:
                is_result = is_closed or new_inside > 0 or not made_before
            else:
                is_result = emit_empty and is_closed
            if is_result:
                group[found], end_ms[found], closed[found] = g, end, is_closed
                entered[found], left[found] = p, q
                found += 1
        for r in range(low, high):
            last_end = leave_ms[r] - 1
            has_closed = close_before_ms[g] <= last_end < close_after_ms[g]
            if has_closed and close_ms[r] > left_end_ms[r]:
                nearest = np.searchsorted(ends[:ends_found], enter_ms[r])
                dropped[r] = nearest == ends_found or ends[nearest] > last_end
    return (
        group[:found],
        end_ms[:found],
        closed[:found],
        entered[:found],
        left[:found],
        enter_order,
        dropped,
    )


@compiled
def entry_order(starts: np.ndarray, enter_ms: np.ndarray) -> np.ndarray:
    """The records of each group, sorted by their first window."""
    order = np.arange(len(enter_ms))
    for g in range(len(starts) - 1):
        _sort_by_entry(order, enter_ms, starts[g], starts[g + 1])
    return order


@compiled
def _sort_by_entry(enter_order: np.ndarray, enter_ms: np.ndarray, low: int, high: int) -> None:
    """Sorts a group's records by entry. Without partly late records they are sorted already."""
    for r in range(low + 1, high):
        if enter_ms[r] < enter_ms[r - 1]:
            order = np.argsort(enter_ms[low:high], kind="mergesort")
            enter_order[low:high] = low + order
            return


def sliding_windows(spec: SlidingWindows, chunk: Chunk, assignment: Assignment) -> WindowArrays:
    """Finds the windows of records that are in time; see `FINDERS`."""
    del assignment  # the sweep judges by the close times
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
