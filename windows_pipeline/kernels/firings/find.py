"""Finds the firings of a target's groups of records, as windows over them that are filled later."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from windows_pipeline.compat.numba_jit import compiled
from windows_pipeline.kernels.firings.batched import (
    P_AFTER,
    P_BY_RISE,
    P_CHAIN,
    P_ENTERED,
    P_FINAL,
    P_ID,
    P_LEFT,
    P_REASON,
    P_WINDOW,
    Moments,
    epoch_firings,
    late_firings,
    moments_of,
)
from windows_pipeline.kernels.firings.one_by_one import firings_one_by_one
from windows_pipeline.kernels.firings.sessions import session_firings
from windows_pipeline.kernels.firings.window_state import (
    F_AFTER,
    F_BY_RISE,
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
    Asked,
    Came,
    Lives,
    New,
    asked_windows,
    sliding_lives,
    stirred,
    time_lives,
)
from windows_pipeline.kernels.time import END_OF_INPUT_MS, NEVER_MS
from windows_pipeline.kernels.windows.filled import WindowedRecords
from windows_pipeline.kernels.windows.sliding import Windows
from windows_pipeline.windows import (
    FiringWindows,
    SessionWindows,
    SlidingWindows,
    TimeWindows,
)
from windows_pipeline.windows.triggers import Trigger

PART_RECORDS = 1 << 22
"""How often records stand in the windows that are fired together, at most about."""


class Arrived(NamedTuple):
    """Groups of records, each in the order of arrival, and the rises of stream time.

    Attributes:
        starts: Where each group's records begin; one more entry for the end of the last.
        time_ms: Event times.
        stream_time_ms: Stream time after each record.
        entry: The rise before which each record came; see `rises.Rises.entry`.
        rises_ms: Stream time at each rise.
    """

    starts: np.ndarray
    time_ms: np.ndarray
    stream_time_ms: np.ndarray
    entry: np.ndarray
    rises_ms: np.ndarray


class Firings(NamedTuple):
    """Firings, and the panes that they show.

    Attributes:
        group: The group of each.
        start_ms: Its window's start.
        end_ms: Its window's end; of sessions the last record and the gap.
        id: Its number among its window's.
        reason: A `FiringReason`.
        by_rise: Whether stream time made it fire, not a record.
        after: The rise, or the record, that did.
        is_final: Whether its window was closed then.
        record: The records of the panes, in the order in which they leave these; they can stand
            in several.
        panes: The panes as windows over these records, one a firing.
    """

    group: np.ndarray
    start_ms: np.ndarray
    end_ms: np.ndarray
    id: np.ndarray
    reason: np.ndarray
    by_rise: np.ndarray
    after: np.ndarray
    is_final: np.ndarray
    record: np.ndarray
    panes: WindowedRecords

    def only(self, kept: np.ndarray) -> Firings:
        """The firings of a mask."""
        if kept.all():
            return self
        some = self.panes.windows.only(kept)
        return Firings(
            self.group[kept],
            self.start_ms[kept],
            self.end_ms[kept],
            self.id[kept],
            self.reason[kept],
            self.by_rise[kept],
            self.after[kept],
            self.is_final[kept],
            self.record,
            self.panes._replace(windows=some),
        )


def find_firings(
    spec: FiringWindows, trigger: Trigger, arrived: Arrived, new: New | None = None
) -> Iterator[Firings]:
    """Fires the windows, in parts that fit in memory.

    Args:
        spec: The windows.
        trigger: When they fire; not a final-only one.
        arrived: The records.
        new: What firings are wanted after, all without. Others are left out only where that
            saves work.
    """
    delay_ms = trigger.out_of_orderness_ms
    # By group and event time; in the order of arrival where event times are equal.
    group = np.repeat(np.arange(len(arrived.starts) - 1), np.diff(arrived.starts))
    by_time = np.lexsort((arrived.time_ms, group))
    policy = policy_of(trigger, spec.grace_ms)
    clock_ms, rises_ms = arrived.stream_time_ms - delay_ms, arrived.rises_ms - delay_ms
    came = Came(arrived.starts, by_time, arrived.time_ms, clock_ms, arrived.entry, rises_ms)
    if isinstance(spec, SessionWindows):
        yield _filled(0, *session_firings(*came, policy, spec.gap_ms), came)
        return
    if isinstance(spec, SlidingWindows):
        lateness_ms, difference_ms = int(policy[LATENESS]), spec.time_difference_ms
        asked = _asked(spec, came, lateness_ms)
        lives, is_silent = sliding_lives(asked, came, lateness_ms, difference_ms)
        yield from _fire(0, spec, trigger, lives, came, policy, new)
        if spec.emit_empty:
            known_rises = int((arrived.rises_ms != END_OF_INPUT_MS).sum())
            yield _silences(asked, is_silent, came, difference_ms, lateness_ms, known_rises)
        return
    for first, last, from_ms, to_ms in _spans(spec, came):
        some = came._replace(starts=came.starts[first : last + 1])
        own = (int(policy[LATENESS]), spec.size_ms, spec.advance_ms)
        lives = time_lives(some, *own, from_ms, to_ms)
        yield from _fire(first, spec, trigger, lives, some, policy, new)


def _fire(
    first_group: int,
    spec: SlidingWindows | TimeWindows,
    trigger: Trigger,
    lives: Lives,
    came: Came,
    policy: np.ndarray,
    new: New | None,
) -> Iterator[Firings]:
    """Fires windows together where that costs less, else each by itself."""
    if new is not None:
        lives = stirred(lives, came, new, policy)
    pairs = lives.high - lives.low
    if _can_share_panes(spec, trigger, pairs):
        moments = moments_of(lives, came, policy, new)
        ticks_tell = trigger.discards and trigger.early_every_ms
        # Where panes discard, a tick without a record fires nothing.
        if not ticks_tell or moments.epochs.sum() <= pairs.sum():
            for part in _parts(_shared_steps(lives, moments, came, trigger)):
                some, own = lives.only(part), moments.only(part)
                found = epoch_firings(some, own, came, policy, trigger.out_of_orderness_ms)
                yield _shared(first_group, spec, some, came, *found)
            return
    for part in _parts(pairs):
        fired = firings_one_by_one(lives.only(part), came, policy, _end_after_ms(spec))
        yield _filled(first_group, *fired, came)


def _can_share_panes(
    spec: SlidingWindows | TimeWindows, trigger: Trigger, records_held: np.ndarray
) -> bool:
    """Whether windows can be fired together, and it can be worth it.

    Those that count their records, or have ticks of their own as Flink's do, can't be. Nor is it
    worth it where they do not overlap, or where a tick comes more often than a window starts:
    records are in fewer windows then than are looked at by ticks.
    """
    every_records, interval_ms = trigger.early_every_records, trigger.early_every_ms
    if every_records and records_held.max(initial=0) >= every_records:
        return False
    if interval_ms and trigger.as_in_flink:
        return False
    if isinstance(spec, SlidingWindows) or (interval_ms and trigger.discards):
        return True
    return spec.advance_ms < spec.size_ms and (not interval_ms or interval_ms >= spec.advance_ms)


def _end_after_ms(spec: SlidingWindows | TimeWindows) -> int:
    """From the last event time that belongs to a window to its end (rules B2, C1)."""
    return 0 if isinstance(spec, SlidingWindows) else 1


def _asked(spec: SlidingWindows, came: Came, lateness_ms: int) -> Asked:
    first_ms = NEVER_MS if spec.first_window_start_ms is None else spec.first_window_start_ms
    return Asked(*asked_windows(came, lateness_ms, spec.time_difference_ms, first_ms))


def _parts(steps: np.ndarray) -> Iterator[slice]:
    """Windows in parts that fit in memory, by the steps that each takes."""
    part = np.cumsum(steps) // PART_RECORDS
    cuts = np.flatnonzero(np.diff(part)) + 1
    for first, last in pairwise([0, *cuts.tolist(), len(part)]):
        if first < last:
            yield slice(first, last)


def _shared_steps(lives: Lives, moments: Moments, came: Came, trigger: Trigger) -> np.ndarray:
    """What each window adds to its epochs' chains: firings, new records, and copies."""
    new_records = np.maximum(np.diff(lives.high, prepend=0), 0)
    steps: np.ndarray = (1 + new_records) * moments.epochs
    return steps + late_firings(lives, moments, came) if trigger.late else steps


