"""The state of one window from its first record on: when it fires, and why (rule E2).

Time is an index into the sorted list of watermark advances. A record has the index of the next
advance (its own, if it caused one), and a firing for stream time the index of the advance that
caused it. So each window is computed by itself: between two of its records only the advances past
its next tick and past its end matter, and no other window.
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np

from windows_pipeline.compat.numba_jit import compiled
from windows_pipeline.windows.firing.triggers import Trigger


class FiringReason(IntEnum):
    """Why a window fires (FLIP-2): before, first at, or again after its end has passed."""

    EARLY = 0
    ON_TIME = 1
    LATE = 2


# The fields of a policy.
EVERY_N, INTERVAL, WITH_LATE, DISCARDS, AS_IN_FLINK, LATENESS, POLICY_SIZE = range(7)

# The fields of a window's state: its bounds; the clock at which its end has passed, and the index
# of the advance that takes the clock there; what it has fired; what it fires next; and the records
# that its next firing shows.
START, END, PASS, END_AT = 0, 1, 2, 3
NEXT_ID, FIRED_ON_TIME, COUNT = 4, 5, 6
END_IS_PENDING, TICK, HAS_TICK, TICK_IS_PENDING, SINCE = 7, 8, 9, 10, 11
PANE, SIZE, GROUP = 12, 13, 14
STATE_SIZE = 15
NO_PANE = -1

# The fields of a firing. F_AFTER is the index of the record or, with F_BY_ADVANCE, of the watermark
# advance that caused it.
(
    F_GROUP,
    F_PANE,
    F_SIZE,
    F_START,
    F_END,
    F_ID,
    F_REASON,
    F_BY_ADVANCE,
    F_AFTER,
    F_FINAL,
    FIRING_SIZE,
) = range(11)


def policy_of(trigger: Trigger, grace_ms: int) -> np.ndarray:
    """A trigger as the compiled code takes it."""
    policy = np.zeros(POLICY_SIZE, np.int64)
    policy[EVERY_N] = trigger.early_every_records or 0
    policy[INTERVAL] = trigger.early_every_ms or 0
    policy[WITH_LATE] = trigger.late
    policy[DISCARDS] = trigger.discards
    policy[AS_IN_FLINK] = trigger.as_in_flink
    policy[LATENESS] = grace_ms - trigger.out_of_orderness_ms
    return policy


def ticks_of(advances: np.ndarray, policy: np.ndarray) -> np.ndarray:
    """The advances at which an interval fires windows early; Flink's ticks differ by window."""
    interval = int(policy[INTERVAL])
    return np.flatnonzero(np.diff(advances // interval)) + 1 if interval else np.empty(0, np.int64)


@compiled
def advance_at(advances: np.ndarray, clock: int) -> int:
    """The first advance that takes the clock to a time or beyond."""
    low, high = 0, len(advances)
    while low < high:
        middle = (low + high) // 2
        if advances[middle] < clock:
            low = middle + 1
        else:
            high = middle
    return low


@compiled
def begin(
    state: np.ndarray, group: int, start: int, end: int, passes: int, advances: np.ndarray
) -> None:
    """Sets the state of a window that has no record yet."""
    state[:] = 0
    state[GROUP], state[START], state[END], state[PASS] = group, start, end, passes
    state[END_AT] = advance_at(advances, passes)
    state[PANE] = NO_PANE


@compiled
def arrive(
    state: np.ndarray,
    record: int,
    time: int,
    clock: int,
    entry: int,
    is_first: bool,  # noqa: FBT001  compiled code takes its arguments by position
    advances: np.ndarray,
    policy: np.ndarray,
    firings: np.ndarray,
    used: np.ndarray,
) -> np.ndarray:
    """Fires a window for a record that is already in its pane, or sets when it fires next.

    Args:
        state: The window's, with all firings up to the advance before the record.
        record: The record's index.
        time: Its event time.
        clock: The clock that it met.
        entry: The index of the first advance at or after it.
        is_first: Whether the window has no earlier record.
        advances: The clock at each advance.
        policy: The trigger.
        firings: The firings so far.
        used: How many firings there are, as an array of one, which changes.

    Returns:
        The firings.
    """
    state[SINCE] = entry
    if clock >= state[PASS]:
        return fire(state, record, clock, policy, firings, used)
    state[COUNT] += 1
    interval = policy[INTERVAL]
    if interval and policy[AS_IN_FLINK]:
        if not state[HAS_TICK]:
            # Java's remainder has the sign of the time.
            remainder = time % interval if time >= 0 else -(-time % interval)
            state[TICK] = min(time - remainder + interval, state[PASS] - 1)
            state[HAS_TICK] = state[TICK_IS_PENDING] = 1
    else:
        state[END_IS_PENDING] = 1
        if interval:
            before = clock if is_first or entry == 0 else advances[entry - 1]
            state[TICK] = _next_multiple(before, interval)
    if policy[EVERY_N] and state[COUNT] >= policy[EVERY_N]:
        state[COUNT] = 0
        firings = fire(state, record, clock, policy, firings, used)
    return firings


@compiled
def fire_until(
    state: np.ndarray,
    upto: int,
    advances: np.ndarray,
    policy: np.ndarray,
    firings: np.ndarray,
    used: np.ndarray,
) -> np.ndarray:
    """Adds the firings that are due by the advances up to and including one; see `arrive`."""
    if state[TICK_IS_PENDING]:
        return _flink_ticks(state, upto, advances, policy, firings, used)
    while state[END_IS_PENDING]:
        due = _due(state, advances, policy)
        if due > upto:
            break
        if due == state[END_AT]:  # an advance past ticks and the end fires ON_TIME
            state[END_IS_PENDING] = 0
        else:
            state[TICK] = _next_multiple(advances[due], policy[INTERVAL])
        firings = fire(state, ~due, advances[due], policy, firings, used)
    return firings


@compiled
def _due(state: np.ndarray, advances: np.ndarray, policy: np.ndarray) -> int:
    """The advance that fires a window next, before its end has passed."""
    if policy[INTERVAL] and state[SIZE] and state[TICK] < state[PASS]:
        return min(int(state[END_AT]), advance_at(advances, state[TICK]))
    return int(state[END_AT])


@compiled
def quiet_until(state: np.ndarray, advances: np.ndarray, policy: np.ndarray) -> int:
    """The advance up to which a further record is only added to the pane, unless it is the n-th."""
    if policy[AS_IN_FLINK] or not state[END_IS_PENDING] or not state[SIZE]:
        return -1
    return _due(state, advances, policy)


@compiled
def _flink_ticks(
    state: np.ndarray,
    upto: int,
    advances: np.ndarray,
    policy: np.ndarray,
    firings: np.ndarray,
    used: np.ndarray,
) -> np.ndarray:
    """Fires at each tick, the last one at the end; it stays for a session that joins (rule 16)."""
    while state[TICK_IS_PENDING]:
        due = max(advance_at(advances, state[TICK] + 1), state[SINCE])
        if due > upto:
            break
        if state[TICK] == state[PASS] - 1:
            state[TICK_IS_PENDING] = 0
        else:
            state[TICK] = min(state[TICK] + policy[INTERVAL], state[PASS] - 1)
        firings = fire(state, ~due, advances[due], policy, firings, used)
    return firings


@compiled
def fire(
    state: np.ndarray,
    after: int,
    clock: int,
    policy: np.ndarray,
    firings: np.ndarray,
    used: np.ndarray,
) -> np.ndarray:
    """Adds a firing, unless its pane would be empty or the policy wants no late firings.

    `after` is the record that caused it, or the complement of the advance; see `arrive`.
    """
    reason = 0
    if clock >= state[PASS]:
        reason = 2 if state[FIRED_ON_TIME] else 1
    if state[SIZE] == 0 or (reason == 2 and not policy[WITH_LATE]):
        return firings
    is_pending = state[END_IS_PENDING] or state[TICK_IS_PENDING]
    is_closed = clock >= state[PASS] + policy[LATENESS]
    is_final = after < 0 and not is_pending and is_closed
    firings = add_firing(state, after, reason, is_final, firings, used)
    state[NEXT_ID] += 1
    if reason == 1:
        state[FIRED_ON_TIME] = 1
    if policy[DISCARDS]:
        state[PANE], state[SIZE] = NO_PANE, 0
    return firings


@compiled
def add_firing(
    state: np.ndarray,
    after: int,
    reason: int,
    is_final: bool,  # noqa: FBT001  compiled code takes its arguments by position
    firings: np.ndarray,
    used: np.ndarray,
) -> np.ndarray:
    """Appends a firing of the window's current state; see `fire`."""
    count = used[0]
    if count == len(firings):
        longer = np.empty((2 * count, FIRING_SIZE), np.int64)
        longer[:count] = firings
        firings = longer
    row = firings[count]
    row[F_GROUP], row[F_PANE], row[F_SIZE] = state[GROUP], state[PANE], state[SIZE]
    row[F_START], row[F_END], row[F_ID] = state[START], state[END], state[NEXT_ID]
    row[F_REASON], row[F_BY_ADVANCE], row[F_AFTER] = reason, after < 0, max(after, ~after)
    row[F_FINAL] = is_final
    used[0] = count + 1
    return firings


@compiled
def _next_multiple(after: int, interval: int) -> int:
    return (after // interval + 1) * interval
