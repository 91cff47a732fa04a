"""Row windows in slow, plain Python, from the contract (rules F2, C1, D1 and A6).

What a row's window holds is found by looking at every row of its key, each on its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple


class Row(NamedTuple):
    """An input row; `arrival` says when it came, each value once."""

    key: str | None
    time: int
    arrival: int
    values: dict[str, Any]


class RowsAround(NamedTuple):
    """Frames: all rows from so far before a row to so far after it; None for no bound.

    Measured in milliseconds (`is_range`: rows of one time are peers) or in rows, which stand
    in the order of time and arrival, or of arrival alone.
    """

    is_range: bool
    back: int | None
    ahead: int | None
    by_arrival: bool = False


class TumblingBlock(NamedTuple):
    """A row's window [start, start + size), up to and with it."""

    size: int


class CountBlock(NamedTuple):
    """A row's block of so many rows of its key by arrival, up to and with it."""

    size: int


class Session(NamedTuple):
    """A row's session up to and with it: no longer gap than this between two rows."""

    gap: int


RowDefinition = RowsAround | TumblingBlock | CountBlock | Session


class Held(NamedTuple):
    """What a row's window is: its bounds, where it has them, and its rows."""

    start: int | None
    end: int | None
    rows: list[Row]


def window_of(row: Row, rows: Sequence[Row], definition: RowDefinition) -> Held:
    """The window of one of the rows."""
    own = [each for each in rows if each.key == row.key]
    by_arrival = sorted(own, key=lambda each: each.arrival)
    by_time = sorted(own, key=lambda each: (each.time, each.arrival))
    match definition:
        case RowsAround(is_range=True, back=back, ahead=ahead):
            return Held(None, None, [r for r in own if _between(r.time - row.time, back, ahead)])
        case RowsAround(_, back, ahead, only_arrival):
            order = by_arrival if only_arrival else by_time
            here = order.index(row)
            inside = [r for n, r in enumerate(order) if _between(n - here, back, ahead)]
            return Held(None, None, inside)
        case TumblingBlock(size):
            start = row.time // size * size
            so_far = by_time[: by_time.index(row) + 1]
            return Held(start, start + size, [r for r in so_far if r.time >= start])
        case CountBlock(size):
            here = by_arrival.index(row)
            return Held(None, None, by_arrival[here // size * size : here + 1])
        case Session(gap):
            here = first = by_time.index(row)
            while first > 0 and by_time[first].time - by_time[first - 1].time <= gap:
                first -= 1
            return Held(by_time[first].time, None, by_time[first : here + 1])


def _between(distance: int, back: int | None, ahead: int | None) -> bool:
    return (back is None or distance >= -back) and (ahead is None or distance <= ahead)