def _shared(
    first_group: int,
    spec: SlidingWindows | TimeWindows,
    lives: Lives,
    came: Came,
    record: np.ndarray,
    enter_order: np.ndarray,
    starts: np.ndarray,
    found: np.ndarray,
) -> Firings:
    window = found[:, P_WINDOW]
    end_ms, is_final = lives.last_ms[window] + _end_after_ms(spec), found[:, P_FINAL] != 0
    windows = Windows(
        found[:, P_CHAIN],
        end_ms,
        is_final,
        found[:, P_ENTERED],
        found[:, P_LEFT],
        enter_order,
        np.zeros(len(record), np.bool_),
    )
    return Firings(
        first_group + lives.group[window],
        lives.start_ms[window],
        end_ms,
        found[:, P_ID],
        found[:, P_REASON],
        found[:, P_BY_RISE] != 0,
        found[:, P_AFTER],
        is_final,
        record,
        WindowedRecords(starts, came.time_ms[record], windows, str),
    )


def _silences(
    asked: Asked,
    is_silent: np.ndarray,
    came: Came,
    difference_ms: int,
    lateness_ms: int,
    known_rises: int,
) -> Firings:
    """Fires each window that nothing came into, once, as a rise closes it (rule B8).

    Nothing is known to come after the end of the input, so that one closes none.
    """
    closing = np.searchsorted(came.rises, asked.end_ms + 1 + lateness_ms)
    kept = is_silent & (closing < known_rises)
    end_ms, nothing = asked.end_ms[kept], np.zeros(int(kept.sum()), np.int64)
    always = np.ones(len(end_ms), np.bool_)
    # A pane that nothing is in, of a record that is there.
    record, never = came.by_time[:1], np.zeros(1, np.bool_)
    windows = Windows(nothing, end_ms, always, nothing, nothing, np.zeros(1, np.int64), never)
    return Firings(
        asked.group[kept],
        end_ms - difference_ms,
        end_ms,
        nothing,
        np.full(len(end_ms), FiringReason.ON_TIME, np.int64),
        always,
        closing[kept],
        always,
        record,
        WindowedRecords(np.array([0, 1]), came.time_ms[record], windows, str),
    )


