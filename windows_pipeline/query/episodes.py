"""Episodes of alerts as the table episodes has them, the worst first (rules B8, E5)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from functools import cached_property
from math import inf, isnan
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from windows_pipeline.config import Pipeline, Windows
from windows_pipeline.query.alert_ids import ALERT_ID, alert_id, columns_of_ids
from windows_pipeline.query.tables.arrow_values import (
    doubles,
    microseconds,
    python_rows,
    python_values,
    text,
    texts,
)
from windows_pipeline.query.tables.keys import KeyRange
from windows_pipeline.query.tables.local import LocalTable
from windows_pipeline.query.tables.wanted import Span, Wanted
from windows_pipeline.storage.catalog import TableSpec
from windows_pipeline.text.instants import EPOCH, time_text
from windows_pipeline.text.values import key_text, short
from windows_pipeline.windows.durations import length_text

LENGTH, WORST_WINDOW = "length", "worst window"
"""Columns of texts for people."""
MOST_ROWS = 500_000
"""The most rows that are read: those of the newest arrival days."""
_MS = timedelta(milliseconds=1)


@dataclass
class Episode:
    """Alerts of one key and rule whose windows overlap, as they stood at the close of a day.

    Attributes:
        day: The arrival day.
        rule: The rule's name.
        key: The key as the table has it; of several columns a dict.
        first: The start of its first window.
        last: The end of its last window; for a silence the key's next record, or the close time.
        open_until: Once the close time is past it, no window can continue the episode; None while
            the key is silent.
        has_alert: Whether the day raised an alert of it.
        alerts: The number of its alerts.
        severity: The largest severity; None if no window has one.
        urgency: The rank of its rule's level, 0 for the most urgent.
        stored_in: The rows, and the number of the row, that hold it.
    """

    day: date
    rule: str
    key: Any
    first: datetime
    last: datetime
    open_until: datetime | None
    has_alert: bool
    alerts: int
    severity: float | None
    urgency: int
    stored_in: tuple[pa.Table, int] = field(repr=False)

    @property
    def identity(self) -> tuple[object, ...]:
        """What identifies the episode, whatever the day."""
        return _identity(self.rule, self.key, self.first)

    @cached_property
    def worst(self) -> Mapping[str, Any]:
        """The worst window: what identifies it, and its result."""
        rows, number = self.stored_in
        row = next(python_rows(rows.slice(number, 1)))
        return {**row, **row["worst"]}

    @property
    def key_text(self) -> str:
        """The key as commands take it."""
        return key_text(self.key)

    @property
    def length_ms(self) -> int:
        """The time from its start to its end."""
        return (self.last - self.first) // _MS

    @property
    def badness(self) -> tuple[int, float, int, float, str, str]:
        """The sort key of episodes: the most urgent first, then the worst, then the longest.

        Severities of rules may have different units, so the level comes first. Silences are often
        equally bad but for their length.
        """
        began = self.first.timestamp()
        of_rule = (-_rank(self.severity), -self.length_ms, began, self.rule, self.key_text)
        return (self.urgency, *of_rule)

    @property
    def is_silent(self) -> bool:
        """Whether the key was still silent at the day's close."""
        return self.open_until is None

    def is_open(self, closed_ms: int | None) -> bool:
        """Whether a later window may continue it at a close time; if that is unknown, the day's."""
        if self.open_until is None or closed_ms is None:
            return self.open_until is None
        return (self.open_until - EPOCH) // _MS >= closed_ms

    def state(self, closed_ms: int | None) -> str:
        """What became of it until a close time."""
        if self.is_silent:
            return "still silent"
        return "still open" if self.is_open(closed_ms) else "over"

    def worst_text(self, windows: Windows) -> str:
        """When the worst window ends, and its results."""
        names = ("record_count", *(aggregate.name for aggregate in windows.aggregate_list))
        values = [f"{name}={self.worst_value(name)}" for name in names if name in self.worst]
        return f"ends {time_text(self.worst['window_end'])}: {', '.join(values)}"

    def worst_value(self, name: str) -> str:
        """A result of the worst window, as a text."""
        return short(self.worst.get(name))


