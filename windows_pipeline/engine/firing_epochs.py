"""The firings of windows that overlap, at a cost that does not grow with their length (rule E2).

Early firings by an interval come at the same rises for all windows of a group, so these cut time
into epochs. In one, windows pass first, then the others fire early: all of them, by their ends,
show one after the other what differs by few records (`firing_chain`). A window that has passed
fires for each record that still comes: that one is copied for it.
"""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np
from numba.typed import List

from windows_pipeline.engine.firing_chain import Chain, chain
from windows_pipeline.engine.firing_life import DISCARDS, INTERVAL, LATENESS, WITH_LATE
from windows_pipeline.engine.firing_lives import Came, Lives

# A pane's places: its chain; how many of the chain's records have left and entered by then; its
# window; and its firing (see `firing_life`).
(
    P_CHAIN,
    P_LEFT,
    P_ENTERED,
    P_WINDOW,
    P_ID,
    P_REASON,
    P_BY_RISE,
    P_AFTER,
    P_FINAL,
    PANE_SIZE,
) = range(10)
_EARLY, _ON_TIME, _LATE = 0, 1, 2

# What the panes of an epoch show: of all its windows what came so far, or, where panes discard, of
# those that fire first; and of the others what came since the epoch before.
_SO_FAR, _FIRST, _SINCE = 0, 1, 2


class Moments(NamedTuple):
    """When the windows of `Lives` do what they do.

    Attributes:
        closes: The clock that closes each.
        end_at: The rise that it passes with; how many there are, if it doesn't.
        is_late: Whether it has passed when it is made: then the record that makes it fires it.
        until: The first record that its firing on time does not show.
        first_epoch: The one at whose end it could fire early first.
        last_epoch: The one within which it passes; one more than there are, if it doesn't.
        ticks: The rises that end the epochs, all but the last.
        ticks_ms: The clock at these.
    """

    closes: np.ndarray
    end_at: np.ndarray
    is_late: np.ndarray
    until: np.ndarray
    first_epoch: np.ndarray
    last_epoch: np.ndarray
    ticks: np.ndarray
    ticks_ms: np.ndarray