def _spans(spec: TimeWindows, came: Came) -> Iterator[tuple[int, int, int, int]]:
    """Groups, and spans of window starts, of about as many windows as fit in memory."""
    starts, advance_ms = came.starts, spec.advance_ms
    first_ms = NEVER_MS if spec.first_window_start_ms is None else spec.first_window_start_ms
    from_ms, to_ms = -(-first_ms // advance_ms) * advance_ms, -NEVER_MS
    in_order_ms = came.time_ms[came.by_time]
    since_ms = np.diff(in_order_ms, prepend=in_order_ms[:1])
    since_ms[starts[:-1]] = spec.size_ms
    # Of each record the windows that the one before is not in.
    windows = np.cumsum(np.minimum(since_ms, spec.size_ms) // advance_ms + 1)
    before = np.concatenate(([0], windows))[starts]
    first = 0
    while first < len(starts) - 1:
        last = int(np.searchsorted(before, before[first] + PART_RECORDS, "right")) - 1
        if last > first:
            yield first, last, from_ms, to_ms
            first = last
            continue
        own = (windows[starts[first] : starts[first + 1]] - before[first]) // PART_RECORDS
        cut_at = starts[first] + 1 + np.flatnonzero(np.diff(own))
        cuts_ms = np.unique(np.maximum(in_order_ms[cut_at] // advance_ms * advance_ms, from_ms))
        bounds_ms = [from_ms, *cuts_ms[cuts_ms > from_ms].tolist(), to_ms]
        for low_ms, high_ms in pairwise(bounds_ms):
            yield first, first + 1, low_ms, high_ms
        first += 1


def _filled(
    first_group: int,
    entries: np.ndarray,
    found: np.ndarray,
    came: Came,
) -> Firings:
    if (np.diff(found[:, F_PANE]) < 0).any():
        found = found[np.argsort(found[:, F_PANE], kind="stable")]
    pane = np.cumsum(np.diff(found[:, F_PANE], prepend=-1) > 0) - 1
    begins = np.flatnonzero(np.diff(pane, prepend=-1))
    starts = np.append(found[begins, F_PANE], len(entries))
    starts[0] = 0
    rank = np.empty(len(came.by_time), np.int64)
    rank[came.by_time] = np.arange(len(came.by_time))
    record, enter_order = _in_time_order(entries, starts, rank)
    windows = Windows(
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
        found[:, F_BY_RISE] != 0,
        found[:, F_AFTER],
        found[:, F_FINAL] != 0,
        record,
        WindowedRecords(starts, came.time_ms[record], windows, str),
    )


@compiled
def _in_time_order(
    entries: np.ndarray, starts: np.ndarray, rank: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The records of each pane by event time, and their places there by arrival."""
    record, enter_order = entries.copy(), np.arange(len(entries))
    for pane in range(len(starts) - 1):
        low, high = starts[pane], starts[pane + 1]
        ranks = rank[entries[low:high]]
        if (ranks[1:] > ranks[:-1]).all():
            continue
        order = low + np.argsort(ranks)
        record[low:high] = entries[order]
        for place in range(low, high):
            enter_order[order[place - low]] = place
    return record, enter_order
