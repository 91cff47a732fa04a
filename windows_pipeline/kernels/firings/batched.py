"""Fires overlapping windows at a cost that does not grow with their length (rule E2).

Early firings by an interval come at the same watermark advances (ticks) for all windows of a group,
so ticks cut time into tick intervals. In a tick interval, windows whose end passes fire first, and
then, at the tick, all other windows fire early. Their panes, in the order of their ends, differ by
few records from one to the next (see `shared_panes`). A window whose end has passed fires for each
record that still comes: that record is copied for it.
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
from windows_pipeline.kernels.firings.windows import ClockedRecords, MadeWindows, NewInput

# The fields of a pane: its chain; how many of the chain's records have left and entered by it; its
# window; and its firing (see `window_state`).
(
    P_CHAIN,
    P_LEFT,
    P_ENTERED,
    P_WINDOW,
    P_ID,
    P_REASON,
    P_BY_ADVANCE,
    P_AFTER,
    P_FINAL,
    PANE_SIZE,
) = range(10)
_ON_TIME, _LATE = 1, 2

# Kinds of windows by what their ON_TIME pane shows, so that within a kind panes only grow from one
# window to the next: windows whose end passes after they were made; and windows made after their
# end had passed, by whether their last record or another one made them.
_IN_TIME, _BY_LAST, _BY_OTHER = range(3)
# Where panes discard, a window's pane in its first tick interval shows all records so far. In later
# tick intervals, windows of the first kind show the records since the tick before.
_SINCE = 3


class Moments(NamedTuple):
    """When each window of `MadeWindows` passes, fires and closes.

    Attributes:
        closes: The clock that closes the window.
        end_at: The advance by which its end passes; the number of advances, if it does not.
        kind: Its kind. The maker of a window whose end had passed before fires it at once.
        until: The first record that its ON_TIME firing does not show.
        skipped: How many of its first firings are not asked for.
        begins: The first tick interval in which it fires after these.
        passes_in: The tick interval in which its end passes; one beyond the last, if it does not.
        ticks: The advances that end the tick intervals, except the last interval.
    """

    closes: np.ndarray
    end_at: np.ndarray
    kind: np.ndarray
    until: np.ndarray
    skipped: np.ndarray
    begins: np.ndarray
    passes_in: np.ndarray
    ticks: np.ndarray

    @property
    def tick_intervals(self) -> np.ndarray:
        """In how many tick intervals each window can fire."""
        last: np.ndarray = np.minimum(self.passes_in, len(self.ticks))
        several: np.ndarray = np.maximum(1 + last - self.begins, 1)
        return several

    def only(self, chosen: slice) -> Moments:
        """The moments of some windows."""
        of_windows = self._asdict()
        ticks = of_windows.pop("ticks")
        return Moments(**{name: field[chosen] for name, field in of_windows.items()}, ticks=ticks)


def moments_of(
    windows: MadeWindows, clocked: ClockedRecords, policy: np.ndarray, new: NewInput | None
) -> Moments:
    """Looks up the times of windows among the advances of the clock.

    Args:
        windows: The windows.
        clocked: The records.
        policy: See `window_state.policy_of`.
        new: The input after which firings are asked for; None for all firings.
    """
    ticks = ticks_of(clocked.advances, policy)
    passes, made_ms = windows.last_ms + 1, clocked.clock_ms[windows.maker]
    end_at = np.searchsorted(clocked.advances, passes)
    is_late = made_ms >= passes
    by_last = clocked.time_ms[windows.maker] == windows.last_ms
    kind = np.where(is_late, np.where(by_last, _BY_LAST, _BY_OTHER), _IN_TIME)
    met_later = _first_met(windows.group, passes, clocked.starts, clocked.clock_ms)
    until = np.where(is_late, windows.maker + 1, met_later)
    passes_in = np.searchsorted(ticks, end_at) + (end_at == len(clocked.advances))
    begins = passes_in
    if len(ticks):
        interval_ms = int(policy[INTERVAL])
        next_tick_ms = (made_ms // interval_ms + 1) * interval_ms
        begins = np.minimum(np.searchsorted(clocked.advances[ticks], next_tick_ms), passes_in)
    closes, skipped = passes + policy[LATENESS], np.zeros(len(begins), np.int64)
    if new is not None and not new.with_earlier and not policy[DISCARDS]:
        # An accumulating pane is never empty, so it fires at each tick before the end.
        first_new = np.append(np.flatnonzero(new.advances[ticks]), len(ticks))[0]
        skipped = np.maximum(np.minimum(first_new, passes_in) - begins, 0)
        begins = begins + skipped
    return Moments(closes, end_at, kind, until, skipped, begins, passes_in, ticks)


@compiled
def _first_met(
    group: np.ndarray, clock: np.ndarray, starts: np.ndarray, clock_ms: np.ndarray
) -> np.ndarray:
    """By window, the first record of its group that met the window's clock or a later one."""
    found = np.empty(len(group), np.int64)
    for w in range(len(group)):
        low, high = starts[group[w]], starts[group[w] + 1]
        found[w] = low + np.searchsorted(clock_ms[low:high], clock[w])
    return found


