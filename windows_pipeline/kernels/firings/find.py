"""Finds the firings of groups of records, with their panes as windows over the records."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from windows_pipeline.compat.numba_jit import compiled
from windows_pipeline.kernels.firings.batched import (
    P_AFTER,
    P_BY_ADVANCE,
    P_CHAIN,
    P_ENTERED,
    P_FINAL,
    P_ID,
    P_LEFT,
    P_REASON,
    P_WINDOW,
    Moments,
    batched_firings,
    late_firings,
    moments_of,
)
from windows_pipeline.kernels.firings.one_by_one import firings_one_by_one
from windows_pipeline.kernels.firings.sessions import session_firings
from windows_pipeline.kernels.firings.window_state import (
    F_AFTER,
    F_BY_ADVANCE,
    F_END,
    F_FINAL,
    F_GROUP,
    F_ID,
    F_PANE,
    F_REASON,
    F_SIZE,
    F_START,
    LATENESS,
    FiringReason,
    policy_of,
)
from windows_pipeline.kernels.firings.windows import (
    ClockedRecords,
    MadeWindows,
    NewInput,
    RequestedWindows,
    requested_windows,
    sliding_windows,
    time_windows,
    windows_that_may_fire,
)
from windows_pipeline.kernels.time import END_OF_INPUT_MS, NEVER_MS
from windows_pipeline.kernels.windows.arrays import WindowArrays
from windows_pipeline.kernels.windows.filled import WindowedRecords
from windows_pipeline.tuning import TUNING, Tuning
from windows_pipeline.windows import (
    FiringWindows,
    SessionWindows,
    SlidingWindows,
    TimeWindows,
)
from windows_pipeline.windows.firing.triggers import Trigger


class Arrived(NamedTuple):
    """Groups of records, each in order of arrival, and the watermark advances.

    Attributes:
        starts: Where each group's records begin; one more entry for the end of the last.
        time_ms: Event times.
        stream_time_ms: Stream time after each record.
        entry: The index of the first advance at or after each record; see `Advances.entry`.
        advances_ms: Stream time at each advance.
    """

    starts: np.ndarray
    time_ms: np.ndarray
    stream_time_ms: np.ndarray
    entry: np.ndarray
    advances_ms: np.ndarray


class Firings(NamedTuple):
    """Firings, and the panes that they show.

    Attributes:
        group: The group of each firing.
        start_ms: Its window's start.
        end_ms: Its window's end; for sessions the last record plus the gap.
        id: Its number among its window's firings, from 0.
        reason: A `FiringReason`.
        by_advance: Whether a watermark advance caused it, not a record.
        after: The index of that advance or record.
        is_final: Whether its window was closed by then.
        record: The records of the panes, in the order in which they leave; a record can come
            several times.
        panes: The panes as windows over these records, one a firing.
    """

    group: np.ndarray
    start_ms: np.ndarray
    end_ms: np.ndarray
    id: np.ndarray
    reason: np.ndarray
    by_advance: np.ndarray
    after: np.ndarray
    is_final: np.ndarray
    record: np.ndarray
    panes: WindowedRecords

    def only(self, chosen: np.ndarray) -> Firings:
        """The firings of a mask."""
        if chosen.all():
            return self
        windows = self.panes.windows.only(chosen)
        return Firings(
            self.group[chosen],
            self.start_ms[chosen],
            self.end_ms[chosen],
            self.id[chosen],
            self.reason[chosen],
            self.by_advance[chosen],
            self.after[chosen],
            self.is_final[chosen],
            self.record,
            self.panes._replace(windows=windows),
        )


def find_firings(
    spec: FiringWindows,
    trigger: Trigger,
    arrived: Arrived,
    new: NewInput | None = None,
    tuning: Tuning = TUNING,
) -> Iterator[Firings]:
    """Finds the firings of windows, in parts that fit in memory.

    Args:
        spec: The windows.
        trigger: When they fire; any but a trigger that only fires final results.
        arrived: The records.
        new: The input after which firings are asked for; None for all firings. Other firings are
            left out only where that saves work.
        tuning: How large a part is.
    """
    delay_ms = trigger.out_of_orderness_ms
    # Sorted by group and event time, and by arrival where event times are equal.
    group = np.repeat(np.arange(len(arrived.starts) - 1), np.diff(arrived.starts))
    by_time = np.lexsort((arrived.time_ms, group))
    policy = policy_of(trigger, spec.grace_ms)
    clock_ms, advances_ms = arrived.stream_time_ms - delay_ms, arrived.advances_ms - delay_ms
    clocked = ClockedRecords(
        arrived.starts, by_time, arrived.time_ms, clock_ms, arrived.entry, advances_ms
    )
    known_advances = int((arrived.advances_ms != END_OF_INPUT_MS).sum())
    asked = _Asked(trigger, clocked, policy, new, tuning, known_advances)
    yield from _FINDERS[type(spec)](spec, asked)


class _Asked(NamedTuple):
    """What `find_firings` is asked for, but for the windows."""

    trigger: Trigger
    clocked: ClockedRecords
    policy: np.ndarray
    new: NewInput | None
    tuning: Tuning
    known_advances: int


def _sessions(spec: SessionWindows, asked: _Asked) -> Iterator[Firings]:
    found = session_firings(*asked.clocked, asked.policy, spec.gap_ms)
    yield _filled(0, *found, asked.clocked)


def _sliding(spec: SlidingWindows, asked: _Asked) -> Iterator[Firings]:
    clocked, lateness_ms = asked.clocked, int(asked.policy[LATENESS])
    difference_ms = spec.time_difference_ms
    requested = _requested(spec, clocked, lateness_ms)
    made_windows, is_silent = sliding_windows(requested, clocked, lateness_ms, difference_ms)
    yield from _fire(0, spec, made_windows, asked)
    if spec.emit_empty:
        known = asked.known_advances
        yield _silences(requested, is_silent, clocked, difference_ms, lateness_ms, known)


def _hopping(spec: TimeWindows, asked: _Asked) -> Iterator[Firings]:
    clocked = asked.clocked
    for first, last, from_ms, to_ms in _spans(spec, clocked, asked.tuning):
        part = clocked._replace(starts=clocked.starts[first : last + 1])
        lengths_ms = (int(asked.policy[LATENESS]), spec.size_ms, spec.advance_ms)
        made_windows = time_windows(part, *lengths_ms, from_ms, to_ms)
        yield from _fire(first, spec, made_windows, asked._replace(clocked=part))


_FINDERS: Mapping[type, Callable[[Any, _Asked], Iterator[Firings]]] = {
    SlidingWindows: _sliding,
    TimeWindows: _hopping,
    SessionWindows: _sessions,
}
"""What finds the firings of each kind; see `find_firings`."""


def _fire(
    first_group: int,
    spec: SlidingWindows | TimeWindows,
    made_windows: MadeWindows,
    asked: _Asked,
) -> Iterator[Firings]:
    """Fires windows in batches if that costs less, otherwise one by one."""
    trigger, clocked, policy, new, tuning, _ = asked
    delay_ms = trigger.out_of_orderness_ms
    if new is not None:
        made_windows = windows_that_may_fire(made_windows, clocked, new, policy)
    pairs = made_windows.high - made_windows.low
    if _can_share_panes(spec, trigger, pairs):
        moments = moments_of(made_windows, clocked, policy, new)
        # Where panes discard, a tick without a record fires nothing.
        ticks_may_be_silent = trigger.discards and trigger.early_every_ms
        if not ticks_may_be_silent or moments.tick_intervals.sum() <= pairs.sum():
            steps = _shared_steps(made_windows, moments, clocked, trigger)
            for part in _parts(steps, tuning):
                windows, times = made_windows.only(part), moments.only(part)
                found = batched_firings(windows, times, clocked, policy, delay_ms)
                yield _shared(first_group, spec, windows, clocked, *found)
            return
    for part in _parts(pairs, tuning):
        end_after_ms = int(spec.excludes_end)  # compiled code takes no other type
        fired = firings_one_by_one(made_windows.only(part), clocked, policy, end_after_ms)
        yield _filled(first_group, *fired, clocked)


def _can_share_panes(
    spec: SlidingWindows | TimeWindows, trigger: Trigger, records_in: np.ndarray
) -> bool:
    """Whether windows can be fired in batches, and batches can cost less.

    Windows that fire at every n-th record, or at Flink's ticks, which differ by window, cannot be.
    Batches cost more where windows do not overlap, or where ticks come more often than windows
    start: then each tick looks at more windows than each record is in.
    """
    every_records, interval_ms = trigger.early_every_records, trigger.early_every_ms
    if every_records and records_in.max(initial=0) >= every_records:
        return False
    if interval_ms and trigger.as_in_flink:
        return False
    step_ms = spec.step_ms
    if step_ms is None or (interval_ms and trigger.discards):
        return True
    return step_ms < spec.length_ms and (not interval_ms or interval_ms >= step_ms)


def _requested(spec: SlidingWindows, clocked: ClockedRecords, lateness_ms: int) -> RequestedWindows:
    first_ms = NEVER_MS if spec.first_window_start_ms is None else spec.first_window_start_ms
    return RequestedWindows(
        *requested_windows(clocked, lateness_ms, spec.time_difference_ms, first_ms)
    )


def _parts(steps: np.ndarray, tuning: Tuning) -> Iterator[slice]:
    """Splits windows into parts that fit in memory, by the steps that each window takes."""
    part = np.cumsum(steps) // tuning.part_records
    cuts = np.flatnonzero(np.diff(part)) + 1
    for first, last in pairwise([0, *cuts.tolist(), len(part)]):
        if first < last:
            yield slice(first, last)


def _shared_steps(
    made_windows: MadeWindows, moments: Moments, clocked: ClockedRecords, trigger: Trigger
) -> np.ndarray:
    """How much each window adds to chains: firings, new records, and copies of records."""
    new_records = np.maximum(np.diff(made_windows.high, prepend=0), 0)
    steps: np.ndarray = (1 + new_records) * moments.tick_intervals
    return steps + late_firings(made_windows, moments, clocked) if trigger.late else steps


def _shared(
    first_group: int,
    spec: SlidingWindows | TimeWindows,
    made_windows: MadeWindows,
    clocked: ClockedRecords,
    record: np.ndarray,
    enter_order: np.ndarray,
    starts: np.ndarray,
    found: np.ndarray,
) -> Firings:
    window = found[:, P_WINDOW]
    end_ms, is_final = made_windows.last_ms[window] + spec.excludes_end, found[:, P_FINAL] != 0
    windows = WindowArrays(
        found[:, P_CHAIN],
        end_ms,
        is_final,
        found[:, P_ENTERED],
        found[:, P_LEFT],
        enter_order,
        np.zeros(len(record), np.bool_),
    )
    return Firings(
        first_group + made_windows.group[window],
        made_windows.start_ms[window],
        end_ms,
        found[:, P_ID],
        found[:, P_REASON],
        found[:, P_BY_ADVANCE] != 0,
        found[:, P_AFTER],
        is_final,
        record,
        WindowedRecords(starts, clocked.time_ms[record], windows, str),
    )


def _silences(
    requested: RequestedWindows,
    is_silent: np.ndarray,
    clocked: ClockedRecords,
    difference_ms: int,
    lateness_ms: int,
    known_advances: int,
) -> Firings:
    """Fires each window that no record entered, once, at the advance that closes it (rule B8).

    The end of the input closes no such window, as further records may come.
    """
    closing = np.searchsorted(clocked.advances, requested.end_ms + 1 + lateness_ms)
    fires = is_silent & (closing < known_advances)
    end_ms, zeros = requested.end_ms[fires], np.zeros(int(fires.sum()), np.int64)
    always = np.ones(len(end_ms), np.bool_)
    # Empty panes over one record, as aggregates need at least one.
    record, never = clocked.by_time[:1], np.zeros(1, np.bool_)
    windows = WindowArrays(zeros, end_ms, always, zeros, zeros, np.zeros(1, np.int64), never)
    return Firings(
        requested.group[fires],
        end_ms - difference_ms,
        end_ms,
        zeros,
        np.full(len(end_ms), FiringReason.ON_TIME, np.int64),
        always,
        closing[fires],
        always,
        record,
        WindowedRecords(np.array([0, 1]), clocked.time_ms[record], windows, str),
    )


def _spans(
    spec: TimeWindows, clocked: ClockedRecords, tuning: Tuning
) -> Iterator[tuple[int, int, int, int]]:
    """Ranges of groups and of window starts, each with about as many windows as fit in memory."""
    starts, advance_ms = clocked.starts, spec.advance_ms
    first_ms = NEVER_MS if spec.first_window_start_ms is None else spec.first_window_start_ms
    from_ms, to_ms = -(-first_ms // advance_ms) * advance_ms, -NEVER_MS
    in_order_ms = clocked.time_ms[clocked.by_time]
    since_ms = np.diff(in_order_ms, prepend=in_order_ms[:1])
    since_ms[starts[:-1]] = spec.size_ms
    # By record, the windows that the record before it is not in.
    windows = np.cumsum(np.minimum(since_ms, spec.size_ms) // advance_ms + 1)
    before = np.concatenate(([0], windows))[starts]
    first = 0
    while first < len(starts) - 1:
        last = int(np.searchsorted(before, before[first] + tuning.part_records, "right")) - 1
        if last > first:
            yield first, last, from_ms, to_ms
            first = last
            continue
        part = (windows[starts[first] : starts[first + 1]] - before[first]) // tuning.part_records
        cut_at = starts[first] + 1 + np.flatnonzero(np.diff(part))
        cuts_ms = np.unique(np.maximum(in_order_ms[cut_at] // advance_ms * advance_ms, from_ms))
        bounds_ms = [from_ms, *cuts_ms[cuts_ms > from_ms].tolist(), to_ms]
        for low_ms, high_ms in pairwise(bounds_ms):
            yield first, first + 1, low_ms, high_ms
        first += 1


def _filled(
    first_group: int,
    entries: np.ndarray,
    found: np.ndarray,
    clocked: ClockedRecords,
) -> Firings:
    if (np.diff(found[:, F_PANE]) < 0).any():
        found = found[np.argsort(found[:, F_PANE], kind="stable")]
    pane = np.cumsum(np.diff(found[:, F_PANE], prepend=-1) > 0) - 1
    begins = np.flatnonzero(np.diff(pane, prepend=-1))
    starts = np.append(found[begins, F_PANE], len(entries))
    starts[0] = 0
    rank = np.empty(len(clocked.by_time), np.int64)
    rank[clocked.by_time] = np.arange(len(clocked.by_time))
    record, enter_order = _in_time_order(entries, starts, rank)
    windows = WindowArrays(
        pane,
        found[:, F_END],
        found[:, F_FINAL] != 0,
        found[:, F_PANE] + found[:, F_SIZE],
        found[:, F_PANE],
        enter_order,
        np.zeros(len(entries), np.bool_),
    )
    return Firings(
        first_group + found[:, F_GROUP],
        found[:, F_START],
        found[:, F_END],
        found[:, F_ID],
        found[:, F_REASON],
        found[:, F_BY_ADVANCE] != 0,
        found[:, F_AFTER],
        found[:, F_FINAL] != 0,
        record,
        WindowedRecords(starts, clocked.time_ms[record], windows, str),
    )


@compiled
def _in_time_order(
    entries: np.ndarray, starts: np.ndarray, rank: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The records of each pane by event time, and their indexes by arrival."""
    record, enter_order = entries.copy(), np.arange(len(entries))
    for pane in range(len(starts) - 1):
        low, high = starts[pane], starts[pane + 1]
        ranks = rank[entries[low:high]]
        if (ranks[1:] > ranks[:-1]).all():
            continue
        order = low + np.argsort(ranks)
        record[low:high] = entries[order]
        for position in range(low, high):
            enter_order[order[position - low]] = position
    return record, enter_order
