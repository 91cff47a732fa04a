"""Which hopping and tumbling windows there are: one pass over each key's records (rule C1).

In the order of window ends a record enters at the first end that was not closed when it came,
and leaves after the last window that starts at or before it. A window costs what it costs to
move to it, however many windows a record is in (rule C2).
"""

from __future__ import annotations

import numba
import numpy as np

_NO_ENTRY = 2**63 - 1


@numba.njit(cache=True)
def hopping_sweep(
    starts: np.ndarray,
    first_end_ms: np.ndarray,
    last_end_ms: np.ndarray,
    enter_order: np.ndarray,
    is_new: np.ndarray,
    close_before_ms: np.ndarray,
    close_after_ms: np.ndarray,
    advance_ms: int,
    emit_empty: bool,  # noqa: FBT001  compiled code takes its arguments by place
) -> tuple[np.ndarray, ...]:
    """Finds each group's windows that its new records changed or its close time closed.

    Args:
        starts: Where each group's records begin; one more entry for the end of the last.
        first_end_ms: The end of the first window that counts the record.
        last_end_ms: The end of the last one, not before the first; ascending within a group.
        enter_order: The records of each group by their first window.
        is_new: Whether the record came with the unit that the group is computed for.
        close_before_ms: By group, the close time before that unit (rule A4).
        close_after_ms: By group, the close time after it.
        advance_ms: From one window to the next.
        emit_empty: Whether closed windows without records are results.

    Returns:
        The fields of `Windows` up to `left`.
    """
    room = 2 * len(first_end_ms) + 16
    group = np.empty(room, np.int64)
    end_ms = np.empty(room, np.int64)
    closed = np.empty(room, np.bool_)
    entered = np.empty(room, np.int64)
    left = np.empty(room, np.int64)
    found = 0
    for g in range(len(starts) - 1):
        low, high = starts[g], starts[g + 1]
        p = q = low
        new_inside = 0
        end = first_end_ms[enter_order[low]]
        while True:
            while p < high and first_end_ms[enter_order[p]] <= end:
                new_inside += is_new[enter_order[p]]
                p += 1
            while q < high and last_end_ms[q] < end:
                new_inside -= is_new[q]
                q += 1
            is_closed = end <= close_after_ms[g]
            may_be = p > q or emit_empty
            wanted = may_be and end > close_before_ms[g] and (is_closed or new_inside > 0)
            if wanted:
                if found == room:
                    room *= 2
                    group, end_ms = _longer(group, room), _longer(end_ms, room)
                    entered, left = _longer(entered, room), _longer(left, room)
                    closed = _longer(closed, room)
                group[found], end_ms[found], closed[found] = g, end, is_closed
                entered[found], left[found] = p, q
                found += 1
            next_entry_ms = first_end_ms[enter_order[p]] if p < high else _NO_ENTRY
            if p > q:
                end += advance_ms
            elif emit_empty and end + advance_ms <= close_after_ms[g]:
                # Silent windows that were closed before are passed over.
                past_closed = end + (close_before_ms[g] - end) // advance_ms * advance_ms
                end = min(max(end + advance_ms, past_closed), next_entry_ms)
            elif p < high:
                end = next_entry_ms
            else:
                break
    return group[:found], end_ms[:found], closed[:found], entered[:found], left[:found]


@numba.njit(cache=True)
def _longer(values: np.ndarray, length: int) -> np.ndarray:
    longer = np.empty(length, values.dtype)
    longer[: len(values)] = values
    return longer
