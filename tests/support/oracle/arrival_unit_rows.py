"""Row and count windows by arrival unit in slow, plain Python (rules A3, A4, E4, F1, F2, F5).

Of one source partition, whose records come in the order of arrival unit and offset.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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


class ArrivalUnitRow(NamedTuple):
    """A final row: the arrival unit that made it final, its window, and what identifies its row."""

    arrival_unit: int
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


class FramesRow(NamedTuple):
    """A final row of several frames: what names it, its window, and what each frame holds."""

    arrival_unit: int
    row: Record
    start: int
    end: int
    held: list[Record]
    frames: dict[str, list[Record]]


class _Window(NamedTuple):
    row: Record
    start: int
    final_after: int
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
    records: Sequence[Record],
    arrival_units: int,
    definition: RowDefinition | CountDefinition,
    grace: int,
) -> list[ArrivalUnitRow]:
    """The rows by the arrival unit that makes each final: the first with a close time beyond it."""
    return [row for row, _ in final_rows_with_records(records, arrival_units, definition, grace)]


def final_rows_with_records(
    records: Sequence[Record],
    arrival_units: int,
    definition: RowDefinition | CountDefinition,
    grace: int,
) -> list[tuple[ArrivalUnitRow, list[Record]]]:
    """The rows that each arrival unit makes final, each with the records that its window holds."""
    found: dict[object, tuple[ArrivalUnitRow, list[Record]]] = {}
    for arrival_unit in range(arrival_units):
        come = [one for one in in_time(records, grace) if one.arrival_unit <= arrival_unit]
        close = max(one.event_time for one in records if one.arrival_unit <= arrival_unit) - grace
        for row, start, final_after, held in _windows(come, definition):
            if final_after < close and row.id not in found:
                times = [one.event_time for one in held]
                whole = [one.values["whole"] for one in held]
                values = [value for value in whole if isinstance(value, int)]
                total = sum(values) if values else None
                first, last = min(times, default=None), max(times, default=None)
                position = (row.event_time, row.arrival_unit, row.offset)
                final = ArrivalUnitRow(
                    arrival_unit,
                    row.key,
                    start,
                    final_after,
                    first,
                    last,
                    len(held),
                    total,
                    *position,
                )
                found[row.id] = (final, held)
    return list(found.values())


def final_rows_of_frames(
    records: Sequence[Record], arrival_units: int, frames: Mapping[str, RowsAround], grace: int
) -> list[FramesRow]:
    """The rows of several frames that each arrival unit makes final; see `final_rows`.

    A row's window holds what lies between the outermost bounds, by time and by rows.
    """
    found: dict[object, FramesRow] = {}
    for arrival_unit in range(arrival_units):
        come = [one for one in in_time(records, grace) if one.arrival_unit <= arrival_unit]
        close = max(one.event_time for one in records if one.arrival_unit <= arrival_unit) - grace
        outer = [_by_row(come, each) for each in _outermost(list(frames.values()))]
        of_frames = {name: _by_row(come, frame) for name, frame in frames.items()}
        for row in come:
            windows = [each[row.id] for each in outer if row.id in each]
            final_after = max((each.final_after for each in windows), default=close)
            if len(windows) < len(outer) or final_after >= close or row.id in found:
                continue
            held = {one.id: one for each in windows for one in each.held}
            start = min(each.start for each in windows)
            inside = {name: of_frames[name][row.id].held for name in frames}
            found[row.id] = FramesRow(
                arrival_unit, row, start, final_after, list(held.values()), inside
            )
    return list(found.values())


def _by_row(come: Sequence[Record], frame: RowsAround) -> dict[object, _Window]:
    return {each.row.id: each for each in _windows(come, frame)}


def _outermost(frames: Sequence[RowsAround]) -> list[RowsAround]:
    """From the furthest start to the furthest end of the frames of each unit, with the row."""
    found = []
    for is_range in (True, False):
        of_arrival_unit = [each for each in frames if each.is_range is is_range]
        backs, aheads = (
            [each.back for each in of_arrival_unit],
            [each.ahead for each in of_arrival_unit],
        )
        if of_arrival_unit:
            back = None if None in backs else max(0, *(each or 0 for each in backs))
            found.append(RowsAround(is_range, back, max(0, *(each or 0 for each in aheads))))
    return found


def _windows(come: Sequence[Record], definition: RowDefinition | CountDefinition) -> list[_Window]:
    """The windows that there are so far; those whose end nobody knows yet left out."""
    if isinstance(definition, CountDefinition):
        size, advance, short_first = definition
        fired = count_windows([one.key for one in come], size, advance, short_first=short_first)
        several = ([come[position] for position in one.held] for one in fired)
        return [_Window(held[-1], *_span(held), held) for held in several]
    rows = [Row(one.key, one.event_time, position, {}) for position, one in enumerate(come)]
    windows = []
    for row in rows:
        window = window_of(row, rows, definition)
        held = [come[one.arrival] for one in window.rows]
        span = _span([come[row.arrival], *held])
        start = span[0] if window.start is None else window.start
        final_after: int | None = row.time
        match definition:
            case RowsAround(is_range=True, back=back, ahead=ahead):
                start = span[0] if back is None else min(row.time, row.time - back)
                final_after = max(row.time, row.time + (ahead or 0))
            case RowsAround(is_range=False, ahead=ahead):
                final_after = _follower(row, rows, ahead or 0)
            case CountBlock():
                final_after = span[1]
            case TumblingBlock() | Session():
                pass
        if final_after is not None:
            windows.append(_Window(come[row.arrival], start, final_after, held))
    return windows


def _span(held: Sequence[Record]) -> tuple[int, int]:
    times = [one.event_time for one in held]
    return min(times), max(times)


def _follower(row: Row, rows: Sequence[Row], ahead: int) -> int | None:
    """When the last of so many followers happened; None while it has fewer."""
    if ahead <= 0:
        return row.time
    position = (row.time, row.arrival)
    later = sorted(
        (one.time, one.arrival)
        for one in rows
        if one.key == row.key and (one.time, one.arrival) > position
    )
    return later[ahead - 1][0] if len(later) >= ahead else None
