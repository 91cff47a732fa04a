"""The events of episodes, read from the tables `notifications` without Spark."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import partial
from typing import Any

from windows_pipeline.config import Pipeline
from windows_pipeline.query.tables.local import LocalTable, UnreadableTableError
from windows_pipeline.query.tables.wanted import Wanted
from windows_pipeline.storage import catalog
from windows_pipeline.text.values import as_json

OPENED, ENDED, RETRACTED = "opened", "ended", "retracted"
OF_EPISODES = frozenset({OPENED, "worsened", ENDED})
"""The events of an episode that has alerts."""
_MOST_OF_A_VALUE = 100
"""The most elements of a list, or characters of a text, in a message."""
Episode = tuple[str, str, str, datetime]
"""Definition, rule, key as text, and start."""
Row = Mapping[str, Any]


@dataclass(frozen=True)
class Event:
    """A row of notifications, or of early_warnings.

    Attributes:
        id: The row's digest.
        windows: The window definition.
        arrival_unit: The arrival day that caused the event.
        rule: The rule.
        key: The key, as JSON has it.
        event: opened, worsened, ended or retracted; of an early warning warned, confirmed or
            withdrawn.
        window_start: The worst window's start.
        window_end: The worst window's end.
        record_count: How many records that window has.
        aggregates: That window's aggregates.
        severity: That window's severity; None for none.
        since: The start of the episode.
        until: The end of the episode's last window so far; of a silence that ended, the time of
            its key's next record.
        correction: The number of the correction that added the row; None if none did.
        stands: Whether no correction has retracted it.
    """

    id: str
    windows: str
    arrival_unit: date
    rule: str
    key: Any
    event: str
    window_start: datetime
    window_end: datetime
    record_count: int
    aggregates: dict[str, Any]
    severity: float | None
    since: datetime
    until: datetime
    correction: int | None
    stands: bool

    @property
    def episode(self) -> Episode:
        """The values that identify the episode; an early warning has an episode of its own."""
        of_window = f" {self.window_end}" if self.event in _STATES.values() else ""
        return f"{self.windows}{of_window}", self.rule, json.dumps(self.key), self.since

    @property
    def digest(self) -> str:
        """A digest of what happened, without the correction that added the row."""
        window = (self.window_start, self.window_end, self.until, self.record_count, self.severity)
        parts = [*self.episode, self.event, self.arrival_unit, *window]
        return hashlib.sha256(json.dumps(plain(parts)).encode()).hexdigest()

    @property
    def length_ms(self) -> int:
        """How long the episode has lasted so far."""
        return (self.until - self.since) // timedelta(milliseconds=1)

    @property
    def topic(self) -> str:
        """The word under which a message counts the event."""
        return self.rule

    @property
    def age_from(self) -> datetime:
        """The end of the arrival day, from which an event's age counts."""
        day = datetime.combine(self.arrival_unit, datetime.min.time(), UTC)
        return day + timedelta(days=1)

    def as_json(self) -> dict[str, Any]:
        """The event as a message's body has it."""
        return {
            "id": self.id,
            "windows": self.windows,
            "rule": self.rule,
            "key": self.key,
            "event": self.event,
            "severity": as_json(self.severity),
            "since": as_json(self.since),
            "until": as_json(self.until),
            "length_ms": self.length_ms,
            "window_start": as_json(self.window_start),
            "window_end": as_json(self.window_end),
            "record_count": self.record_count,
            "aggregates": {name: _short(value) for name, value in self.aggregates.items()},
            "arrival_unit": as_json(self.arrival_unit),
            "correction": self.correction,
        }


def read_events(pipeline: Pipeline, warehouse: str) -> list[Event]:
    """Reads what happened to the episodes of a pipeline, the oldest first.

    Raises:
        TableDamagedError: A file of a table is damaged.
        UnreadableTableError: A table cannot be read without Spark.
    """
    found = [
        event_of(row)
        for spec, event_of in event_tables(pipeline, warehouse)
        if (table := opened_table(spec)) is not None
        for row in table.read(Wanted()).to_pylist()
    ]
    return sorted(found, key=lambda event: (event.arrival_unit, event.until, _rank(event)))


def versions(pipeline: Pipeline, warehouse: str) -> dict[str, int]:
    """The version of each table of events that exists, by its name."""
    return {
        spec.name: table.version
        for spec, _ in event_tables(pipeline, warehouse)
        if (table := opened_table(spec)) is not None
    }


