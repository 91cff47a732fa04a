"""One window's life, from its first record on: when it fires and why (rule E2).

Time is told by the number of the rise of stream time: a record comes before one (or is it), a
firing for stream time comes with one. So a window is taken by itself: between two of its records
one needs to know the rises that pass its next tick and its end, and nothing of other windows.
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np

from windows_pipeline.compat.numba_jit import compiled
from windows_pipeline.windows.triggers import Trigger


class FiringReason(IntEnum):
    """Why a window fires (FLIP-2): before, first at, or further after its end has passed."""

    EARLY = 0
    ON_TIME = 1
    LATE = 2


# A policy's places.
EVERY_N, INTERVAL, WITH_LATE, DISCARDS, AS_IN_FLINK, LATENESS, POLICY_SIZE = range(7)

# A life's places: its bounds; the clock that it passes at and the rise that takes it there; what
# it has told; what is next to tell; and the records that its next firing shows.
START, END, PASS, END_AT = 0, 1, 2, 3
NEXT_ID, ON_TIME_WAS, COUNT = 4, 5, 6
END_WAITS, TICK, HAS_TICK, TICK_WAITS, SINCE = 7, 8, 9, 10, 11
PANE, SIZE, GROUP = 12, 13, 14
LIFE_SIZE = 15
NO_PANE = -1

# A firing's places; it is after the record or the rise of this number.
(
    F_GROUP,
    F_PANE,
    F_SIZE,
    F_START,
    F_END,
    F_ID,
    F_REASON,
    F_BY_RISE,
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


def ticks_of(rises: np.ndarray, policy: np.ndarray) -> np.ndarray:
    """The rises that fire windows early, by an interval; not Flink's, which windows have alone."""
    interval = int(policy[INTERVAL])
    return np.flatnonzero(np.diff(rises // interval)) + 1 if interval else np.empty(0, np.int64)


@compiled
def rise_at(rises: np.ndarray, clock: int) -> int:
    """The first rise that takes the clock to a time or beyond."""
    low, high = 0, len(rises)
    while low < high:
        middle = (low + high) // 2
        if rises[middle] < clock:
            low = middle + 1
        else:
            high = middle
    return low


@compiled
def begin(
    life: np.ndarray, group: int, start: int, end: int, passes: int, rises: np.ndarray
) -> None:
    """Makes a life that holds nothing so far."""
    life[:] = 0
    life[GROUP], life[START], life[END], life[PASS] = group, start, end, passes
    life[END_AT] = rise_at(rises, passes)
    life[PANE] = NO_PANE


@compiled
def arrive(
    life: np.ndarray,
    record: int,
    time: int,
    clock: int,
    entry: int,
    is_first: bool,  # noqa: FBT001  compiled code takes its arguments by place
    rises: np.ndarray,
    policy: np.ndarray,
    firings: np.ndarray,
    used: np.ndarray,
) -> np.ndarray:
    """A record that is in the pane by now fires the window, or sets what will.

    Args:
        life: The window, told up to the rise before the record's.
        record: The record's number.
        time: Its event time.
        clock: The clock that it met.
        entry: The rise before which it came.
        is_first: Whether the window holds no earlier one.
        rises: The clock at each rise.
        policy: The trigger.
        firings: What was fired so far.
        used: How much of that is in use, as an array of one, which changes.

    Returns:
        The firings.
    """
    life[SINCE] = entry
    if clock >= life[PASS]:
        return fire(life, record, clock, policy, firings, used)
    life[COUNT] += 1
    interval = policy[INTERVAL]
    if interval and policy[AS_IN_FLINK]:
        if not life[HAS_TICK]:
            # Java's remainder has the sign of the time.
            remainder = time % interval if time >= 0 else -(-time % interval)
            life[TICK] = min(time - remainder + interval, life[PASS] - 1)
            life[HAS_TICK] = life[TICK_WAITS] = 1
    else:
        life[END_WAITS] = 1
        if interval:
            before = clock if is_first or entry == 0 else rises[entry - 1]
            life[TICK] = _next_multiple(before, interval)
    if policy[EVERY_N] and life[COUNT] >= policy[EVERY_N]:
        life[COUNT] = 0
        firings = fire(life, record, clock, policy, firings, used)
    return firings


@compiled
def tell_until(
    life: np.ndarray,
    upto: int,
    rises: np.ndarray,
    policy: np.ndarray,
    firings: np.ndarray,
    used: np.ndarray,
) -> np.ndarray:
    """Fires what is due by the rises up to and including one; see `arrive`."""
    if life[TICK_WAITS]:
        return _flink_ticks(life, upto, rises, policy, firings, used)
    while life[END_WAITS]:
        due = _due(life, rises, policy)
        if due > upto:
            break
        if due == life[END_AT]:  # a rise that passes ticks and the end is on time
            life[END_WAITS] = 0
        else:
            life[TICK] = _next_multiple(rises[due], policy[INTERVAL])
        firings = fire(life, ~due, rises[due], policy, firings, used)
    return firings


@compiled
def _due(life: np.ndarray, rises: np.ndarray, policy: np.ndarray) -> int:
    """The rise that fires a window next, whose end is still to come."""
    if policy[INTERVAL] and life[SIZE] and life[TICK] < life[PASS]:
        return min(int(life[END_AT]), rise_at(rises, life[TICK]))
    return int(life[END_AT])


@compiled
def quiet_until(life: np.ndarray, rises: np.ndarray, policy: np.ndarray) -> int:
    """The rise up to which a further record only adds to the pane, unless it is one in so many."""
    if policy[AS_IN_FLINK] or not life[END_WAITS] or not life[SIZE]:
        return -1
    return _due(life, rises, policy)


@compiled
def _flink_ticks(
    life: np.ndarray,
    upto: int,
    rises: np.ndarray,
    policy: np.ndarray,
    firings: np.ndarray,
    used: np.ndarray,
) -> np.ndarray:
    """Each tick fires, the last at the end; it stays there for a session that joins (rule 16)."""
    while life[TICK_WAITS]:
        due = max(rise_at(rises, life[TICK] + 1), life[SINCE])
        if due > upto:
            break
        if life[TICK] == life[PASS] - 1:
            life[TICK_WAITS] = 0
        else:
            life[TICK] = min(life[TICK] + policy[INTERVAL], life[PASS] - 1)
        firings = fire(life, ~due, rises[due], policy, firings, used)
    return firings


@compiled
def fire(
    life: np.ndarray,
    after: int,
    clock: int,
    policy: np.ndarray,
    firings: np.ndarray,
    used: np.ndarray,
) -> np.ndarray:
    """Adds a firing, unless it would show nothing or is a late one that is not wanted.

    It is after a record, or a rise by the complement of its number; see `arrive`.
    """
    reason = 0
    if clock >= life[PASS]:
        reason = 2 if life[ON_TIME_WAS] else 1
    if life[SIZE] == 0 or (reason == 2 and not policy[WITH_LATE]):
        return firings
    waits = life[END_WAITS] or life[TICK_WAITS]
    is_closed = clock >= life[PASS] + policy[LATENESS]
    is_final = after < 0 and not waits and is_closed
    firings = add_firing(life, after, reason, is_final, firings, used)
    life[NEXT_ID] += 1
    if reason == 1:
        life[ON_TIME_WAS] = 1
    if policy[DISCARDS]:
        life[PANE], life[SIZE] = NO_PANE, 0
    return firings


@compiled
def add_firing(
    life: np.ndarray,
    after: int,
    reason: int,
    is_final: bool,  # noqa: FBT001  compiled code takes its arguments by place
    firings: np.ndarray,
    used: np.ndarray,
) -> np.ndarray:
    """Adds a firing of what a life is; see `fire`."""
    count = used[0]
    if count == len(firings):
        longer = np.empty((2 * count, FIRING_SIZE), np.int64)
        longer[:count] = firings
        firings = longer
    row = firings[count]
    row[F_GROUP], row[F_PANE], row[F_SIZE] = life[GROUP], life[PANE], life[SIZE]
    row[F_START], row[F_END], row[F_ID] = life[START], life[END], life[NEXT_ID]
    row[F_REASON], row[F_BY_RISE], row[F_AFTER] = reason, after < 0, max(after, ~after)
    row[F_FINAL] = is_final
    used[0] = count + 1
    return firings


@compiled
def _next_multiple(after: int, interval: int) -> int:
    return (after // interval + 1) * interval
