"""Finds the firings of a target's groups of records, as windows over them that are filled later."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import numba
import numpy as np

from windows_pipeline.engine.firing_life import (
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
    policy_of,
)
from windows_pipeline.engine.firing_sessions import session_firings
from windows_pipeline.engine.firing_sliding import Asked, asked_windows, sliding_firings
from windows_pipeline.engine.firing_sweep import time_firings
from windows_pipeline.engine.rises import END_OF_INPUT_MS
from windows_pipeline.engine.sweep import Windows
from windows_pipeline.engine.timeline import NEVER_MS
from windows_pipeline.engine.windowed_records import WindowedRecords
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
        record: The records of the panes, each pane's by event time; they can stand in several.
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
        windows = self.panes.windows
        some = windows._replace(
            group=windows.group[kept],
            end_ms=windows.end_ms[kept],
            closed=windows.closed[kept],
            entered=windows.entered[kept],
            left=windows.left[kept],
        )
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


def find_firings(spec: FiringWindows, trigger: Trigger, arrived: Arrived) -> Iterator[Firings]:
    """Fires the windows, in parts that fit in memory.

    Args:
        spec: The windows.
        trigger: When they fire; not a final-only one.
        arrived: The records.
    """
    delay_ms = trigger.out_of_orderness_ms
    # By group and event time; in the order of arrival where event times are equal.
    group = np.repeat(np.arange(len(arrived.starts) - 1), np.diff(arrived.starts))
    by_time = np.lexsort((arrived.time_ms, group))
    policy = policy_of(trigger, spec.grace_ms)
    clock_ms, rises_ms = arrived.stream_time_ms - delay_ms, arrived.rises_ms - delay_ms
    common = (by_time, arrived.time_ms, clock_ms, arrived.entry, rises_ms, policy)
    if isinstance(spec, SessionWindows):
        yield _filled(0, *session_firings(arrived.starts, *common, spec.gap_ms), arrived, by_time)
        return
    if isinstance(spec, SlidingWindows):
        yield from _sliding(spec, arrived, by_time, clock_ms, rises_ms, policy)
        return
    for first, last, from_ms, to_ms in _parts(spec, arrived, by_time):
        starts = arrived.starts[first : last + 1]
        found = time_firings(starts, *common, spec.size_ms, spec.advance_ms, from_ms, to_ms)
        yield _filled(first, *found, arrived, by_time)


def _sliding(
    spec: SlidingWindows,
    arrived: Arrived,
    by_time: np.ndarray,
    clock_ms: np.ndarray,
    rises_ms: np.ndarray,
    policy: np.ndarray,
) -> Iterator[Firings]:
    first_ms = NEVER_MS if spec.first_window_start_ms is None else spec.first_window_start_ms
    difference_ms, time_ms = spec.time_difference_ms, arrived.time_ms
    definition = (int(policy[LATENESS]), difference_ms, first_ms)
    asked = Asked(*asked_windows(arrived.starts, by_time, time_ms, clock_ms, *definition))
    # Nothing is known to come after the end of the input, so it closes no silence.
    closing = int((arrived.rises_ms != END_OF_INPUT_MS).sum()) if spec.emit_empty else 0
    part = np.cumsum(asked.high - asked.low) // PART_RECORDS
    cuts = np.flatnonzero(np.diff(part)) + 1
    for first, last in pairwise([0, *cuts.tolist(), len(part)]):
        of_part = Asked(*(field[first:last] for field in asked))
        came = (by_time, time_ms, clock_ms, arrived.entry, rises_ms)
        found = sliding_firings(*of_part, *came, policy, difference_ms, closing)
        yield _filled(0, *found, arrived, by_time)


def _parts(
    spec: TimeWindows, arrived: Arrived, by_time: np.ndarray
) -> Iterator[tuple[int, int, int, int]]:
    """Groups, and spans of window starts, whose windows hold about as many records as fit."""
    starts, advance_ms = arrived.starts, spec.advance_ms
    first_ms = NEVER_MS if spec.first_window_start_ms is None else spec.first_window_start_ms
    from_ms, to_ms = -(-first_ms // advance_ms) * advance_ms, -NEVER_MS
    room = max(PART_RECORDS * advance_ms // (spec.size_ms + advance_ms), 1)
    first = 0
    while first < len(starts) - 1:
        last = int(np.searchsorted(starts, starts[first] + room, "right")) - 1
        if last > first:
            yield first, last, from_ms, to_ms
            first = last
            continue
        in_order = arrived.time_ms[by_time[starts[first] + room : starts[first + 1] : room]]
        cuts_ms = np.unique(np.maximum(in_order // advance_ms * advance_ms, from_ms))
        bounds_ms = [from_ms, *cuts_ms[cuts_ms > from_ms].tolist(), to_ms]
        for low_ms, high_ms in pairwise(bounds_ms):
            yield first, first + 1, low_ms, high_ms
        first += 1


def _filled(
    first_group: int,
    entries: np.ndarray,
    found: np.ndarray,
    arrived: Arrived,
    by_time: np.ndarray,
) -> Firings:
    if (np.diff(found[:, F_PANE]) < 0).any():
        found = found[np.argsort(found[:, F_PANE], kind="stable")]
    pane = np.cumsum(np.diff(found[:, F_PANE], prepend=-1) > 0) - 1
    begins = np.flatnonzero(np.diff(pane, prepend=-1))
    starts = np.append(found[begins, F_PANE], len(entries))
    starts[0] = 0
    rank = np.empty(len(by_time), np.int64)
    rank[by_time] = np.arange(len(by_time))
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
        WindowedRecords(starts, arrived.time_ms[record], windows, str),
    )


@numba.njit(cache=True)
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
