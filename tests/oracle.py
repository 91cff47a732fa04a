"""The contract for sliding windows in slow, plain Python (rule H1).

Rules A1 to A6, B1 to B6, B8, E1, E4, E5, G1 and G2 by brute force over all records and windows;
nothing is shared with the engine that it judges. Times are whole milliseconds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

Key = str | None
Number = int | float
Aggregates = Mapping[str, tuple[str, str]]  # a result's name: (function, column)


@dataclass(frozen=True)
class SlidingDefinition:
    """The windows wanted, in milliseconds; `first_window_start` is v of rule B6."""

    time_difference: int
    grace: int
    first_window_start: int | None = None
    emit_empty: bool = False
    idle_after: int | None = None


class RecordId(NamedTuple):
    """Names a record, and orders those of one source partition by arrival (rule A1)."""

    unit: int
    source_partition: int
    offset: int


@dataclass(frozen=True)
class Record:
    """An accepted record; a null key is a key of its own (rule A6)."""

    unit: int
    source_partition: int
    offset: int
    key: Key
    event_time: int
    values: Mapping[str, Number | None]

    @property
    def id(self) -> RecordId:
        return RecordId(self.unit, self.source_partition, self.offset)


class Window(NamedTuple):
    """A window as it stands after a unit, with the records that count in it."""

    key: Key
    start: int
    end: int
    records: tuple[Record, ...]
    closed: bool


class WindowRow(NamedTuple):
    """A row of keyed_windows; an empty window has no first and last event time."""

    unit: int
    key: Key
    start: int
    end: int
    first_event_time: int | None
    last_event_time: int | None
    record_count: int
    values: dict[str, Number | None]
    closed: bool


class LateRow(NamedTuple):
    """A record in no window; the reason is 'late', 'uncovered' or 'uncounted' (rule A5)."""

    unit: int
    record: RecordId
    reason: str


class Alert(NamedTuple):
    """A final window that broke the rule; `episode` is the start of its episode's first."""

    unit: int
    key: Key
    start: int
    end: int
    episode: int
    severity: Number | None


class Episode(NamedTuple):
    """Overlapping breaking windows of one key (rule E5)."""

    key: Key
    episode: int
    first: Alert
    last: Alert
    worst: Alert
    alerts: int


def close_time_after(records: Sequence[Record], unit: int, definition: SlidingDefinition) -> float:
    """The close time in force after a unit (rules A2, A4); -inf while nothing is closed."""
    in_force = -math.inf
    idle_after = math.inf if definition.idle_after is None else definition.idle_after
    for earlier in range(unit + 1):
        stream_times: dict[int, int] = {}
        for record in records:
            if record.unit <= earlier:
                largest = stream_times.get(record.source_partition, record.event_time)
                stream_times[record.source_partition] = max(largest, record.event_time)
        furthest = max(stream_times.values(), default=0)
        active = [time for time in stream_times.values() if furthest - time <= idle_after]
        in_force = max(in_force, min(active, default=-math.inf) - definition.grace)
    return in_force


def close_times_met(
    records: Sequence[Record], definition: SlidingDefinition
) -> dict[RecordId, float]:
    """C of each record: its S less grace, never below what was in force (rules A3, A4)."""
    met = {}
    for record in records:
        stream_time = max(
            other.event_time
            for other in records
            if other.source_partition == record.source_partition and other.id <= record.id
        )
        in_force = close_time_after(records, record.unit - 1, definition)
        met[record.id] = max(stream_time - definition.grace, in_force)
    return met


def reason_late(record: Record, close_met: float, definition: SlidingDefinition) -> str | None:
    """Why no window can count the record, known on arrival (rule A5); None if one can.

    What lies below the first window start is uncovered, also where it came late.
    """
    first = definition.first_window_start
    if first is not None and record.event_time < first:
        return "uncovered"
    return "late" if record.event_time + definition.time_difference < close_met else None


def left_start(record: Record, definition: SlidingDefinition) -> int:
    """Where the window to the record's left starts (rules B3, B6)."""
    start = record.event_time - definition.time_difference
    first = definition.first_window_start
    return start if first is None else max(start, first)


def windows_after(
    records: Sequence[Record], unit: int, definition: SlidingDefinition
) -> list[Window]:
    """Every window that exists after a unit, by (key, end), the null key first (rule E1)."""
    difference = definition.time_difference
    met = close_times_met(records, definition)
    seen = [record for record in records if record.unit <= unit]
    close_time = close_time_after(records, unit, definition)
    starts: set[tuple[Key, int]] = set()
    for record in seen:
        if reason_late(record, met[record.id], definition) is not None:
            continue
        left = left_start(record, definition)
        if left + difference >= met[record.id]:  # else closed on arrival (rules B3, B5)
            starts.add((record.key, left))
        starts.add((record.key, record.event_time + 1))
    windows = []
    for key, start in starts:
        end = start + difference
        counted = tuple(
            record
            for record in seen
            if record.key == key and start <= record.event_time <= end  # B2
            if end >= met[record.id]  # A5, B5
        )
        closed = end < close_time
        # Only a closed window is known to stay empty (B8). To the right of a partly late
        # record that no window counts there is one as well.
        if counted or (definition.emit_empty and closed):
            windows.append(Window(key, start, end, counted, closed))
    return sorted(windows, key=_by_key_and_end)


