"""Panes of overlapping windows, filled in one pass: what several show is put into them once."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from windows_pipeline.compat.numba_jit import compiled

ENTERS, LEAVES, COPIED, COPIED_UP_TO = range(4)


class Chain(NamedTuple):
    """The records that some windows show, one window after the other.

    Attributes:
        records: In the order in which they leave.
        enter_order: Their places there, in the order in which they enter.
        left: Of each window how many have left by its pane.
        entered: How many have entered.
        later: How many enter after it, each a firing of the window, before the next one's.
    """

    records: np.ndarray
    enter_order: np.ndarray
    left: np.ndarray
    entered: np.ndarray
    later: np.ndarray


@compiled
def chain(
    of: np.ndarray,
    until: np.ndarray,
    waiting: int,
    with_late: bool,  # noqa: FBT001  compiled code takes its arguments by place
    records: np.ndarray,
    start_ms: np.ndarray,
    last_ms: np.ndarray,
    closes: np.ndarray,
    time_ms: np.ndarray,
    clock_ms: np.ndarray,
) -> Chain:
    """Puts records into the panes of windows, and takes them out, in the order of the windows.

    A window shows the records within its bounds that came before one of them. A record that
    all further windows show, too, stays in until they lie behind it. Others are copied for each
    window that shows them: it leaves with that window. Late ones are copied so: a firing each.

    Args:
        of: The windows, by start and end.
        until: Of each of these, the first record that its pane does not show.
        waiting: How many of the first ones can have records that come after it.
        with_late: Whether these are wanted.
        records: In the order of event time, some of which the windows show.
        start_ms: Of each window the first event time.
        last_ms: The last.
        closes: The clock that closes it.
        time_ms: Event times, in the order of arrival.
        clock_ms: The clock that each record met.
    """
    stays = stays_of(of, until, waiting, records, start_ms, last_ms, closes, time_ms, clock_ms)
    entering, leaving = np.zeros(len(of) + 1, np.int64), np.zeros(len(of) + 1, np.int64)
    copies = np.zeros(len(of) + 1, np.int64)
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
    left = copy_at[: len(of)]
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
    entered, later = next_enter[: len(of)], np.zeros(len(of), np.int64)
    for w in np.flatnonzero(copies):
        own = order[copy_at[w] : next_copy[w]]
        enter_order[entered[w] : entered[w] + len(own)] = copy_at[w] + np.argsort(own)
        later[w] = (own >= until[w]).sum()
        entered[w] += len(own) - later[w]
    return Chain(order, enter_order, left, entered, later)


@compiled
def stays_of(
    of: np.ndarray,
    until: np.ndarray,
    waiting: int,
    records: np.ndarray,
    start_ms: np.ndarray,
    last_ms: np.ndarray,
    closes: np.ndarray,
    time_ms: np.ndarray,
    clock_ms: np.ndarray,
) -> np.ndarray:
    """From which window to before which one each record stays, and is copied; see `chain`."""
    always = until.copy()  # the records before it are shown by all further windows, too
    for k in range(len(of) - 2, -1, -1):
        always[k] = min(always[k], always[k + 1])
    stays = np.zeros((4, len(records)), np.int64)
    first = beyond = 0
    for p in range(len(records)):
        r = records[p]
        while first < len(of) and last_ms[of[first]] < time_ms[r]:
            first += 1
        while beyond < len(of) and start_ms[of[beyond]] <= time_ms[r]:
            beyond += 1
        enters = first + np.searchsorted(always[first:beyond], r, side="right")
        stays[ENTERS, p], stays[LEAVES, p] = enters, beyond
        up_to = min(enters, beyond, waiting)
        stays[COPIED, p], stays[COPIED_UP_TO, p] = first, up_to
        if first < up_to:
            stays[COPIED, p] = _first_open(of, closes, clock_ms[r], first, up_to)
    return stays


@compiled
def _first_open(of: np.ndarray, closes: np.ndarray, clock: int, low: int, high: int) -> int:
    """The first of some windows that a clock does not close."""
    while low < high:
        middle = (low + high) // 2
        if closes[of[middle]] <= clock:
            low = middle + 1
        else:
            high = middle
    return low
