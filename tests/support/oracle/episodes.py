"""What each arrival unit lists of episodes, in slow, plain Python (rules B8, E4, E5)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from tests.support.oracle.aggregates import Number, spark_order
from tests.support.oracle.alerts import Alert, episodes
from tests.support.oracle.windows import Key, WindowRow

MOST_MS = 32 * 86_400_000
"""How long a silence that goes on is listed, from the start of its window."""


class Listed(NamedTuple):
    """An episode at the close of an arrival unit, with its worst window."""

    arrival_unit: int
    key: Key
    episode: int
    until: int
    open_until: int | None
    has_alert: bool
    alerts: int
    severity: Number | None
    start: int
    end: int


def listed(
    found: Sequence[Alert],
    closes: Sequence[int],
    length: int,
    final: Sequence[WindowRow],
    severity_of: Callable[[int], Number | None] | None = None,
) -> list[Listed]:
    """The episodes that each arrival unit lists.

    Args:
        found: The alerts of a rule, as `oracle.alerts.alerts` returns them.
        closes: The close time after each arrival unit.
        length: The length of a sliding window.
        final: All final windows.
        severity_of: The severity of an alert whose episode has lasted some time; None if the rule's
            severity does not depend on that.
    """
    rows = []
    for unit, close in enumerate(closes):
        for episode in episodes([alert for alert in found if alert.arrival_unit <= unit]):
            last, worst = episode.last, episode.worst
            severity, until = worst.severity, last.end
            open_until: int | None = last.end + length
            has_alert = last.arrival_unit == unit
            if last.is_empty:
                back = _back(last, final)
                is_over = back is not None and back < close
                was_over = back is not None and back < closes[unit - 1]
                if not has_alert and (was_over or (not is_over and close > last.start + MOST_MS)):
                    continue
                until, open_until = max(last.end, close), None
                if back is not None and is_over:
                    until = open_until = back
                now = None if severity_of is None else severity_of(until - episode.episode)
                if severity_of is not None and spark_order(now) > spark_order(severity):
                    severity, worst = now, last
            elif not has_alert:
                continue
            of_episode = (unit, episode.key, episode.episode, until, open_until, has_alert)
            rows.append(Listed(*of_episode, episode.alerts, severity, worst.start, worst.end))
    return rows


def _back(silence: Alert, final: Sequence[WindowRow]) -> int | None:
    """The key's next record: the end of its first later window that holds one."""
    held = (row.end for row in final if row.key == silence.key and row.record_count > 0)
    return min((end for end in held if end > silence.end), default=None)