def _by_key_and_end(window: Window | WindowRow) -> tuple[bool, str, int]:
    """The null key first, as in Spark."""
    return (window.key is not None, window.key or "", window.end)


def keyed_windows(
    records: Sequence[Record], units: int, definition: SlidingDefinition, aggregates: Aggregates
) -> list[WindowRow]:
    """The windows that each unit changed or closed, as they stood at its end (rule E4)."""
    rows = []
    before: dict[tuple[Key, int], Window] = {}
    for unit in range(units):
        now = {(w.key, w.start): w for w in windows_after(records, unit, definition)}
        rows += [
            _row(unit, window, aggregates)
            for name, window in now.items()
            if name not in before
            or window.closed != before[name].closed
            or any(record.unit == unit for record in window.records)
        ]
        before = now
    return rows


def final_windows(
    records: Sequence[Record], units: int, definition: SlidingDefinition, aggregates: Aggregates
) -> list[WindowRow]:
    """Each window once, as the unit left it that closed it (rule E1)."""
    return [row for row in keyed_windows(records, units, definition, aggregates) if row.closed]


def late_records(
    records: Sequence[Record], units: int, definition: SlidingDefinition
) -> list[LateRow]:
    """Each record in no window, by unit and record (rule A5).

    Late and uncovered ones stand in the unit of their arrival, an uncounted one (partly late,
    rule B5) in the unit that closes the last window which could have held it.
    """
    met = close_times_met(records, definition)
    reasons = {record.id: reason_late(record, met[record.id], definition) for record in records}
    rows = [LateRow(name.unit, name, reason) for name, reason in reasons.items() if reason]
    close_before = -math.inf
    for unit in range(units):
        windows = windows_after(records, unit, definition)
        counted = {record.id for window in windows for record in window.records}
        close_time = close_time_after(records, unit, definition)
        rows += [
            LateRow(unit, record.id, "uncounted")
            for record in records
            if record.unit <= unit and not reasons[record.id] and record.id not in counted
            if close_before <= record.event_time + definition.time_difference < close_time
        ]
        close_before = close_time
    return sorted(rows)


def aggregate(function: str, values: Sequence[Number | None]) -> Number | None:
    """One aggregate of a window's values; nulls are skipped (rules A6, G1, G2)."""
    present = [value + 0 for value in values if value is not None]  # + 0: -0.0 becomes 0.0
    if function == "count":
        return len(present)
    if not present:
        return None
    if function in ("min", "max"):
        return (min if function == "min" else max)(present, key=_spark_order)
    total = exact_sum(present)
    return {"sum": total, "avg": total / len(present)}[function]


def exact_sum(values: Sequence[Number]) -> Number:
    """Exact of whole numbers, else correctly rounded; infinities and NaN as IEEE (rule G2)."""
    if all(isinstance(value, int) for value in values):
        return sum(values)
    special = [value for value in values if not math.isfinite(value)]
    if special:
        return sum(special)
    exact = sum(map(Fraction, values), Fraction(0))
    try:
        return float(exact)
    except OverflowError:  # beyond the largest double
        return math.inf if exact > 0 else -math.inf


def _spark_order(value: Number | None) -> tuple[int, Number]:
    """Null below all numbers, NaN above them."""
    if value is None:
        return (0, 0)
    return (2, 0) if math.isnan(value) else (1, value)


def _row(unit: int, window: Window, aggregates: Aggregates) -> WindowRow:
    times = [record.event_time for record in window.records]
    values = {
        name: aggregate(function, [record.values[column] for record in window.records])
        for name, (function, column) in aggregates.items()
    }
    first, last = min(times, default=None), max(times, default=None)
    bounds = (window.key, window.start, window.end)
    return WindowRow(unit, *bounds, first, last, len(times), values, window.closed)


def alerts(
    final_rows: Sequence[WindowRow],
    predicate: Callable[[WindowRow], bool | None],
    severity: Callable[[WindowRow], Number | None],
) -> list[Alert]:
    """The final windows that break a rule, by key and end (rule E5); null is not broken.

    An episode goes on while the next breaking window starts no later than the last one ended.
    """
    found: list[Alert] = []
    for row in sorted(final_rows, key=_by_key_and_end):
        if predicate(row):
            joins = bool(found) and found[-1].key == row.key and row.start <= found[-1].end
            episode = found[-1].episode if joins else row.start
            found.append(Alert(row.unit, row.key, row.start, row.end, episode, severity(row)))
    return found


def episodes(found: Sequence[Alert]) -> list[Episode]:
    """Alerts by episode, of what `alerts` gives in its order.

    The worst has the largest severity, the earliest end among equals.
    """
    groups: dict[tuple[Key, int], list[Alert]] = {}
    for alert in found:
        groups.setdefault((alert.key, alert.episode), []).append(alert)
    return [
        # max takes the first of equals, and the alerts come by end.
        Episode(*name, group[0], group[-1], max(group, key=_worst), len(group))
        for name, group in groups.items()
    ]


def _worst(alert: Alert) -> tuple[int, Number]:
    return _spark_order(alert.severity)
