"""The firings of sessions, which join as records come (rules D1, D2, E2)."""

from __future__ import annotations

import numpy as np

from windows_pipeline.compat.numba_jit import compiled
from windows_pipeline.kernels.fenwick import mark, marks_before, place_of
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
    LIFE_SIZE,
    NO_PANE,
    PANE,
    PASS,
    SIZE,
    START,
    TICK,
    TICK_WAITS,
    arrive,
    begin,
    rise_at,
    tell_until,
)

# A pane's places: its records as a list of nodes, and how many of them firings show.
_HEAD, _TAIL, _SHOWN, _PANE_SIZE = range(4)
# A node's.
_RECORD, _NEXT, _NODE_SIZE = range(3)
_NONE = -1


@compiled
def session_firings(
    starts: np.ndarray,
    by_time: np.ndarray,
    time_ms: np.ndarray,
    clock_ms: np.ndarray,
    entry: np.ndarray,
    rises: np.ndarray,
    policy: np.ndarray,
    gap_ms: int,
) -> tuple[np.ndarray, np.ndarray]:
    """Fires the sessions of each group; see `firing_sweep.time_firings`.

    A firing's end is the session's last record and the gap. Where two sessions that have fired
    are joined, the records of the smaller are copied: so a record is copied a number of times
    that grows with the logarithm of its session, at most.
    """
    n = len(time_ms)
    # The contract's sessions hold their end, Flink's don't.
    beyond = 0 if policy[AS_IN_FLINK] else 1
    place = np.empty(n, np.int64)
    place[by_time] = np.arange(n)
    sorted_ms = time_ms[by_time]
    # An open session is marked, and kept, at the place of its first record.
    is_open = np.zeros(n + 1, np.int64)
    lives = np.empty((n, LIFE_SIZE), np.int64)
    life = np.empty(LIFE_SIZE, np.int64)
    firings = np.empty((1024, FIRING_SIZE), np.int64)
    panes = np.zeros((n, _PANE_SIZE), np.int64)
    nodes = np.empty((n, _NODE_SIZE), np.int64)
    used = np.zeros(2, np.int64)  # how many firings, how many nodes
    pane_count = noted = 0
    last_rise = len(rises) - 1
    for g in range(len(starts) - 1):
        low, high = starts[g], starts[g + 1]
        open_count = 0
        for i in range(low, high):
            time, clock = time_ms[i], clock_ms[i]
            # A record that raises stream time joins what that closes.
            met = rises[entry[i] - 1] if entry[i] else clock
            while open_count:
                slot = place_of(is_open, 0)
                if met < lives[slot, PASS] + policy[LATENESS]:
                    break
                firings = tell_until(lives[slot], last_rise, rises, policy, firings, used)
                mark(is_open, slot, -1)
                open_count -= 1
            begin(life, g, time, time + gap_ms, time + gap_ms + beyond, rises)
            slot = place[i]
            is_first = True
            before = marks_before(is_open, low + rise_at(sorted_ms[low:high], time + gap_ms + 1))
            while before:
                other = place_of(is_open, before - 1)
                if lives[other, END] < time:
                    break
                firings = tell_until(lives[other], entry[i] - 1, rises, policy, firings, used)
                while noted < used[0]:
                    panes[firings[noted, F_PANE], _SHOWN] = firings[noted, F_SIZE]
                    noted += 1
                if lives[other, START] <= time and lives[other, END] >= time + gap_ms:
                    life[:] = lives[other]
                else:
                    nodes = _join(life, lives[other], panes, nodes, used)
                slot = min(slot, other)
                is_first = False
                mark(is_open, other, -1)
                before -= 1
                open_count -= 1
            if is_first and met >= life[PASS] + policy[LATENESS]:
                continue
            if life[PASS] != life[END] + beyond:
                life[PASS] = life[END] + beyond
                life[END_AT] = rise_at(rises, life[PASS])
            nodes = _append(nodes, i, used)
            if life[PANE] == NO_PANE:
                life[PANE] = pane_count
                panes[pane_count, _HEAD] = used[1] - 1
                pane_count += 1
            else:
                nodes[panes[life[PANE], _TAIL], _NEXT] = used[1] - 1
            panes[life[PANE], _TAIL] = used[1] - 1
            life[SIZE] += 1
            firings = arrive(life, i, time, clock, entry[i], is_first, rises, policy, firings, used)
            lives[slot] = life
            mark(is_open, slot, 1)
            open_count += 1
        for _ in range(open_count):
            slot = place_of(is_open, 0)
            firings = tell_until(lives[slot], last_rise, rises, policy, firings, used)
            mark(is_open, slot, -1)
    while noted < used[0]:
        panes[firings[noted, F_PANE], _SHOWN] = firings[noted, F_SIZE]
        noted += 1
    return _laid_out(panes[:pane_count], nodes, firings[: used[0]]), firings[: used[0]]


@compiled
def _join(
    life: np.ndarray, other: np.ndarray, panes: np.ndarray, nodes: np.ndarray, used: np.ndarray
) -> np.ndarray:
    """Takes another session into a new one; returns the nodes."""
    life[START], life[END] = min(life[START], other[START]), max(life[END], other[END])
    life[COUNT] += other[COUNT]
    if other[HAS_TICK]:  # the least tick stays, and waits again (rule 16 of Flink's cases)
        life[TICK] = min(life[TICK], other[TICK]) if life[HAS_TICK] else other[TICK]
        life[HAS_TICK] = life[TICK_WAITS] = 1
    if other[PANE] == NO_PANE:
        return nodes
    if life[PANE] == NO_PANE:
        life[PANE], life[SIZE] = other[PANE], other[SIZE]
        return nodes
    more, fewer = life[PANE], other[PANE]
    if life[SIZE] < other[SIZE]:
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
    life[PANE] = more
    life[SIZE] += other[SIZE]
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
    """The shown records of each pane side by side; firings then tell where theirs begin."""
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
