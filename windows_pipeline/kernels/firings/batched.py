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

from windows_pipeline.compat.numba_jit import compiled
from windows_pipeline.kernels.firings.shared_panes import (
    COPIED,
    COPIED_UP_TO,
    Chain,
    chain,
    stays_of,
)
from windows_pipeline.kernels.firings.window_state import (
    DISCARDS,
    INTERVAL,
    LATENESS,
    WITH_LATE,
    ticks_of,
)
from windows_pipeline.kernels.firings.windows import Came, Lives, New

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
_ON_TIME, _LATE = 1, 2

# Windows apart by what they show when they pass, so that in each lot it is more from one to the
# next: those that pass after they were made; the rest, by whether their last record made them.
_IN_TIME, _BY_LAST, _BY_OTHER = range(3)
# Where panes discard, all of these show what came so far in their first epoch only; then the first
# lot shows what came since the epoch before.
_SINCE = 3


class Moments(NamedTuple):
    """When the windows of `Lives` do what they do.

    Attributes:
        closes: The clock that closes each.
        end_at: The rise that it passes with; how many there are, if it doesn't.
        lot: Which of the lots it is in. One that passed before it was made is fired by its maker.
        until: The first record that its firing on time does not show.
        told: How many of its firings are not wanted before all others.
        begins: The first epoch in which it fires after these.
        passes_in: The one within which it passes; one more than there are, if it doesn't.
        ticks: The rises that end the epochs, all but the last.
    """

    closes: np.ndarray
    end_at: np.ndarray
    lot: np.ndarray
    until: np.ndarray
    told: np.ndarray
    begins: np.ndarray
    passes_in: np.ndarray
    ticks: np.ndarray

    @property
    def epochs(self) -> np.ndarray:
        """In how many epochs each window can fire."""
        last: np.ndarray = np.minimum(self.passes_in, len(self.ticks))
        several: np.ndarray = np.maximum(1 + last - self.begins, 1)
        return several

    def only(self, kept: slice) -> Moments:
        """Those of some windows."""
        of_windows = self._asdict()
        ticks = of_windows.pop("ticks")
        return Moments(**{name: field[kept] for name, field in of_windows.items()}, ticks=ticks)


