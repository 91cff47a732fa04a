"""The firings of sessions, which join as records come (rules D1, D2, E2)."""

from __future__ import annotations

import numpy as np

from windows_pipeline.compat.numba_jit import compiled
from windows_pipeline.kernels.fenwick import mark, marks_before, position_of
from windows_pipeline.kernels.firings.window_state import (
    AS_IN_FLINK,
    COUNT,
    END,
    END_AT,
    F_PANE,
    F_SIZE,
    FIRING_SIZE,
    HAS_TICK,
    LATENESS,
    NO_PANE,
    PANE,
    PASS,
    SIZE,
    START,
    STATE_SIZE,
    TICK,
    TICK_IS_PENDING,
    advance_at,
    arrive,
    begin,
    fire_until,
)

# The fields of a pane: its records as a list of nodes, and how many of them firings show.
_HEAD, _TAIL, _SHOWN, _PANE_SIZE = range(4)
# The fields of a node.
_RECORD, _NEXT, _NODE_SIZE = range(3)
_NONE = -1


@compiled
def session_firings(
    starts: np.ndarray,
    by_time: np.ndarray,
    time_ms: np.ndarray,
    clock_ms: np.ndarray,
    entry: np.ndarray,
    advances: np.ndarray,
    policy: np.ndarray,
    gap_ms: int,
) -> tuple[np.ndarray, np.ndarray]:
    """Fires the sessions of each group.

    A firing's end is the session's last record plus the gap. Where two sessions that have fired
    join, the records of the smaller one are copied. So the number of copies of a record grows at
    most with the logarithm of its session's size.

    Args:
        starts: See `ClockedRecords`.
        by_time: See `ClockedRecords`.
        time_ms: See `ClockedRecords`.
        clock_ms: See `ClockedRecords`.
        entry: See `ClockedRecords`.
        advances: See `ClockedRecords`.
        policy: See `window_state.policy_of`.
        gap_ms: The sessions' gap.

    Returns:
        See `one_by_one.firings_one_by_one`.
    """
    n = len(time_ms)
    # The contract's sessions contain their end, Flink's do not.
    beyond = 0 if policy[AS_IN_FLINK] else 1
    position = np.empty(n, np.int64)
    position[by_time] = np.arange(n)
    sorted_ms = time_ms[by_time]
    # An open session has a mark, and its state, at the position of its first record.
    is_open = np.zeros(n + 1, np.int64)
    states = np.empty((n, STATE_SIZE), np.int64)
    state = np.empty(STATE_SIZE, np.int64)
    firings = np.empty((1024, FIRING_SIZE), np.int64)
    panes = np.zeros((n, _PANE_SIZE), np.int64)
    nodes = np.empty((n, _NODE_SIZE), np.int64)
    used = np.zeros(2, np.int64)  # how many firings, how many nodes
    pane_count = noted = 0
    last_advance = len(advances) - 1
    for g in range(len(starts) - 1):
        low, high = starts[g], starts[g + 1]
        open_count = 0
        for i in range(low, high):
            time, clock = time_ms[i], clock_ms[i]
            # A record that advances the watermark still joins the sessions that the advance closes.
            met = advances[entry[i] - 1] if entry[i] else clock
            while open_count:
                slot = position_of(is_open, 0)
                if met < states[slot, PASS] + policy[LATENESS]:
                    break
                firings = fire_until(states[slot], last_advance, advances, policy, firings, used)
                mark(is_open, slot, -1)
                open_count -= 1
            begin(state, g, time, time + gap_ms, time + gap_ms + beyond, advances)
            slot = position[i]
            is_first = True
            before = marks_before(is_open, low + advance_at(sorted_ms[low:high], time + gap_ms + 1))
            while before:
                other = position_of(is_open, before - 1)
                if states[other, END] < time:
                    break
                firings = fire_until(states[other], entry[i] - 1, advances, policy, firings, used)
                while noted < used[0]:
                    panes[firings[noted, F_PANE], _SHOWN] = firings[noted, F_SIZE]
                    noted += 1
                if states[other, START] <= time and states[other, END] >= time + gap_ms:
                    state[:] = states[other]
                else:
                    nodes = _join(state, states[other], panes, nodes, used)
                slot = min(slot, other)
                is_first = False
                mark(is_open, other, -1)
                before -= 1
                open_count -= 1
            if is_first and met >= state[PASS] + policy[LATENESS]:
                continue
            if state[PASS] != state[END] + beyond:
                state[PASS] = state[END] + beyond
                state[END_AT] = advance_at(advances, state[PASS])
            nodes = _append(nodes, i, used)
            if state[PANE] == NO_PANE:
                state[PANE] = pane_count
                panes[pane_count, _HEAD] = used[1] - 1
                pane_count += 1
            else:
                nodes[panes[state[PANE], _TAIL], _NEXT] = used[1] - 1
            panes[state[PANE], _TAIL] = used[1] - 1
            state[SIZE] += 1
            firings = arrive(
                state, i, time, clock, entry[i], is_first, advances, policy, firings, used
            )
            states[slot] = state
            mark(is_open, slot, 1)
            open_count += 1
        for _ in range(open_count):
            slot = position_of(is_open, 0)
            firings = fire_until(states[slot], last_advance, advances, policy, firings, used)
            mark(is_open, slot, -1)
    while noted < used[0]:
        panes[firings[noted, F_PANE], _SHOWN] = firings[noted, F_SIZE]
        noted += 1
    return _laid_out(panes[:pane_count], nodes, firings[: used[0]]), firings[: used[0]]