def event_tables(
    pipeline: Pipeline, warehouse: str
) -> Iterator[tuple[catalog.TableSpec, Callable[[Row], Event]]]:
    """Each table of events that a pipeline has, and what makes an event of its rows."""
    asked = {event for target in pipeline.notify.values() for event in target.events}
    specs = catalog.specs_of(pipeline, warehouse)
    for name, windows in pipeline.windows.items():
        tables = specs.of(name)
        if tables.notifications.is_written:
            yield tables.notifications, partial(_event, name)
        is_asked = windows.alerts and asked & set(_STATES.values())
        if is_asked and tables.early_warnings.is_written:
            yield tables.early_warnings, partial(_warning, pipeline, name)


def unfilled(pipeline: Pipeline, warehouse: str, target: str) -> list[str]:
    """The tables of notifications that do not exist yet, each with the command that fills it.

    Args:
        pipeline: The pipeline.
        warehouse: The folder of all tables.
        target: A target, which may want no event of such a table.
    """
    specs = catalog.specs_of(pipeline, warehouse)
    found = []
    for tables in map(specs.of, pipeline.windows):
        spec = tables.notifications
        is_wanted = spec.is_written and OF_EPISODES.intersection(pipeline.notify[target].events)
        if is_wanted and opened_table(spec) is None:
            is_new = opened_table(tables.alerts) is not None
            rebuild = f"windows-pipeline rebuild {pipeline.name} --from alerts"
            fills = rebuild if is_new else spec.what_fills
            found.append(f"{spec.name}: the table does not exist yet; to fill it: {fills}")
    return found


def opened_table(spec: catalog.TableSpec) -> LocalTable | None:
    """The newest version of a table; None if the table does not exist.

    Raises:
        UnreadableTableError: The table does not lie in a local folder.
    """
    if not spec.location.startswith("/"):
        raise UnreadableTableError(
            f"{spec.name}: must lie in a local folder, as the log of what was sent does, and lies "
            f"in {spec.location}; read the table with Spark"
        )
    return LocalTable.if_there(spec)


def _short(value: Any) -> Any:
    """A value without most of a long list or text, so that receivers take the message."""
    return value[:_MOST_OF_A_VALUE] if isinstance(value, (list, str)) else value


def plain(value: object) -> Any:
    """A value as digests have it: one byte changed, and every event would be sent again."""
    return as_json(value, not_finite=str)


def _event(windows: str, row: Row) -> Event:
    return Event(
        id=row["notification_id"],
        windows=windows,
        arrival_unit=row["arrival_unit"],
        rule=row["rule"],
        key=plain(row["key"]),
        event=row["event"],
        window_start=row["window_start"],
        window_end=row["window_end"],
        record_count=row["record_count"],
        aggregates=json.loads(row["aggregates"]),
        severity=row["severity"],
        since=row["since"],
        until=row["until"],
        correction=row["correction"],
        stands=row["retracted_by"] is None,
    )


def _warning(pipeline: Pipeline, windows: str, row: Row) -> Event:
    """A row of early_warnings as an event; a warning is of one window."""
    bounds = row["window_start"], row["window_end"]
    about = (pipeline.name, windows, row["rule"], row["key"], *bounds, row["state"])
    text = json.dumps([plain(part) for part in about])
    names = [aggregate.name for aggregate in pipeline.windows[windows].aggregate_list]
    return Event(
        id=hashlib.sha256(text.encode()).hexdigest(),
        windows=windows,
        arrival_unit=row["arrival_unit"],
        rule=row["rule"],
        key=plain(row["key"]),
        event=_STATES[row["state"]],
        window_start=bounds[0],
        window_end=bounds[1],
        record_count=row["record_count"],
        aggregates={name: as_json(row[name]) for name in names},
        severity=row["severity"],
        since=bounds[0],
        until=bounds[1],
        correction=None,
        stands=True,
    )


_STATES = {"open": "warned", "confirmed": "confirmed", "withdrawn": "withdrawn"}
"""The event of each state of an early warning."""
_ORDER = (RETRACTED, "warned", "confirmed", "withdrawn", OPENED, "worsened", ENDED)


def _rank(event: Event) -> tuple[int, int, str, str]:
    return event.correction or 0, _ORDER.index(event.event), json.dumps(event.key), event.id
