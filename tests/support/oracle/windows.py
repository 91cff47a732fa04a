"""The contract's windows in slow, plain Python (rule H1).

Rules A1 to A6, B2 to B8, C1, D, E1, E4, G1 and G2 by brute force over all records and windows;
nothing is shared with the engine that it judges. Times are whole milliseconds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from tests.support.oracle.aggregates import AggregateFailedError, aggregate
from tests.support.oracle.arrival import (
    Key,
    Record,
    RecordId,
    close_time_after,
    close_times_met,
    frontier_after,
    in_arrival_order,
    positions_met,
)
from tests.support.oracle.definitions import (
    Definition,
    FixedDefinition,
    ForwardDefinition,
    SessionDefinition,
    SlidingDefinition,
    Span,
    TimeDefinition,
    holds,
    is_closed,
)
from tests.support.oracle.expressions import Computed, ExpressionFailedError

__all__ = [
    "Aggregates",
    "AggregatesOf",
    "Definition",
    "FixedDefinition",
    "ForwardDefinition",
    "Key",
    "LateRow",
    "Record",
    "RecordId",
    "SessionDefinition",
    "SlidingDefinition",
    "TimeDefinition",
    "Window",
    "WindowRow",
    "close_time_after",
    "close_times_met",
    "final_windows",
    "keyed_windows",
    "late_records",
    "lateness",
    "reason_late",
    "windows_after",
]

Aggregates = Mapping[str, tuple[str, str]]  # a result's name: (function, column)
AggregatesOf = Mapping[str, tuple[str, str | Computed]]  # or what it takes of a record


class Window(NamedTuple):
    """A window as it stands after an arrival unit, with the records that count in it."""

    key: Key
    start: int
    end: int
    records: tuple[Record, ...]
    closed: bool


class WindowRow(NamedTuple):
    """A row of keyed_windows; an empty window has no first and last event time.

    `failed` names the aggregates that can't be computed and are null (rule G3).
    """

    arrival_unit: int
    key: Key
    start: int
    end: int
    first_event_time: int | None
    last_event_time: int | None
    record_count: int
    values: dict[str, Any]
    closed: bool
    failed: tuple[str, ...] = ()


class LateRow(NamedTuple):
    """A record in no window; the reason is 'late', 'outside_windows' or 'partly_late' (rule A5)."""

    arrival_unit: int
    record: RecordId
    reason: str


def windows_after(
    records: Sequence[Record], arrival_unit: int, definition: Definition
) -> list[Window]:
    """Every window that exists after an arrival unit, by (key, end), null first (rule E1)."""
    seen = [record for record in records if record.arrival_unit <= arrival_unit]
    close_time = close_time_after(records, arrival_unit, definition)
    if isinstance(definition, SessionDefinition):
        sessions, _ = _sessions_and_late(seen, definition)
        found = [(s[0].key, _first_to_last(s), s) for s in sessions]
    else:
        found = _fixed_windows(seen, close_time, definition)
    windows = [
        Window(key, *span, tuple(counted), is_closed(span.end, close_time, definition))
        for key, span, counted in found
    ]
    return sorted(windows, key=lambda w: (w.key is not None, w.key or "", w.end))


def reason_late(record: Record, close_met: float, definition: FixedDefinition) -> str | None:
    """Why no window can count the record, known on arrival (rule A5); None if one can.

    What no window covers is outside every window, also where it came late.
    """
    last = definition.last_window(record.event_time)
    if last is None:
        return "outside_windows"
    return "late" if is_closed(last.end, close_met, definition) else None


def _fixed_windows(
    seen: Sequence[Record], close_time: float, definition: FixedDefinition
) -> list[tuple[Key, Span, list[Record]]]:
    met = close_times_met(seen, definition)
    on_time = [record for record in seen if not reason_late(record, met[record.id], definition)]
    made = {
        (record.key, span)
        for record in on_time
        for span in definition.windows_made(record.event_time)
        if not is_closed(span.end, met[record.id], definition)  # B3, B5
    }
    emit_empty = not isinstance(definition, ForwardDefinition) and definition.emit_empty
    if isinstance(definition, TimeDefinition) and emit_empty:
        for key in {record.key for record in on_time}:
            first = min(record.event_time for record in on_time if record.key == key)
            made |= {(key, span) for span in definition.silent_windows(first, close_time)}
    found = []
    for key, span in made:
        counted = [
            record
            for record in seen
            if record.key == key and holds(span, record.event_time, definition)
            if not is_closed(span.end, met[record.id], definition)  # A5, B5
        ]
        # Only a closed window is known to stay empty (B8). To the right of a partly late
        # record that no window counts there is one as well.
        if counted or (emit_empty and is_closed(span.end, close_time, definition)):
            found.append((key, span, counted))
    return found


def _sessions_and_late(
    seen: Sequence[Record], definition: SessionDefinition
) -> tuple[list[list[Record]], list[Record]]:
    """The sessions that the records make as they arrive, and what is late (rules A5, D2)."""
    met = close_times_met(seen, definition)
    sessions: list[list[Record]] = []
    late = []
    for record in in_arrival_order(seen, definition):
        merged = [record]
        others = []
        for session in sessions:
            if (
                session[0].key == record.key
                and any(abs(record.event_time - r.event_time) <= definition.gap for r in session)
                and not is_closed(_first_to_last(session).end, met[record.id], definition)
            ):
                merged += session
            else:
                others.append(session)
        if is_closed(_first_to_last(merged).end, met[record.id], definition):
            late.append(record)
        else:
            sessions = [*others, sorted(merged, key=lambda each: each.id)]
    return sessions, late


def _first_to_last(session: Sequence[Record]) -> Span:
    times = [record.event_time for record in session]
    return Span(min(times), max(times))


def keyed_windows(
    records: Sequence[Record], arrival_units: int, definition: Definition, aggregates: AggregatesOf
) -> list[WindowRow]:
    """The windows that each arrival unit changed or closed, as they stood at its end (rule E4)."""
    rows = []
    before: list[Window] = []
    for arrival_unit in range(arrival_units):
        now = windows_after(records, arrival_unit, definition)
        rows += [_row(arrival_unit, window, aggregates) for window in now if window not in before]
        before = now
    return rows


def final_windows(
    records: Sequence[Record], arrival_units: int, definition: Definition, aggregates: AggregatesOf
) -> list[WindowRow]:
    """Each window once, as the arrival unit left it that closed it (rule E1)."""
    return [
        row for row in keyed_windows(records, arrival_units, definition, aggregates) if row.closed
    ]


def _row(arrival_unit: int, window: Window, aggregates: AggregatesOf) -> WindowRow:
    times = [record.event_time for record in window.records]
    values: dict[str, Any] = {}
    failed = []
    for name, (function, column) in aggregates.items():
        is_bigint = column == "whole" or isinstance(column, Computed)
        kind = "bigint" if is_bigint else None
        try:
            own = [
                column.of(record.values, (record.arrival_unit, record.offset))
                if isinstance(column, Computed)
                else record.values[column]
                for record in window.records
            ]
            values[name] = aggregate(function, own, times, kind)
        except (AggregateFailedError, ExpressionFailedError):
            values[name] = None
            failed.append(name)
    first, last = min(times, default=None), max(times, default=None)
    bounds = (window.key, window.start, window.end)
    return WindowRow(
        arrival_unit, *bounds, first, last, len(times), values, window.closed, tuple(failed)
    )


def late_records(
    records: Sequence[Record], arrival_units: int, definition: Definition
) -> list[LateRow]:
    """Each record in no window, with the arrival unit that makes this final (rule A5).

    Records that are late or outside every window stand in the arrival unit that brings them. A
    record that is dropped (partly late, rule B5) stands in the arrival unit that closes the last
    window that could have held it. A record that is late for every session stands in the arrival
    unit after which no record can be merged in before it: a source partition that is behind may
    still bring one that makes a session for it. With a single partition, that is the arrival unit
    that brings it.
    """
    listed: dict[RecordId, LateRow] = {}
    for arrival_unit in range(arrival_units):
        for name, reason in _final_after(records, arrival_unit, definition).items():
            listed.setdefault(name, LateRow(arrival_unit, name, reason))
    return sorted(listed.values())


def lateness(records: Sequence[Record], definition: Definition) -> dict[RecordId, str]:
    """The records that are late or outside windows, given these records alone (rule A5)."""
    if isinstance(definition, SessionDefinition):
        return {record.id: "late" for record in _sessions_and_late(records, definition)[1]}
    met = close_times_met(records, definition)
    reasons = {record.id: reason_late(record, met[record.id], definition) for record in records}
    return {name: reason for name, reason in reasons.items() if reason}


def _final_after(
    records: Sequence[Record], arrival_unit: int, definition: Definition
) -> dict[RecordId, str]:
    """The records that after an arrival unit are known to be in no window ever."""
    seen = [record for record in records if record.arrival_unit <= arrival_unit]
    reasons = lateness(seen, definition)
    if isinstance(definition, SessionDefinition):
        positions = positions_met(seen, definition)
        frontier = frontier_after(seen, arrival_unit, definition)
        return {name: reason for name, reason in reasons.items() if positions[name] <= frontier}
    close_time = close_time_after(seen, arrival_unit, definition)
    windows = windows_after(seen, arrival_unit, definition)
    counted = {record.id for window in windows for record in window.records}
    for record in seen:
        last = definition.last_window(record.event_time)
        if last and is_closed(last.end, close_time, definition) and record.id not in counted:
            reasons.setdefault(record.id, "partly_late")
    return reasons
