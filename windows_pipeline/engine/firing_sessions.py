"""The firings of sessions, which join as records come (rules D1, D2, E2)."""

from __future__ import annotations

import numba
import numpy as np

from windows_pipeline.engine.firing_life import (
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
    tell_until,
)
from windows_pipeline.engine.marks import mark, marks_before, place_of

# A pane's places: its records as a list of nodes, and how many of them firings show.
_HEAD, _TAIL, _SHOWN, _PANE_SIZE = range(4)
# A node's.
_RECORD, _NEXT, _NODE_SIZE = range(3)
_NONE = -1


@numba.njit(cache=True)
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
    count = pane_count = node_count = noted = 0
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
                firings, count = tell_until(lives[slot], last_rise, rises, policy, firings, count)
                mark(is_open, slot, -1)
                open_count -= 1
            begin(life, g, time, time + gap_ms, time + gap_ms + beyond, rises)
            slot = place[i]
            is_first = True
            before = marks_before(is_open, low + _up_to(sorted_ms[low:high], time + gap_ms))
            while before:
                other = place_of(is_open, before - 1)
                if lives[other, END] < time:
                    break
                firings, count = tell_until(
                    lives[other], entry[i] - 1, rises, policy, firings, count
                )
                while noted < count:
                    panes[firings[noted, F_PANE], _SHOWN] = firings[noted, F_SIZE]
                    noted += 1
                if lives[other, START] <= time and lives[other, END] >= time + gap_ms:
                    life[:] = lives[other]
                else:
                    nodes, node_count = _join(life, lives[other], panes, nodes, node_count)
                slot = min(slot, other)
                is_first = False
                mark(is_open, other, -1)
                before -= 1
                open_count -= 1
            if is_first and met >= life[PASS] + policy[LATENESS]:
                continue
            if life[PASS] != life[END] + beyond:
                life[PASS] = life[END] + beyond
                life[END_AT] = np.searchsorted(rises, life[PASS])
            nodes, node_count = _append(nodes, node_count, i)
            if life[PANE] == NO_PANE:
                life[PANE] = pane_count
                panes[pane_count, _HEAD] = node_count - 1
                pane_count += 1
            else:
                nodes[panes[life[PANE], _TAIL], _NEXT] = node_count - 1
            panes[life[PANE], _TAIL] = node_count - 1
            life[SIZE] += 1
            firings, count = arrive(
                life, i, time, clock, entry[i], is_first, rises, policy, firings, count
            )
            lives[slot] = life
            mark(is_open, slot, 1)
            open_count += 1
        for _ in range(open_count):
            slot = place_of(is_open, 0)
            firings, count = tell_until(lives[slot], last_rise, rises, policy, firings, count)
            mark(is_open, slot, -1)
    while noted < count:
        panes[firings[noted, F_PANE], _SHOWN] = firings[noted, F_SIZE]
        noted += 1
    return _laid_out(panes[:pane_count], nodes, firings[:count]), firings[:count]


@numba.njit(cache=True)
def _up_to(sorted_ms: np.ndarray, ms: int) -> int:
    """How many times are not after one."""
    return int(np.searchsorted(sorted_ms, ms, "right"))


@numba.njit(cache=True)
def _join(
    life: np.ndarray, other: np.ndarray, panes: np.ndarray, nodes: np.ndarray, node_count: int
) -> tuple[np.ndarray, int]:
    """Takes another session into a new one; returns the nodes and how many are in use."""
    life[START], life[END] = min(life[START], other[START]), max(life[END], other[END])
    life[COUNT] += other[COUNT]
    if other[HAS_TICK]:  # the least tick stays, and waits again (rule 16 of Flink's cases)
        life[TICK] = min(life[TICK], other[TICK]) if life[HAS_TICK] else other[TICK]
        life[HAS_TICK] = life[TICK_WAITS] = 1
    if other[PANE] == NO_PANE:
        return nodes, node_count
    if life[PANE] == NO_PANE:
        life[PANE], life[SIZE] = other[PANE], other[SIZE]
        return nodes, node_count
    more, fewer = life[PANE], other[PANE]
    if life[SIZE] < other[SIZE]:
        more, fewer = fewer, more
    if panes[fewer, _SHOWN] == 0:
        nodes[panes[more, _TAIL], _NEXT] = panes[fewer, _HEAD]
        panes[more, _TAIL] = panes[fewer, _TAIL]
    else:
        node, last = panes[fewer, _HEAD], panes[fewer, _TAIL]
        while True:
            nodes, node_count = _append(nodes, node_count, nodes[node, _RECORD])
            nodes[panes[more, _TAIL], _NEXT] = node_count - 1
            panes[more, _TAIL] = node_count - 1
            if node == last:
                break
            node = nodes[node, _NEXT]
    life[PANE] = more
    life[SIZE] += other[SIZE]
    return nodes, node_count


@numba.njit(cache=True)
def _append(nodes: np.ndarray, count: int, record: int) -> tuple[np.ndarray, int]:
    if count == len(nodes):
        longer = np.empty((2 * count, _NODE_SIZE), np.int64)
        longer[:count] = nodes
        nodes = longer
    nodes[count, _RECORD], nodes[count, _NEXT] = record, _NONE
    return nodes, count + 1


@numba.njit(cache=True)
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
