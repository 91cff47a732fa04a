"""What happens to episodes of alerts, in slow, plain Python (rules E4, E5)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tests.support.oracle.aggregates import spark_order
from tests.support.oracle.alerts import Alert
from tests.support.oracle.windows import (
    Definition,
    ForwardDefinition,
    Key,
    SessionDefinition,
    SlidingDefinition,
    TimeDefinition,
)


class Event(NamedTuple):
    """An event, with the bounds of the worst window so far and the episode's end so far."""

    unit: int
    key: Key
    episode: int
    event: str
    start: int
    end: int
    until: int


def events(found: Sequence[Alert], closes: Sequence[int], definition: Definition) -> list[Event]:
    """What happened to the episodes of alerts.

    Args:
        found: The alerts of a rule, as `oracle.alerts.alerts` returns them.
        closes: The close time after each unit.
        definition: The windows.
    """
    groups: dict[tuple[Key, int], list[Alert]] = {}
    for alert in found:
        groups.setdefault((alert.key, alert.episode), []).append(alert)
    happened = []
    for (key, episode), of_episode in groups.items():
        worst = of_episode[0]
        for number, alert in enumerate(of_episode):
            worse = spark_order(alert.severity) > spark_order(worst.severity)
            worst = alert if worse else worst
            row = Event(alert.unit, key, episode, "", worst.start, worst.end, alert.end)
            if number == 0:
                happened.append(row._replace(event="opened"))
            elif worse:
                happened.append(row._replace(event="worsened"))
            if number == 0 and isinstance(definition, SessionDefinition):
                happened.append(row._replace(event="ended"))
        is_silent = isinstance(definition, SlidingDefinition) and of_episode[-1].is_empty
        if not isinstance(definition, SessionDefinition) and not is_silent:
            unit = _ended_in(of_episode[-1].end, closes, definition)
            if unit is not None:
                happened.append(row._replace(unit=unit, event="ended"))
    return sorted(happened, key=repr)


def _ended_in(last_end: int, closes: Sequence[int], definition: Definition) -> int | None:
    """The unit after which no window can be open that starts at or before an instant."""
    match definition:
        case SlidingDefinition(time_difference=length) | ForwardDefinition(size=length):
            closed = [last_end + length < close for close in closes]
        case TimeDefinition(size=length):
            closed = [last_end + length <= close for close in closes]
        case _:
            raise AssertionError
    return closed.index(True) if True in closed else None