@compiled
def batched_firings(
    windows: MadeWindows,
    moments: Moments,
    clocked: ClockedRecords,
    policy: np.ndarray,
    delay_ms: int,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Fires windows.

    Args:
        windows: The windows.
        moments: Their times.
        clocked: The records.
        policy: See `window_state.policy_of`; without firings by records and Flink's ticks.
        delay_ms: How far the clock is behind stream time.

    Returns:
        The records of all chains, those of a chain in the order in which they leave; their indexes
        in the order in which they enter; where each chain begins; and the panes.
    """
    records, enter_order = List.empty_list(numba.int64[:]), List.empty_list(numba.int64[:])
    panes = List.empty_list(numba.int64[:, :])
    fired = np.zeros((2, len(windows.group)), np.int64)  # how often, and whether on time
    fired[0] = moments.skipped
    first = 0
    while first < len(windows.group):
        end = _end_of_group(windows.group, first)
        _fire_tick_intervals(first, end, windows, moments, clocked, policy, delay_ms, fired,
                             records, enter_order, panes)  # fmt: skip
        if policy[DISCARDS]:
            _fire_later_records(first, end, windows, moments, clocked, policy, fired, records,
                                enter_order, panes)  # fmt: skip
        first = end
    return _joined(records, enter_order, panes)


@compiled
def _end_of_group(group: np.ndarray, first: int) -> int:
    """The index after the last window of the group of window `first`."""
    end = first + 1
    while end < len(group) and group[end] == group[first]:
        end += 1
    return end


@compiled
def _fire_tick_intervals(
    first: int,
    end: int,
    windows: MadeWindows,
    moments: Moments,
    clocked: ClockedRecords,
    policy: np.ndarray,
    delay_ms: int,
    fired: np.ndarray,
    records: List[np.ndarray],
    enter_order: List[np.ndarray],
    panes: List[np.ndarray],
) -> None:
    """Fires the windows [first, end) of a group, tick interval by tick interval."""
    ticks = moments.ticks
    low, high = clocked.starts[windows.group[first]], clocked.starts[windows.group[first] + 1]
    is_first_apart = len(ticks) > 0 and policy[DISCARDS] != 0
    with_late = policy[WITH_LATE] != 0 and policy[DISCARDS] == 0
    within = clocked.by_time[windows.low[first] : windows.high[end - 1]]
    by_interval, interval_at = (
        _by_tick_interval(within, clocked, ticks) if is_first_apart else (within, within)
    )
    selected, until = np.empty(end - first, np.int64), np.empty(end - first, np.int64)
    # The first tick interval in which this window, or one that ends later, fires.
    next_interval = moments.begins[first:end].copy()
    for k in range(len(next_interval) - 2, -1, -1):
        next_interval[k] = min(next_interval[k], next_interval[k + 1])
    lo, interval = first, 0
    while lo < end:
        interval = max(interval, next_interval[lo - first])
        if interval > len(ticks):
            break
        is_last = interval == len(ticks)
        last_ms, shown_until = windows.last_ms[end - 1], high
        if not is_last:
            last_ms = clocked.advances[ticks[interval]] + delay_ms
            shown_until = low + np.searchsorted(clocked.entry[low:high], ticks[interval] + 1)
        passing = lo
        while passing < end and moments.passes_in[passing] == interval:
            passing += 1
        others = windows.start_ms[passing : passing if is_last else end]
        beyond = passing + np.searchsorted(others, last_ms, side="right")
        for kind in range(_SINCE + is_first_apart):
            waiting = _select(
                kind, is_first_apart, interval, lo, passing, moments, selected, 0
            )  # fmt: skip
            until[:waiting] = moments.until[selected[:waiting]]
            count = _select(
                kind, is_first_apart, interval, passing, beyond, moments, selected, waiting
            )
            until[waiting:count] = shown_until
            if count == 0:
                continue
            if kind == _SINCE:
                bounds = np.searchsorted(interval_at, np.array([interval, interval + 1]))
                shown = by_interval[bounds[0] : bounds[1]]
            else:
                shown = clocked.by_time[
                    windows.low[selected[0]] : windows.high[selected[count - 1]]
                ]
                shown = shown[: np.searchsorted(clocked.time_ms[shown], last_ms, side="right")]
            found = chain(
                selected[:count], until[:count], waiting, with_late, shown,
                windows.start_ms, windows.last_ms, moments.closes,
                clocked.time_ms, clocked.clock_ms,
            )  # fmt: skip
            rows = _panes(
                selected[:count], waiting, interval, found, moments, clocked.advances, fired
            )
            if len(rows):
                records.append(found.records)
                enter_order.append(found.enter_order)
                panes.append(rows)
        lo = passing
        interval += 1


@compiled
def _by_tick_interval(
    records: np.ndarray, clocked: ClockedRecords, ticks: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Records sorted by tick interval, otherwise in the same order; and their tick intervals."""
    intervals = np.searchsorted(ticks, clocked.entry[records])
    order = np.argsort(intervals, kind="mergesort")
    return records[order], intervals[order]


@compiled
def _select(
    kind: int,
    is_first_apart: bool,  # noqa: FBT001  compiled code takes its arguments by position
    interval: int,
    low: int,
    high: int,
    moments: Moments,
    selected: np.ndarray,
    count: int,
) -> int:
    """Appends the windows of a kind that fire in a tick interval to `selected[:count]`.

    Args:
        kind: The kind.
        is_first_apart: Whether a window's first tick interval differs from the later ones.
        interval: The tick interval.
        low: The first window to look at.
        high: The window before which to stop.
        moments: The times of the windows.
        selected: Where to put them.
        count: How many windows are selected already.

    Returns:
        How many windows are selected then.
    """
    kind_of_windows = _IN_TIME if kind == _SINCE else kind
    for w in range(low, high):
        begins = moments.begins[w]
        fires = begins <= interval and (
            not is_first_apart or (begins < interval) == (kind == _SINCE)
        )
        if fires and moments.kind[w] == kind_of_windows:
            selected[count] = w
            count += 1
    return count


@compiled
def _panes(
    selected: np.ndarray,
    waiting: int,
    interval: int,
    found: Chain,
    moments: Moments,
    advances: np.ndarray,
    fired: np.ndarray,
) -> np.ndarray:
    """The panes of a chain: first windows that pass, with their late records, then the others."""
    panes = np.zeros((len(selected) + int(found.late.sum()), PANE_SIZE), np.int64)
    count = 0
    for k in range(len(selected)):
        w, left, entered = selected[k], found.left[k], found.entered[k]
        if entered > left:
            pane = panes[count]
            pane[P_BY_ADVANCE] = 1
            if k < waiting:
                pane[P_REASON] = _ON_TIME
                pane[P_AFTER] = moments.end_at[w]
                pane[P_FINAL] = advances[moments.end_at[w]] >= moments.closes[w]
                if moments.kind[w] != _IN_TIME:
                    pane[P_BY_ADVANCE] = pane[P_FINAL] = 0
                    pane[P_AFTER] = moments.until[w] - 1
                fired[_ON_TIME, w] = 1
            else:
                pane[P_AFTER] = moments.ticks[interval]
            count = _complete(panes, count, w, left, entered, fired)
        for j in range(found.late[k]):
            panes[count, P_REASON] = _LATE
            panes[count, P_AFTER] = found.records[found.enter_order[entered + j]]
            count = _complete(panes, count, w, left, entered + j + 1, fired)
    return panes[:count]


@compiled
def _complete(
    panes: np.ndarray, count: int, window: int, left: int, entered: int, fired: np.ndarray
) -> int:
    """Completes the last pane; returns how many panes there are then."""
    pane = panes[count]
    pane[P_WINDOW], pane[P_LEFT], pane[P_ENTERED] = window, left, entered
    pane[P_ID] = fired[0, window]
    fired[0, window] += 1
    return count + 1


@compiled
def _fire_later_records(
    first: int,
    end: int,
    windows: MadeWindows,
    moments: Moments,
    clocked: ClockedRecords,
    policy: np.ndarray,
    fired: np.ndarray,
    records: List[np.ndarray],
    enter_order: List[np.ndarray],
    panes: List[np.ndarray],
) -> None:
    """Fires each record that comes after its window has passed alone, if panes discard."""
    selected, count = np.empty(end - first, np.int64), 0
    for w in range(first, end):
        passes = moments.passes_in[w] <= len(moments.ticks)
        if passes and (policy[WITH_LATE] or not fired[_ON_TIME, w]):
            selected[count] = w
            count += 1
    if count == 0:
        return
    selected = selected[:count]
    within = clocked.by_time[windows.low[selected[0]] : windows.high[selected[-1]]]
    found = chain(
        selected, moments.until[selected], count, True, within,
        windows.start_ms, windows.last_ms, moments.closes, clocked.time_ms, clocked.clock_ms,
    )  # fmt: skip
    alone = np.empty(int(found.late.sum()), np.int64)
    rows = np.zeros((len(alone), PANE_SIZE), np.int64)
    row = 0
    for k in range(count):
        for j in range(found.late[k]):
            w = selected[k]
            if fired[_ON_TIME, w] and not policy[WITH_LATE]:
                break
            alone[row] = found.records[found.enter_order[found.entered[k] + j]]
            rows[row, P_REASON] = _LATE if fired[_ON_TIME, w] else _ON_TIME
            rows[row, P_AFTER] = alone[row]
            fired[_ON_TIME, w] = 1
            row = _complete(rows, row, w, row, row + 1, fired)
    if row:
        records.append(alone[:row])
        enter_order.append(np.arange(row))
        panes.append(rows[:row])


@compiled
def late_firings(windows: MadeWindows, moments: Moments, clocked: ClockedRecords) -> np.ndarray:
    """By window, the most records that can come after it has passed and before it closes."""
    changes = np.zeros(len(windows.group) + 1, np.int64)
    first = 0
    while first < len(windows.group):
        end = _end_of_group(windows.group, first)
        selected = np.arange(first, end)
        within = clocked.by_time[windows.low[first] : windows.high[end - 1]]
        stays = stays_of(
            selected, moments.until[first:end], end - first, within, windows.start_ms,
            windows.last_ms, moments.closes, clocked.time_ms, clocked.clock_ms,
        )  # fmt: skip
        for p in range(len(within)):
            if stays[COPIED, p] < stays[COPIED_UP_TO, p]:
                changes[first + stays[COPIED, p]] += 1
                changes[first + stays[COPIED_UP_TO, p]] -= 1
        first = end
    return np.cumsum(changes)[:-1]


@compiled
def _joined(
    records: List[np.ndarray], enter_order: List[np.ndarray], panes: List[np.ndarray]
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """The chains one after the other; see `batched_firings`."""
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