@dataclass(frozen=True)
class Episodes:
    """The episodes of a window definition.

    Attributes:
        found: All of them, the worst first.
        alerts: How many alerts they have.
        read_from: The first arrival day that was read; None if all were.
    """

    found: tuple[Episode, ...]
    alerts: int
    read_from: date | None


def read_episodes(
    table: LocalTable,
    windows: Windows,
    days: Collection[date] | None = None,
    keys: KeyRange | None = None,
    most: int = MOST_ROWS,
) -> Episodes:
    """The episodes as they stood at the close of the newest of some arrival days.

    Args:
        table: The table episodes.
        windows: The definition, whose rules have levels.
        days: The arrival days; None for all.
        keys: The keys; None for all.
        most: The most rows to read; at least one whole day is read.

    Raises:
        TableDamagedError: A file of the table is damaged.
    """
    found: dict[tuple[object, ...], Episode] = {}
    wanted = table.days if days is None else table.days.intersection(days)
    read, read_from = 0, None
    for day in sorted(wanted, reverse=True):
        if read >= most:
            break
        read_from = day
        for episode in episodes_of_days(table, windows, [day], keys):
            read += 1
            found.setdefault(episode.identity, episode)
    in_order = sorted(found.values(), key=lambda episode: episode.badness)
    alerts = sum(episode.alerts for episode in in_order)
    every = read_from is None or read_from == min(wanted)
    return Episodes(tuple(in_order), alerts, None if every else read_from)


def episodes_of_days(
    table: LocalTable, windows: Windows, days: Iterable[date], keys: KeyRange | None = None
) -> Iterator[Episode]:
    """The rows of some arrival days, in no order."""
    wanted = Wanted(KeyRange() if keys is None else keys, days=frozenset(days))
    yield from _episodes(table.read(wanted), windows)


def _episodes(rows: pa.Table, windows: Windows) -> Iterator[Episode]:
    names = ("arrival_unit", "rule", "key", "episode_start", "until", "open_until")
    columns = [python_values(rows[name]) for name in (*names, "has_alert", "alerts", "severity")]
    for number, values in enumerate(zip(*columns, strict=True)):
        made: tuple[Any, ...] = (*values, windows.urgency(values[1]), (rows, number))
        yield Episode(*made)


def newest_of(
    table: LocalTable, windows: Windows, named: Sequence[tuple[str, Any, datetime]]
) -> list[Episode | None]:
    """The episodes at their newest close; None for one that the table lacks.

    Args:
        table: The table episodes.
        windows: The definition.
        named: Rule, key and start of each.
    """
    if not named:
        return []
    since = Span(microseconds(min(first for _, _, first in named)))
    newest: dict[tuple[object, ...], Episode] = {}
    for episode in _episodes(table.read(Wanted(times={"until": since})), windows):
        known = newest.setdefault(episode.identity, episode)
        if episode.day > known.day:
            newest[episode.identity] = episode
    return [newest.get(_identity(*one)) for one in named]


def with_silences(rows: pa.Table, episodes: TableSpec, windows: Windows) -> pa.Table:
    """Rows of alerts, those of silences with the severity of their episodes at the newest close.

    Args:
        rows: Rows of the table alerts.
        episodes: The table episodes, which is read if there are silences.
        windows: The definition.
    """
    counts = rows["record_count"].to_pylist()
    if not windows.spec.has_silences or 0 not in counts:
        return rows
    columns = [python_values(rows[name]) for name in ("rule", "key", "episode_start")]
    severities = python_values(rows["severity"])
    found = newest_of(LocalTable(episodes), windows, list(zip(*columns, strict=True)))
    for number, episode in enumerate(found):
        if counts[number] == 0 and episode is not None:
            severities[number] = episode.severity
    position = rows.schema.get_field_index("severity")
    return rows.set_column(position, "severity", doubles(severities))