def moments_of(lives: Lives, came: Came, policy: np.ndarray, new: New | None) -> Moments:
    """Looks up the times of windows among the rises of the clock.

    Args:
        lives: The windows.
        came: The records.
        policy: See `firing_life.policy_of`.
        new: What is wanted; everything without.
    """
    ticks = ticks_of(came.rises, policy)
    passes, made_ms = lives.last_ms + 1, came.clock_ms[lives.maker]
    end_at = np.searchsorted(came.rises, passes)
    is_late = made_ms >= passes
    by_last = came.time_ms[lives.maker] == lives.last_ms
    lot = np.where(is_late, np.where(by_last, _BY_LAST, _BY_OTHER), _IN_TIME)
    met_later = _first_met(lives.group, passes, came.starts, came.clock_ms)
    until = np.where(is_late, lives.maker + 1, met_later)
    passes_in = np.searchsorted(ticks, end_at) + (end_at == len(came.rises))
    begins = passes_in
    if len(ticks):
        interval = int(policy[INTERVAL])
        next_tick_ms = (made_ms // interval + 1) * interval
        begins = np.minimum(np.searchsorted(came.rises[ticks], next_tick_ms), passes_in)
    closes, told = passes + policy[LATENESS], np.zeros(len(begins), np.int64)
    if new is not None and not new.with_earlier and not policy[DISCARDS]:
        # At each tick before it passes, an accumulating pane shows something.
        first_new = np.append(np.flatnonzero(new.rises[ticks]), len(ticks))[0]
        told = np.maximum(np.minimum(first_new, passes_in) - begins, 0)
        begins = begins + told
    return Moments(closes, end_at, lot, until, told, begins, passes_in, ticks)


@compiled
def _first_met(
    group: np.ndarray, clock: np.ndarray, starts: np.ndarray, clock_ms: np.ndarray
) -> np.ndarray:
    """The first record of a group that met a clock or a later one."""
    found = np.empty(len(group), np.int64)
    for w in range(len(group)):
        low, high = starts[group[w]], starts[group[w] + 1]
        found[w] = low + np.searchsorted(clock_ms[low:high], clock[w])
    return found


@compiled
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
    fired[0] = moments.told
    one = 0
    while one < len(lives.group):
        end = _end_of_group(lives.group, one)
        _fire_epochs(one, end, lives, moments, came, policy, delay_ms, fired, records,
                     enter_order, panes)  # fmt: skip
        if policy[DISCARDS]:
            _fire_later_records(one, end, lives, moments, came, policy, fired, records,
                                enter_order, panes)  # fmt: skip
        one = end
    return _joined(records, enter_order, panes)


@compiled
def _end_of_group(group: np.ndarray, one: int) -> int:
    """The first window that is not of this one's group."""
    end = one + 1
    while end < len(group) and group[end] == group[one]:
        end += 1
    return end


@compiled
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
    ticks = moments.ticks
    low, high = came.starts[lives.group[one]], came.starts[lives.group[one] + 1]
    apart = len(ticks) > 0 and policy[DISCARDS] != 0
    with_late = policy[WITH_LATE] != 0 and policy[DISCARDS] == 0
    in_reach = came.by_time[lives.low[one] : lives.high[end - 1]]
    by_epoch, epoch_at = _by_epoch(in_reach, came, ticks) if apart else (in_reach, in_reach)
    of, until = np.empty(end - one, np.int64), np.empty(end - one, np.int64)
    # The first epoch in which this window, or one that ends later, fires.
    next_epoch = moments.begins[one:end].copy()
    for k in range(len(next_epoch) - 2, -1, -1):
        next_epoch[k] = min(next_epoch[k], next_epoch[k + 1])
    lo, epoch = one, 0
    while lo < end:
        epoch = max(epoch, next_epoch[lo - one])
        if epoch > len(ticks):
            break
        is_last = epoch == len(ticks)
        last_ms, shown_until = lives.last_ms[end - 1], high
        if not is_last:
            last_ms = came.rises[ticks[epoch]] + delay_ms
            shown_until = low + np.searchsorted(came.entry[low:high], ticks[epoch] + 1)
        passing = lo
        while passing < end and moments.passes_in[passing] == epoch:
            passing += 1
        others = lives.start_ms[passing : passing if is_last else end]
        beyond = passing + np.searchsorted(others, last_ms, side="right")
        for lot in range(_SINCE + apart):
            waiting = _select(lot, apart, epoch, lo, passing, moments, of, 0)
            until[:waiting] = moments.until[of[:waiting]]
            count = _select(lot, apart, epoch, passing, beyond, moments, of, waiting)
            until[waiting:count] = shown_until
            if count == 0:
                continue
            if lot == _SINCE:
                bounds = np.searchsorted(epoch_at, np.array([epoch, epoch + 1]))
                held = by_epoch[bounds[0] : bounds[1]]
            else:
                held = came.by_time[lives.low[of[0]] : lives.high[of[count - 1]]]
                held = held[: np.searchsorted(came.time_ms[held], last_ms, side="right")]
            found = chain(
                of[:count], until[:count], waiting, with_late, held,
                lives.start_ms, lives.last_ms, moments.closes, came.time_ms, came.clock_ms,
            )  # fmt: skip
            rows = _panes(of[:count], waiting, epoch, found, moments, came.rises, fired)
            if len(rows):
                records.append(found.records)
                enter_order.append(found.enter_order)
                panes.append(rows)
        lo = passing
        epoch += 1


@compiled
def _by_epoch(in_reach: np.ndarray, came: Came, ticks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Records by epoch, then as they were; and the epochs."""
    epochs = np.searchsorted(ticks, came.entry[in_reach])
    order = np.argsort(epochs, kind="mergesort")
    return in_reach[order], epochs[order]


@compiled
def _select(
    lot: int,
    apart: bool,  # noqa: FBT001  compiled code takes its arguments by place
    epoch: int,
    low: int,
    high: int,
    moments: Moments,
    of: np.ndarray,
    count: int,
) -> int:
    """Puts those of a lot's windows that fire in an epoch behind the first ones in `of`.

    Args:
        lot: The lot.
        apart: Whether a window's first epoch is told apart from the others.
        epoch: The epoch.
        low: The first window to look at.
        high: The one before which to stop.
        moments: When windows do what they do.
        of: Where to put them.
        count: How many are there.

    Returns:
        How many are there then.
    """
    own = _IN_TIME if lot == _SINCE else lot
    for w in range(low, high):
        begins = moments.begins[w]
        fires = begins <= epoch and (not apart or (begins < epoch) == (lot == _SINCE))
        if fires and moments.lot[w] == own:
            of[count] = w
            count += 1
    return count


@compiled
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
                if moments.lot[w] != _IN_TIME:
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


@compiled
def _shown(
    panes: np.ndarray, count: int, window: int, left: int, entered: int, fired: np.ndarray
) -> int:
    """Completes a pane; returns how many there are then."""
    pane = panes[count]
    pane[P_WINDOW], pane[P_LEFT], pane[P_ENTERED] = window, left, entered
    pane[P_ID] = fired[0, window]
    fired[0, window] += 1
    return count + 1


@compiled
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
        passes = moments.passes_in[w] <= len(moments.ticks)
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


@compiled
def late_firings(lives: Lives, moments: Moments, came: Came) -> np.ndarray:
    """How many records come after each window has passed and before it closes, at the most."""
    many = np.zeros(len(lives.group) + 1, np.int64)
    one = 0
    while one < len(lives.group):
        end = _end_of_group(lives.group, one)
        of = np.arange(one, end)
        held = came.by_time[lives.low[one] : lives.high[end - 1]]
        stays = stays_of(of, moments.until[one:end], end - one, held, lives.start_ms,
                         lives.last_ms, moments.closes, came.time_ms, came.clock_ms)  # fmt: skip
        for p in range(len(held)):
            if stays[COPIED, p] < stays[COPIED_UP_TO, p]:
                many[one + stays[COPIED, p]] += 1
                many[one + stays[COPIED_UP_TO, p]] -= 1
        one = end
    return np.cumsum(many)[:-1]


@compiled
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