def moments_of(lives: Lives, came: Came, policy: np.ndarray) -> Moments:
    """Looks up the times of windows among the rises of the clock."""
    passes, made_ms = lives.last_ms + 1, came.clock_ms[lives.maker]
    end_at = np.searchsorted(came.rises, passes)
    interval = int(policy[INTERVAL])
    ticks = np.empty(0, np.int64)
    first_epoch = np.zeros(len(passes), np.int64)
    if interval:
        ticks = np.flatnonzero(np.diff(came.rises // interval)) + 1
        first_epoch = np.searchsorted(came.rises[ticks], (made_ms // interval + 1) * interval)
    is_late = made_ms >= passes
    met_later = _first_met(lives.group, passes, came.starts, came.clock_ms)
    until = np.where(is_late, lives.maker + 1, met_later)
    last_epoch = np.searchsorted(ticks, end_at) + (end_at == len(came.rises))
    closes = passes + policy[LATENESS]
    ticks_ms = came.rises[ticks]
    return Moments(closes, end_at, is_late, until, first_epoch, last_epoch, ticks, ticks_ms)


@numba.njit(cache=True)
def _first_met(
    group: np.ndarray, clock: np.ndarray, starts: np.ndarray, clock_ms: np.ndarray
) -> np.ndarray:
    """The first record of a group that met a clock or a later one."""
    found = np.empty(len(group), np.int64)
    for w in range(len(group)):
        low, high = starts[group[w]], starts[group[w] + 1]
        found[w] = low + np.searchsorted(clock_ms[low:high], clock[w])
    return found


@numba.njit(cache=True)
def epoch_firings(
    lives: Lives, moments: Moments, came: Came, policy: np.ndarray, delay_ms: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Fires windows.

    Args:
        lives: The windows.
        moments: Their times.
        came: The records.
        policy: See `firing_life.policy_of`; no firings by records, and not Flink's ticks.
        delay_ms: How far the clock is behind stream time.

    Returns:
        The records of all chains, each chain's in the order in which they leave; their places
        there in the order in which they enter; where each chain begins; and the panes.
    """
    records, enter_order = List.empty_list(numba.int64[:]), List.empty_list(numba.int64[:])
    panes = List.empty_list(numba.int64[:, :])
    fired = np.zeros((2, len(lives.group)), np.int64)  # how often, and whether on time
    one = 0
    while one < len(lives.group):
        end = one + 1
        while end < len(lives.group) and lives.group[end] == lives.group[one]:
            end += 1
        _fire_epochs(one, end, lives, moments, came, policy, delay_ms, fired, records,
                     enter_order, panes)  # fmt: skip
        if policy[DISCARDS]:
            _fire_later_records(one, end, lives, moments, came, policy, fired, records,
                                enter_order, panes)  # fmt: skip
        one = end
    return _joined(records, enter_order, panes)


@numba.njit(cache=True)
def _fire_epochs(
    one: int,
    end: int,
    lives: Lives,
    moments: Moments,
    came: Came,
    policy: np.ndarray,
    delay_ms: int,
    fired: np.ndarray,
    records: List[np.ndarray],
    enter_order: List[np.ndarray],
    panes: List[np.ndarray],
) -> None:
    """Fires the windows of a group, from number `one` to before `end`."""
    discards, ticks, ticks_ms = policy[DISCARDS] != 0, moments.ticks, moments.ticks_ms
    kinds = range(_FIRST, _SINCE + 1) if discards else range(_SO_FAR, _FIRST)
    low, high = came.starts[lives.group[one]], came.starts[lives.group[one] + 1]
    by_epoch = epoch_at = np.empty(0, np.int64)
    if discards:
        in_reach = came.by_time[lives.low[one] : lives.high[end - 1]]
        by_epoch, epoch_at = _by_epoch(in_reach, came, ticks)
    of, until = np.empty(end - one, np.int64), np.empty(end - one, np.int64)
    lo, epoch = one, 0
    while lo < end and epoch <= len(ticks):
        is_last = epoch == len(ticks)
        last_ms, shown_until = lives.last_ms[end - 1], high
        if not is_last:
            last_ms = ticks_ms[epoch] + delay_ms
            if lives.start_ms[lo] > last_ms:  # no record of it is there by then
                epoch = np.searchsorted(ticks_ms, lives.start_ms[lo] - delay_ms)
                continue
            shown_until = low + np.searchsorted(came.entry[low:high], ticks[epoch] + 1)
        passing = lo
        while passing < end and moments.last_epoch[passing] == epoch:
            passing += 1
        others = lives.start_ms[passing : passing if is_last else end]
        beyond = passing + np.searchsorted(others, last_ms, side="right")
        for kind in kinds:
            waiting = _select(kind, epoch, lo, passing, moments, of, 0)
            count = _select(kind, epoch, passing, beyond, moments, of, waiting)
            if count == 0:
                continue
            until[:waiting], until[waiting:count] = moments.until[of[:waiting]], shown_until
            if kind == _SINCE:
                bounds = np.searchsorted(epoch_at, np.array([epoch, epoch + 1]))
                held = by_epoch[bounds[0] : bounds[1]]
            else:
                held = came.by_time[lives.low[of[0]] : lives.high[of[count - 1]]]
                held = held[: np.searchsorted(came.time_ms[held], last_ms, side="right")]
            found = chain(
                of[:count], until[:count], waiting, not discards and policy[WITH_LATE] != 0,
                held, lives.start_ms, lives.last_ms, moments.closes, came.time_ms, came.clock_ms,
            )  # fmt: skip
            rows = _panes(of[:count], waiting, epoch, found, moments, came.rises, fired)
            if len(rows):
                records.append(found.records)
                enter_order.append(found.enter_order)
                panes.append(rows)
        lo = passing
        epoch += 1


@numba.njit(cache=True)
def _by_epoch(in_reach: np.ndarray, came: Came, ticks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Records by epoch, then as they were; and the epochs."""
    epochs = np.searchsorted(ticks, came.entry[in_reach])
    order = np.argsort(epochs, kind="mergesort")
    return in_reach[order], epochs[order]


@numba.njit(cache=True)
def _select(
    kind: int, epoch: int, low: int, high: int, moments: Moments, of: np.ndarray, count: int
) -> int:
    """Puts those of some windows that fire in an epoch behind the first ones in `of`."""
    for w in range(low, high):
        first = moments.first_epoch[w]
        passes = moments.last_epoch[w] == epoch
        is_first = first >= epoch if passes else first == epoch
        if (passes or first <= epoch) and (kind == _SO_FAR or is_first == (kind == _FIRST)):
            of[count] = w
            count += 1
    return count


@numba.njit(cache=True)
def _panes(
    of: np.ndarray,
    waiting: int,
    epoch: int,
    found: Chain,
    moments: Moments,
    rises: np.ndarray,
    fired: np.ndarray,
) -> np.ndarray:
    """What the windows of a chain show: those that pass, and the late records; then the others."""
    panes = np.zeros((len(of) + int(found.later.sum()), PANE_SIZE), np.int64)
    count = 0
    for k in range(len(of)):
        w, left, entered = of[k], found.left[k], found.entered[k]
        if entered > left:
            pane = panes[count]
            pane[P_BY_RISE] = 1
            if k < waiting:
                pane[P_REASON] = _ON_TIME
                pane[P_AFTER] = moments.end_at[w]
                pane[P_FINAL] = rises[moments.end_at[w]] >= moments.closes[w]
                if moments.is_late[w]:
                    pane[P_BY_RISE] = pane[P_FINAL] = 0
                    pane[P_AFTER] = moments.until[w] - 1
                fired[_ON_TIME, w] = 1
            else:
                pane[P_AFTER] = moments.ticks[epoch]
            count = _shown(panes, count, w, left, entered, fired)
        for j in range(found.later[k]):
            panes[count, P_REASON] = _LATE
            panes[count, P_AFTER] = found.records[found.enter_order[entered + j]]
            count = _shown(panes, count, w, left, entered + j + 1, fired)
    return panes[:count]


@numba.njit(cache=True)
def _shown(
    panes: np.ndarray, count: int, window: int, left: int, entered: int, fired: np.ndarray
) -> int:
    """Completes a pane; returns how many there are then."""
    pane = panes[count]
    pane[P_WINDOW], pane[P_LEFT], pane[P_ENTERED] = window, left, entered
    pane[P_ID] = fired[0, window]
    fired[0, window] += 1
    return count + 1


@numba.njit(cache=True)
def _fire_later_records(
    one: int,
    end: int,
    lives: Lives,
    moments: Moments,
    came: Came,
    policy: np.ndarray,
    fired: np.ndarray,
    records: List[np.ndarray],
    enter_order: List[np.ndarray],
    panes: List[np.ndarray],
) -> None:
    """Fires, where panes discard, each record that comes after its window has passed, alone."""
    of, count = np.empty(end - one, np.int64), 0
    for w in range(one, end):
        passes = moments.last_epoch[w] <= len(moments.ticks)
        if passes and (policy[WITH_LATE] or not fired[_ON_TIME, w]):
            of[count] = w
            count += 1
    if count == 0:
        return
    of = of[:count]
    found = chain(
        of, moments.until[of], count, True, came.by_time[lives.low[of[0]] : lives.high[of[-1]]],
        lives.start_ms, lives.last_ms, moments.closes, came.time_ms, came.clock_ms,
    )  # fmt: skip
    alone = np.empty(int(found.later.sum()), np.int64)
    rows = np.zeros((len(alone), PANE_SIZE), np.int64)
    place = 0
    for k in range(count):
        for j in range(found.later[k]):
            w = of[k]
            if fired[_ON_TIME, w] and not policy[WITH_LATE]:
                break
            alone[place] = found.records[found.enter_order[found.entered[k] + j]]
            rows[place, P_REASON] = _LATE if fired[_ON_TIME, w] else _ON_TIME
            rows[place, P_AFTER] = alone[place]
            fired[_ON_TIME, w] = 1
            place = _shown(rows, place, w, place, place + 1, fired)
    if place:
        records.append(alone[:place])
        enter_order.append(np.arange(place))
        panes.append(rows[:place])


@numba.njit(cache=True)
def _joined(
    records: List[np.ndarray], enter_order: List[np.ndarray], panes: List[np.ndarray]
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """The chains in one row; see `epoch_firings`."""
    begins = np.zeros(len(records) + 1, np.int64)
    shown = np.zeros(len(records) + 1, np.int64)
    for c in range(len(records)):
        begins[c + 1] = begins[c] + len(records[c])
        shown[c + 1] = shown[c] + len(panes[c])
    all_records, all_entering = np.empty(begins[-1], np.int64), np.empty(begins[-1], np.int64)
    all_panes = np.empty((shown[-1], PANE_SIZE), np.int64)
    for c in range(len(records)):
        low, high = begins[c], begins[c + 1]
        all_records[low:high] = records[c]
        all_entering[low:high] = enter_order[c] + low
        rows = all_panes[shown[c] : shown[c + 1]]
        rows[:] = panes[c]
        rows[:, P_CHAIN] = c
        rows[:, P_LEFT] += low
        rows[:, P_ENTERED] += low
    return all_records, all_entering, begins, all_panes