def alert_windows(alerts: LocalTable, rule: str, wanted: Wanted) -> set[tuple[datetime, datetime]]:
    """The bounds of windows that broke a rule.

    Args:
        alerts: The table alerts.
        rule: The rule's name.
        wanted: Which windows.
    """
    names = ("window_start", "window_end", "rule", "retracted_by")
    rows = alerts.read(wanted, columns=names)
    rows = rows.filter(pc.is_null(rows["retracted_by"]))
    rows = rows.filter(pc.equal(rows["rule"], text(rule)))
    return set(zip(*(python_values(rows[name]) for name in names[:2]), strict=True))


def worst_alert_ids(
    found: Sequence[Episode], alerts: LocalTable, pipeline: Pipeline, windows_name: str
) -> list[str]:
    """The ids of the alerts of the worst windows of some episodes.

    Args:
        found: The episodes.
        alerts: The table alerts, which says what correction raised an alert.
        pipeline: The pipeline.
        windows_name: The definition.
    """
    row_key = pipeline.windows[windows_name].row_key
    ends = [microseconds(episode.worst["window_end"]) for episode in found]
    corrected: dict[tuple[object, ...], int] = {}
    if ends:
        wanted = Wanted(times={"window_end": Span(min(ends), max(ends))})
        rows = alerts.read(wanted, columns=[*columns_of_ids(row_key), "retracted_by"])
        rows = rows.filter(pc.is_valid(rows["correction"]))
        rows = rows.filter(pc.is_null(rows["retracted_by"]))
        corrected = {_window(row, row_key): row["correction"] for row in python_rows(rows)}
    return [
        alert_id(
            pipeline.name,
            windows_name,
            row_key,
            {**episode.worst, "correction": corrected.get(_window(episode.worst, row_key))},
        )
        for episode in found
    ]


def rows_of(
    found: Sequence[Episode],
    alerts: LocalTable,
    pipeline: Pipeline,
    windows_name: str,
    closed_ms: int | None,
    schema: pa.Schema,
) -> pa.Table:
    """Some episodes as rows: the id of the worst window's alert, the state, and what is stored.

    `LENGTH` and `WORST_WINDOW` are texts for people.

    Args:
        found: The episodes, in order.
        alerts: The table alerts.
        pipeline: The pipeline.
        windows_name: The definition.
        closed_ms: The close time for which the states are; None if it is not known.
        schema: The columns of the table episodes.
    """
    stored = [rows.slice(number, 1) for rows, number in (one.stored_in for one in found)]
    rows = pa.concat_tables([pa.Table.from_batches([], schema), *stored])
    added = {
        ALERT_ID: worst_alert_ids(found, alerts, pipeline, windows_name),
        "state": [episode.state(closed_ms) for episode in found],
        LENGTH: [length_text(episode.length_ms) for episode in found],
        WORST_WINDOW: [episode.worst_text(pipeline.windows[windows_name]) for episode in found],
    }
    for position, (name, values) in enumerate(added.items()):
        rows = rows.add_column(position, name, texts(values))
    return rows


def _identity(rule: str, key: object, first: datetime) -> tuple[object, ...]:
    return (rule, tuple(key.values()) if isinstance(key, dict) else key, first)


def _window(row: Mapping[str, Any], row_key: Sequence[str]) -> tuple[object, ...]:
    key = row["key"]
    named = (row[name] for name in ("rule", "window_start", "window_end", *row_key))
    return (tuple(key.values()) if isinstance(key, dict) else key, *named)


def _rank(severity: float | None) -> float:
    """The rank of a severity: null is the smallest, NaN the largest, as Spark has them."""
    if severity is None:
        return -inf
    return inf if isnan(severity) else severity