@compiled
def _join(
    state: np.ndarray, other: np.ndarray, panes: np.ndarray, nodes: np.ndarray, used: np.ndarray
) -> np.ndarray:
    """Joins another session into `state`; returns the nodes."""
    state[START], state[END] = min(state[START], other[START]), max(state[END], other[END])
    state[COUNT] += other[COUNT]
    if other[HAS_TICK]:  # the least tick stays, and waits again (rule 16 of Flink's cases)
        state[TICK] = min(state[TICK], other[TICK]) if state[HAS_TICK] else other[TICK]
        state[HAS_TICK] = state[TICK_IS_PENDING] = 1
    if other[PANE] == NO_PANE:
        return nodes
    if state[PANE] == NO_PANE:
        state[PANE], state[SIZE] = other[PANE], other[SIZE]
        return nodes
    more, fewer = state[PANE], other[PANE]
    if state[SIZE] < other[SIZE]:
        more, fewer = fewer, more
    if panes[fewer, _SHOWN] == 0:
        nodes[panes[more, _TAIL], _NEXT] = panes[fewer, _HEAD]
        panes[more, _TAIL] = panes[fewer, _TAIL]
    else:
        node, last = panes[fewer, _HEAD], panes[fewer, _TAIL]
        while True:
            nodes = _append(nodes, nodes[node, _RECORD], used)
            nodes[panes[more, _TAIL], _NEXT] = used[1] - 1
            panes[more, _TAIL] = used[1] - 1
            if node == last:
                break
            node = nodes[node, _NEXT]
    state[PANE] = more
    state[SIZE] += other[SIZE]
    return nodes


@compiled
def _append(nodes: np.ndarray, record: int, used: np.ndarray) -> np.ndarray:
    if used[1] == len(nodes):
        longer = np.empty((2 * used[1], _NODE_SIZE), np.int64)
        longer[: used[1]] = nodes
        nodes = longer
    nodes[used[1], _RECORD], nodes[used[1], _NEXT] = record, _NONE
    used[1] += 1
    return nodes


@compiled
def _laid_out(panes: np.ndarray, nodes: np.ndarray, firings: np.ndarray) -> np.ndarray:
    """The shown records of each pane in a row; F_PANE becomes the index where they begin."""
    begins = np.cumsum(panes[:, _SHOWN]) - panes[:, _SHOWN]
    entries = np.empty(panes[:, _SHOWN].sum(), np.int64)
    for p in range(len(panes)):
        node = panes[p, _HEAD]
        for k in range(panes[p, _SHOWN]):
            entries[begins[p] + k] = nodes[node, _RECORD]
            node = nodes[node, _NEXT]
    for f in range(len(firings)):
        firings[f, F_PANE] = begins[firings[f, F_PANE]]
    return entries
