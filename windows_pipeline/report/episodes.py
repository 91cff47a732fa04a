"""Episodes of alerts, the worst first, read from the table alerts (rule E5)."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from functools import cached_property
from math import inf, isnan
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from windows_pipeline.config import Windows
from windows_pipeline.query.tables.arrow_values import python_rows, python_values
from windows_pipeline.query.tables.readable import ReadableTable
from windows_pipeline.query.tables.wanted import Wanted
from windows_pipeline.report.words import between
from windows_pipeline.text.values import key_text, short

MOST_EPISODES = 40
"""The most episodes that a report shows in full: the worst ones."""
MOST_ALERTS = 500_000
"""The most alerts that a report reads: those of the newest arrival days."""
Bounds = tuple[datetime, datetime]


@dataclass
class Episode:
    """Alerts of one key and rule whose windows overlap.

    Attributes:
        rule: The rule's name.
        key: The key as the table has it; of several columns a dict.
        first: The start of its first window.
        last: The end of its last window; for a silence that ended, the key's next record.
        alerts: The number of its alerts that were read.
        severity: The largest severity; None if no window has one.
        windows: The bounds of its windows.
        ends_empty: Whether its last window holds no record: the key was silent, or is still.
        is_open: Whether a later window may continue it; None if that is not known.
        worst_in: The rows, and the number of the row, of the worst window: the largest severity,
            the earliest end of several.
        worst_end: The end of that window.
        urgency: The rank of its rule's level, 0 for the most urgent.
    """

    rule: str
    key: Any
    first: datetime
    last: datetime
    alerts: int = 0
    severity: float | None = None
    windows: set[Bounds] = field(default_factory=set)
    ends_empty: bool = False
    is_open: bool | None = None
    worst_in: tuple[pa.Table, int] | None = field(default=None, repr=False)
    worst_end: datetime | None = None
    urgency: int = 0

    @cached_property
    def worst(self) -> Mapping[str, Any]:
        """The row of its worst window."""
        if self.worst_in is None:
            return {}
        rows, number = self.worst_in
        return next(python_rows(rows.slice(number, 1)))

    @property
    def key_text(self) -> str:
        """The key as commands take it."""
        return key_text(self.key)

    @property
    def length_ms(self) -> int:
        """The time from its start to its end."""
        return between(self.first, self.last)

    @property
    def badness(self) -> tuple[int, float, int, float, str, str]:
        """The sort key of episodes: the most urgent first, then the worst, then the longest.

        Severities of rules may have different units, so the level comes first. Silences are often
        equally bad but for their length.
        """
        began = self.first.timestamp()
        of_rule = (-_rank(self.severity), -self.length_ms, began, self.rule, self.key_text)
        return (self.urgency, *of_rule)

    def worst_value(self, name: str) -> str:
        """A result of the worst window, as a text."""
        return short(self.worst.get(name))


@dataclass(frozen=True)
class Episodes:
    """The episodes of a window definition.

    Attributes:
        found: All of them, the worst first.
        alerts: How many alerts they have.
        read_from: The first arrival day that was read; None if all days were.
    """

    found: tuple[Episode, ...]
    alerts: int
    read_from: date | None


def read_episodes(
    table: ReadableTable, days: Collection[date], windows: Windows, most: int = MOST_ALERTS
) -> Episodes:
    """The episodes of the alerts of some arrival days that no correction retracted.

    Args:
        table: The table alerts.
        days: The arrival days.
        windows: The definition, whose rules have levels.
        most: The most alerts to read; at least one whole day is read.

    Raises:
        TableDamagedError: A file of the table is damaged.
    """
    found: dict[tuple[object, ...], Episode] = {}
    read, read_from = 0, None
    # Collected values may be large, and no page shows them.
    columns = [
        column.name
        for column in table.schema
        if column.name == "key" or not pa.types.is_nested(column.type)
    ]
    for day in sorted(set(days) & table.days, reverse=True):
        if read >= most:
            break
        read_from = day
        rows = table.read(Wanted(days=frozenset((day,))), columns)
        standing = rows.filter(pc.is_null(rows["retracted_by"]))
        read += standing.num_rows
        _add(standing, found)
    for episode in found.values():
        episode.urgency = windows.urgency(episode.rule)
    in_order = sorted(found.values(), key=lambda episode: episode.badness)
    every = read_from is None or read_from == min(set(days) & table.days)
    return Episodes(tuple(in_order), read, None if every else read_from)


def mark_open(episodes: Episodes, windows: Windows, closed_ms: int | None) -> None:
    """Says of each episode whether a later window may continue it.

    Args:
        episodes: The episodes.
        windows: The definition.
        closed_ms: The close time of the newest day; None if it is not known.
    """
    length = timedelta(milliseconds=getattr(windows.spec, "length_ms", 0))
    for episode in episodes.found:
        if closed_ms is not None:
            possible = (episode.last + length).timestamp() * 1_000
            episode.is_open = possible >= closed_ms


def _add(rows: pa.Table, found: dict[tuple[object, ...], Episode]) -> None:
    for number, (rule, key, began, start, end, severity, count) in enumerate(_columns(rows)):
        at = (rule, tuple(key.values()) if isinstance(key, dict) else key, began)
        episode = found.get(at)
        if episode is None:
            episode = found[at] = Episode(rule, key, began, end)
        episode.alerts += 1
        if end >= episode.last:
            episode.last, episode.ends_empty = end, count == 0
        episode.windows.add((start, end))
        rank, so_far = _rank(severity), _rank(episode.severity)
        is_first = episode.worst_end is None or (rank == so_far and end < episode.worst_end)
        if is_first or rank > so_far:
            episode.severity, episode.worst_end = severity, end
            episode.worst_in = (rows, number)


def _columns(rows: pa.Table) -> Iterator[tuple[Any, ...]]:
    names = ("rule", "key", "episode_start", "window_start", "window_end", "severity")
    columns = (python_values(rows[name]) for name in (*names, "record_count"))
    return zip(*columns, strict=True)


def _rank(severity: float | None) -> float:
    """The rank of a severity: null is the smallest, NaN the largest, as Spark has them."""
    if severity is None:
        return -inf
    return inf if isnan(severity) else severity
