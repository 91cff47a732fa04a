"""Fills panes of overlapping windows in one pass; a record that several panes show enters once."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from windows_pipeline.compat.numba_jit import compiled

ENTERS, LEAVES, COPIED, COPIED_UP_TO = range(4)


class Chain(NamedTuple):
    """The records that a sequence of windows shows, one window after the other.

    Attributes:
        records: The records, in the order in which they leave.
        enter_order: Their indexes in `records`, in the order in which they enter.
        left: By window, how many records have left by its pane.
        entered: By window, how many records have entered by its pane.
        late: By window, how many records enter after its pane and before that of the next
            window; each is a firing of the window.
    """

    records: np.ndarray
    enter_order: np.ndarray
    left: np.ndarray
    entered: np.ndarray
    late: np.ndarray


@compiled
def chain(
    selected: np.ndarray,
    until: np.ndarray,
    waiting: int,
    with_late: bool,  # noqa: FBT001  compiled code takes its arguments by position
    records: np.ndarray,
    start_ms: np.ndarray,
    last_ms: np.ndarray,
    closes: np.ndarray,
    time_ms: np.ndarray,
    clock_ms: np.ndarray,
) -> Chain:
    """Puts records into the panes of windows, and takes them out, in the order of the windows.

    A window shows the records within its bounds that came before the record `until`. A record
    that all further windows show, too, stays until they lie behind it. Any other record is copied
    for each window that shows it, and the copy leaves with that window. Late records are also
    copied, and each is a firing.

    Args:
        selected: The windows, by start and end.
        until: By selected window, the first record that its pane does not show.
        waiting: How many of the first selected windows can have records after `until`.
        with_late: Whether to include these late records.
        records: Records in the order of event time; the windows show some of them.
        start_ms: By window, the first event time that belongs to it.
        last_ms: By window, the last event time that belongs to it.
        closes: By window, the clock that closes it.
        time_ms: Event times, in order of arrival.
        clock_ms: The clock that each record met.
    """
    stays = stays_of(
        selected, until, waiting, records, start_ms, last_ms, closes, time_ms, clock_ms
    )
    entering, leaving = np.zeros(len(selected) + 1, np.int64), np.zeros(len(selected) + 1, np.int64)
    copies = np.zeros(len(selected) + 1, np.int64)
    for p in range(len(records)):
        enters, leaves = stays[ENTERS, p], stays[LEAVES, p]
        if enters < leaves:
            entering[enters] += 1
            leaving[leaves] += 1
        for k in range(stays[COPIED, p], stays[COPIED_UP_TO, p]):
            copies[k] += with_late or records[p] < until[k]
    next_enter = np.cumsum(entering + copies) - copies - entering
    copy_at = np.cumsum(leaving + copies) - copies
    next_leave, next_copy = copy_at - leaving, copy_at.copy()
    left = copy_at[: len(selected)]
    order = np.empty(int((entering + copies).sum()), np.int64)
    enter_order = np.empty(len(order), np.int64)
    for p in range(len(records)):
        enters, leaves = stays[ENTERS, p], stays[LEAVES, p]
        if enters < leaves:
            order[next_leave[leaves]] = records[p]
            enter_order[next_enter[enters]] = next_leave[leaves]
            next_enter[enters] += 1
            next_leave[leaves] += 1
        for k in range(stays[COPIED, p], stays[COPIED_UP_TO, p]):
            if with_late or records[p] < until[k]:
                order[next_copy[k]] = records[p]
                next_copy[k] += 1
    entered, late = next_enter[: len(selected)], np.zeros(len(selected), np.int64)
    for w in np.flatnonzero(copies):
        copied = order[copy_at[w] : next_copy[w]]
        enter_order[entered[w] : entered[w] + len(copied)] = copy_at[w] + np.argsort(copied)
        late[w] = (copied >= until[w]).sum()
        entered[w] += len(copied) - late[w]
    return Chain(order, enter_order, left, entered, late)


@compiled
def stays_of(
    selected: np.ndarray,
    until: np.ndarray,
    waiting: int,
    records: np.ndarray,
    start_ms: np.ndarray,
    last_ms: np.ndarray,
    closes: np.ndarray,
    time_ms: np.ndarray,
    clock_ms: np.ndarray,
) -> np.ndarray:
    """By record, the windows in which it stays and those for which it is copied; see `chain`."""
    always = until.copy()  # all later windows show the records before it as well
    for k in range(len(selected) - 2, -1, -1):
        always[k] = min(always[k], always[k + 1])
    stays = np.zeros((4, len(records)), np.int64)
    first = beyond = 0
    for p in range(len(records)):
        r = records[p]
        while first < len(selected) and last_ms[selected[first]] < time_ms[r]:
            first += 1
        while beyond < len(selected) and start_ms[selected[beyond]] <= time_ms[r]:
            beyond += 1
        enters = first + np.searchsorted(always[first:beyond], r, side="right")
        stays[ENTERS, p], stays[LEAVES, p] = enters, beyond
        up_to = min(enters, beyond, waiting)
        stays[COPIED, p], stays[COPIED_UP_TO, p] = first, up_to
        if first < up_to:
            stays[COPIED, p] = _first_open(selected, closes, clock_ms[r], first, up_to)
    return stays


@compiled
def _first_open(selected: np.ndarray, closes: np.ndarray, clock: int, low: int, high: int) -> int:
    """The first of the selected windows [low, high) that a clock does not close."""
    while low < high:
        middle = (low + high) // 2
        if closes[selected[middle]] <= clock:
            low = middle + 1
        else:
            high = middle
    return low
