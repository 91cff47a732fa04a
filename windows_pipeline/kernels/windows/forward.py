"""Finds forward sliding windows: one for each distinct record time (rule B7)."""

from __future__ import annotations

import numpy as np

from windows_pipeline.compat.numba_jit import compiled
from windows_pipeline.kernels.windows.arrays import WindowArrays
from windows_pipeline.kernels.windows.assign import Assignment
from windows_pipeline.kernels.windows.chunk import Chunk
from windows_pipeline.kernels.windows.sliding import entry_order
from windows_pipeline.windows import ForwardSlidingWindows


@compiled
def forward_sweep(
    starts: np.ndarray,
    time_ms: np.ndarray,
    enter_ms: np.ndarray,
    enter_order: np.ndarray,
    is_new: np.ndarray,
    close_before_ms: np.ndarray,
    close_after_ms: np.ndarray,
    size_ms: int,
) -> tuple[np.ndarray, ...]:
    """Finds the windows of each group that new records changed or the close time closed.

    Args:
        starts: Where each group's records begin; one more entry for the end of the last.
        time_ms: Event times, ascending within a group; every record is in time for some window.
        enter_ms: The end of the first window that counts the record.
        enter_order: The records of each group, sorted by `enter_ms`.
        is_new: Whether the record came with the day that the group is computed for.
        close_before_ms: By group, the close time before that day (rule A4).
        close_after_ms: By group, the close time after it.
        size_ms: The windows' size.

    Returns:
        The fields of `WindowArrays` up to `left`.
    """
    n = len(time_ms)
    group = np.empty(n, np.int64)
    end_ms = np.empty(n, np.int64)
    closed = np.empty(n, np.bool_)
    entered = np.empty(n, np.int64)
    left = np.empty(n, np.int64)
    found = 0
    for g in range(len(starts) - 1):
        low, high = starts[g], starts[g + 1]
        p = q = r = low
        new_inside = 0
        while r < high:
            end = time_ms[r] + size_ms
            while r < high and time_ms[r] + size_ms == end:
                r += 1
            while p < high and enter_ms[enter_order[p]] <= end:
                new_inside += is_new[enter_order[p]]
                p += 1
            while q < high and time_ms[q] + size_ms < end:
                new_inside -= is_new[q]
                q += 1
            is_closed = end < close_after_ms[g]
            if end >= close_before_ms[g] and (is_closed or new_inside > 0):
                group[found], end_ms[found], closed[found] = g, end, is_closed
                entered[found], left[found] = p, q
                found += 1
    return group[:found], end_ms[:found], closed[:found], entered[:found], left[:found]


def forward_windows(
    spec: ForwardSlidingWindows, chunk: Chunk, assignment: Assignment
) -> WindowArrays:
    """Finds the windows of records that are in time; see `FINDERS`."""
    enter_ms = assignment.enter_ms
    order = entry_order(chunk.starts, enter_ms)
    found = forward_sweep(
        chunk.starts,
        chunk.time_ms,
        enter_ms,
        order,
        chunk.is_new,
        chunk.close_before_ms,
        chunk.close_after_ms,
        spec.size_ms,
    )
    return WindowArrays.all_counted(found, order)
