"""What happens to episodes of alerts, in slow, plain Python (rules E4 to E6)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from tests.support.oracle.aggregates import Number, spark_order
from tests.support.oracle.alerts import Alert
from tests.support.oracle.windows import (
    Definition,
    ForwardDefinition,
    Key,
    SessionDefinition,
    SlidingDefinition,
    TimeDefinition,
    WindowRow,
)


class Event(NamedTuple):
    """An event, with the worst window so far, and the episode's end so far."""

    arrival_unit: int
    key: Key
    episode: int
    event: str
    start: int
    end: int
    until: int
    severity: Number | None


def events(
    found: Sequence[Alert],
    closes: Sequence[int],
    definition: Definition,
    final: Sequence[WindowRow],
    severity_of: Callable[[int], Number | None] | None = None,
) -> list[Event]:
    """What happened to the episodes of alerts.

    Args:
        found: The alerts of a rule, as `oracle.alerts.alerts` returns them.
        closes: The close time after each arrival unit.
        definition: The windows.
        final: All final windows.
        severity_of: The severity of an alert whose episode has lasted some time; None if the rule's
            severity does not depend on that.
    """
    groups: dict[tuple[Key, int], list[Alert]] = {}
    for alert in found:
        groups.setdefault((alert.key, alert.episode), []).append(alert)
    happened = []
    for of_episode in groups.values():
        so_far, last = _by_window(of_episode), of_episode[-1]
        happened += [event for event in so_far if event.event]
        if isinstance(definition, SessionDefinition):
            happened.append(so_far[0]._replace(event="ended"))
            continue
        until = _until(last, final)
        arrival_unit = None if until is None else _ended_in(last.end, until, closes, definition)
        if until is not None and arrival_unit is not None:
            worst = _worst_at_end(so_far[-1], last, until, severity_of)
            happened.append(worst._replace(arrival_unit=arrival_unit, event="ended", until=until))
    return sorted(happened, key=repr)


def _by_window(of_episode: Sequence[Alert]) -> list[Event]:
    """How an episode stands after each of its windows; `event` is empty if none happened."""
    worst, found = of_episode[0], []
    for number, alert in enumerate(of_episode):
        worse = spark_order(alert.severity) > spark_order(worst.severity)
        worst = alert if worse else worst
        event = "opened" if number == 0 else "worsened" if worse else ""
        bounds = worst.start, worst.end, alert.end
        found.append(
            Event(alert.arrival_unit, alert.key, alert.episode, event, *bounds, worst.severity)
        )
    return found


def _worst_at_end(
    so_far: Event,
    last: Alert,
    until: int,
    severity_of: Callable[[int], Number | None] | None,
) -> Event:
    """The episode with its worst window; a silence may be the worst by how long it lasted."""
    if not last.is_empty or severity_of is None:
        return so_far
    severity = severity_of(until - last.episode)
    if spark_order(severity) <= spark_order(so_far.severity):
        return so_far
    return so_far._replace(start=last.start, end=last.end, severity=severity)


def _until(last: Alert, final: Sequence[WindowRow]) -> int | None:
    """When an episode ended: with its last window, or when its silent key had a record again."""
    if not last.is_empty:
        return last.end
    held = (row.end for row in final if row.key == last.key and row.record_count > 0)
    return min((end for end in held if end > last.end), default=None)


def _ended_in(
    last_end: int, until: int, closes: Sequence[int], definition: Definition
) -> int | None:
    """The arrival unit in which an episode is known to have ended.

    No window can be open then that starts at or before the end of the last window, and the window
    that ends with the end of the episode is closed.
    """
    match definition:
        case SlidingDefinition(time_difference=length) | ForwardDefinition(size=length):
            closed = [max(last_end + length, until) < close for close in closes]
        case TimeDefinition(size=length):
            closed = [last_end + length <= close for close in closes]
        case _:
            raise AssertionError
    return closed.index(True) if True in closed else None
