"""Finds hopping and tumbling windows in one pass over each key's records (rule C1).

In the order of window ends, a record enters at the end of its first window that was open when the
record came, and leaves after the end of the last window that contains it. Between two such changes
all windows contain the same records: they are found, and aggregated, as one run. So a record costs
two steps, whatever size / advance is (rule C2).
"""

from __future__ import annotations

import numpy as np

from windows_pipeline.compat.numba_jit import compiled
from windows_pipeline.kernels.windows.arrays import WindowArrays
from windows_pipeline.kernels.windows.assign import Assignment
from windows_pipeline.kernels.windows.chunk import Chunk
from windows_pipeline.kernels.windows.sliding import entry_order
from windows_pipeline.windows import TimeWindows

LONGEST_RUN = 1 << 16
"""The most hopping windows of the same records that are returned as one run."""
_NO_ENTRY = 2**63 - 1


@compiled
def hopping_sweep(
    starts: np.ndarray,
    first_end_ms: np.ndarray,
    last_end_ms: np.ndarray,
    enter_order: np.ndarray,
    is_new: np.ndarray,
    close_before_ms: np.ndarray,
    close_after_ms: np.ndarray,
    advance_ms: int,
    emit_empty: bool,  # noqa: FBT001  compiled code takes its arguments by position
) -> tuple[np.ndarray, ...]:
    """Finds each group's windows that its new records changed or its close time closed.

    Args:
        starts: Where each group's records begin; one more entry for the end of the last.
        first_end_ms: The end of the first window that counts the record.
        last_end_ms: The end of the last such window, not before the first; ascending within a
            group.
        enter_order: The records of each group, sorted by their first window.
        is_new: Whether the record came with the day that the group is computed for.
        close_before_ms: By group, the close time before that day (rule A4).
        close_after_ms: By group, the close time after it.
        advance_ms: The time from one window's start to the next one's.
        emit_empty: Whether closed windows without records are results.

    Returns:
        Runs of windows that contain the same records and are all closed or all open: the fields
        of `WindowArrays` up to `left`, and the end of each run's last window.
    """
    # A group has at most two changes a record, and its first open window cuts one run in two.
    room = 2 * len(first_end_ms) + len(starts)
    group = np.empty(room, np.int64)
    end_ms = np.empty(room, np.int64)
    closed = np.empty(room, np.bool_)
    entered = np.empty(room, np.int64)
    left = np.empty(room, np.int64)
    run_end_ms = np.empty(room, np.int64)
    found = 0
    for g in range(len(starts) - 1):
        low, high = starts[g], starts[g + 1]
        p = q = low
        new_inside = 0
        end = first_end_ms[enter_order[low]]
        wanted_from = _next_end(end, close_before_ms[g], advance_ms)
        open_from = _next_end(end, close_after_ms[g], advance_ms)
        while True:
            while p < high and first_end_ms[enter_order[p]] <= end:
                new_inside += is_new[enter_order[p]]
                p += 1
            while q < high and last_end_ms[q] < end:
                new_inside -= is_new[q]
                q += 1
            change = first_end_ms[enter_order[p]] if p < high else _NO_ENTRY
            if p > q:
                change = min(change, last_end_ms[q] + advance_ms)
            begin = max(end, wanted_from)
            cut = min(change, open_from)
            if begin < cut and (p > q or emit_empty):
                group[found], entered[found], left[found] = g, p, q
                end_ms[found], run_end_ms[found] = begin, cut - advance_ms
                closed[found] = True
                found += 1
            begin = max(begin, open_from)
            if begin < change and new_inside > 0:
                group[found], entered[found], left[found] = g, p, q
                end_ms[found], run_end_ms[found] = begin, change - advance_ms
                closed[found] = False
                found += 1
            if change == _NO_ENTRY:
                break
            end = change
    return (
        group[:found],
        end_ms[:found],
        closed[:found],
        entered[:found],
        left[:found],
        run_end_ms[:found],
    )


@compiled
def _next_end(end_ms: int, after_ms: int, advance_ms: int) -> int:
    """The first window end after a time, given the end of any window."""
    return end_ms + ((after_ms - end_ms) // advance_ms + 1) * advance_ms


def hopping_windows(spec: TimeWindows, chunk: Chunk, assignment: Assignment) -> WindowArrays:
    """Finds runs of windows of records that are in time; see `FINDERS`."""
    order = entry_order(chunk.starts, assignment.enter_ms)
    *found, run_end_ms = hopping_sweep(
        chunk.starts,
        assignment.enter_ms,
        assignment.last_end_ms,
        order,
        chunk.is_new,
        chunk.close_before_ms,
        chunk.close_after_ms,
        spec.advance_ms,
        spec.emit_empty,
    )
    return _short_runs(WindowArrays.all_counted(found, order), run_end_ms, spec.advance_ms)


def _short_runs(windows: WindowArrays, last_end_ms: np.ndarray, advance_ms: int) -> WindowArrays:
    """Cuts runs of hopping windows that are too long for Spark to unroll at once."""
    last_number = (last_end_ms - windows.end_ms) // advance_ms
    if (last_number < LONGEST_RUN).all():
        return windows._replace(last_end_ms=last_end_ms)
    pieces = last_number // LONGEST_RUN + 1
    run = np.repeat(np.arange(len(pieces)), pieces)
    number = (np.arange(len(run)) - (np.cumsum(pieces) - pieces)[run]) * LONGEST_RUN
    end_ms = windows.end_ms[run] + number * advance_ms
    further = np.minimum(last_number[run] - number, LONGEST_RUN - 1)
    return windows._replace(
        group=windows.group[run],
        end_ms=end_ms,
        closed=windows.closed[run],
        entered=windows.entered[run],
        left=windows.left[run],
        last_end_ms=end_ms + further * advance_ms,
    )
