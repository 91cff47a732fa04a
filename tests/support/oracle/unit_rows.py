"""Row and count windows by arrival unit in slow, plain Python (rules A3, A4, E4, F1, F2, F5).

Of one source partition, whose records come in the order of unit and offset.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tests.support.oracle.count import count_windows
from tests.support.oracle.rows import (
    CountBlock,
    Row,
    RowDefinition,
    RowsAround,
    Session,
    TumblingBlock,
    window_of,
)
from tests.support.oracle.windows import Record


class CountDefinition(NamedTuple):
    """Windows of so many records of a key, by arrival."""

    size: int
    advance: int
    short_first: bool = False


class UnitRow(NamedTuple):
    """A final row: the unit that settled it, its window, and what of the row names it."""

    unit: int
    key: str | None
    start: int
    end: int
    first: int | None
    last: int | None
    record_count: int
    total: int | None
    time: int
    arrived: int
    offset: int


class _Window(NamedTuple):
    row: Record
    start: int
    settled: int
    held: list[Record]


def in_time(records: Sequence[Record], grace: int) -> list[Record]:
    """The records that do not lie before the close time that they met, in arrival order."""
    kept = []
    stream_time = min(one.event_time for one in records)
    for one in sorted(records, key=lambda one: one.id):
        stream_time = max(stream_time, one.event_time)
        if one.event_time >= stream_time - grace:
            kept.append(one)
    return kept


def final_rows(
    records: Sequence[Record], units: int, definition: RowDefinition | CountDefinition, grace: int
) -> list[UnitRow]:
    """The rows that each unit settles: the first one after which its close time is beyond them."""
    found: dict[object, UnitRow] = {}
    for unit in range(units):
        come = [one for one in in_time(records, grace) if one.unit <= unit]
        close = max(one.event_time for one in records if one.unit <= unit) - grace
        for row, start, settled, held in _windows(come, definition):
            if settled < close and row.id not in found:
                times = [one.event_time for one in held]
                whole = [one.values["whole"] for one in held]
                values = [value for value in whole if isinstance(value, int)]
                total = sum(values) if values else None
                first, last = min(times, default=None), max(times, default=None)
                place = (row.event_time, row.unit, row.offset)
                found[row.id] = UnitRow(
                    unit, row.key, start, settled, first, last, len(held), total, *place
                )
    return list(found.values())


def _windows(come: Sequence[Record], definition: RowDefinition | CountDefinition) -> list[_Window]:
    """The windows that there are so far; those whose end nobody knows yet left out."""
    if isinstance(definition, CountDefinition):
        size, advance, short_first = definition
        fired = count_windows([one.key for one in come], size, advance, short_first=short_first)
        several = ([come[place] for place in one.held] for one in fired)
        return [_Window(held[-1], *_span(held), held) for held in several]
    rows = [Row(one.key, one.event_time, place, {}) for place, one in enumerate(come)]
    windows = []
    for row in rows:
        window = window_of(row, rows, definition)
        held = [come[one.arrival] for one in window.rows]
        span = _span([come[row.arrival], *held])
        start = span[0] if window.start is None else window.start
        settled: int | None = row.time
        match definition:
            case RowsAround(is_range=True, back=back, ahead=ahead):
                start = span[0] if back is None else min(row.time, row.time - back)
                settled = max(row.time, row.time + (ahead or 0))
            case RowsAround(is_range=False, ahead=ahead):
                settled = _follower(row, rows, ahead or 0)
            case CountBlock():
                settled = span[1]
            case TumblingBlock() | Session():
                pass
        if settled is not None:
            windows.append(_Window(come[row.arrival], start, settled, held))
    return windows


def _span(held: Sequence[Record]) -> tuple[int, int]:
    times = [one.event_time for one in held]
    return min(times), max(times)


def _follower(row: Row, rows: Sequence[Row], ahead: int) -> int | None:
    """When the last of so many followers happened; None while it has fewer."""
    if ahead <= 0:
        return row.time
    place = (row.time, row.arrival)
    later = sorted(
        (one.time, one.arrival)
        for one in rows
        if one.key == row.key and (one.time, one.arrival) > place
    )
    return later[ahead - 1][0] if len(later) >= ahead else None
