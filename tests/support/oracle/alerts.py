"""Alerts and their episodes in slow, plain Python (rule E5)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from tests.support.oracle.aggregates import Number, spark_order
from tests.support.oracle.windows import Key, WindowRow


class Alert(NamedTuple):
    """A final window that broke the rule; `episode` is the start of its episode's first."""

    arrival_unit: int
    key: Key
    start: int
    end: int
    episode: int
    severity: Number | None
    is_empty: bool = False


class Episode(NamedTuple):
    """Overlapping breaking windows of one key (rule E5)."""

    key: Key
    episode: int
    first: Alert
    last: Alert
    worst: Alert
    alerts: int


def alerts(
    final_rows: Sequence[WindowRow],
    predicate: Callable[[WindowRow], bool | None],
    severity: Callable[[WindowRow], Number | None],
) -> list[Alert]:
    """The final windows that break a rule, by key and end; null is not broken.

    An episode goes on while the next breaking window starts no later than the last one ended.
    """
    found: list[Alert] = []
    for row in sorted(final_rows, key=lambda row: (row.key is not None, row.key or "", row.end)):
        if predicate(row):
            joins = bool(found) and found[-1].key == row.key and row.start <= found[-1].end
            episode = found[-1].episode if joins else row.start
            bounds = row.arrival_unit, row.key, row.start, row.end
            found.append(Alert(*bounds, episode, severity(row), row.record_count == 0))
    return found


def lasting(found: Sequence[Alert]) -> list[Alert]:
    """The same alerts, whose severity is how long their episode has lasted, in milliseconds."""
    return [alert._replace(severity=alert.end - alert.episode) for alert in found]


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
    return spark_order(alert.severity)
