"""When the rows of events were first published, by the logs of their tables.

A row may be written again, by maintenance, a day that is computed again or a rebuild. The log has
each commit with its time and its files, so the first commit whose files have the row says it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

import pyarrow as pa

from windows_pipeline.config import Pipeline
from windows_pipeline.notify.events import Event, Row, event_tables, opened_table
from windows_pipeline.storage.files.damage import LOG_FOLDER, TableDamagedError, open_data_file

_COMMIT = f"{'[0-9]' * 20}.json"


class _Added(NamedTuple):
    """A file that a commit added to a table with rows that are new, or written again."""

    at: datetime
    path: Path
    day: date | None
    schema: pa.Schema
    event_of: Callable[[Row], Event]

    def ids(self) -> list[str]:
        """The ids of its rows; none if it cannot be read."""
        try:
            # The file may be of an older version only, so the table does not have it.
            with open_data_file(str(self.path.parent), str(self.path)) as opened:
                there = [field for field in self.schema if field.name in opened.schema_arrow.names]
                rows = opened.read([field.name for field in there], use_threads=False)
        except TableDamagedError:
            return []
        others = {**dict.fromkeys(self.schema.names), "arrival_unit": self.day}
        return [
            self.event_of({**others, **row}).id for row in rows.cast(pa.schema(there)).to_pylist()
        ]


class Published:
    """When the events of a pipeline were published; reads the tables' logs once asked."""

    def __init__(self, pipeline: Pipeline, warehouse: str) -> None:
        """Takes the pipeline, and the folder of all tables."""
        self._pipeline = pipeline
        self._warehouse = warehouse
        self._of_days: dict[date, dict[str, datetime]] = {}

    def at(self, event: Event) -> datetime | None:
        """When an event's row was first published; None if its table's log begins later."""
        day = event.arrival_unit
        if day not in self._of_days:
            found: dict[str, datetime] = {}
            for added in self._added:
                if added.day in (None, day):
                    for id_ in added.ids():
                        found.setdefault(id_, added.at)
            self._of_days[day] = found
        return self._of_days[day].get(event.id)

    @cached_property
    def _added(self) -> list[_Added]:
        return [
            _Added(*file, table.schema, event_of)
            for spec, event_of in event_tables(self._pipeline, self._warehouse)
            if (table := opened_table(spec)) is not None
            for file in _added_files(Path(spec.location))
        ]


def _added_files(folder: Path) -> Iterator[tuple[datetime, Path, date | None]]:
    """The files that commits added with new rows, and that were not deleted since, in order."""
    for path in sorted((folder / LOG_FOLDER).glob(_COMMIT)):
        try:
            actions = [json.loads(line) for line in path.read_bytes().splitlines()]
        except (FileNotFoundError, ValueError):  # deleted meanwhile; who reads rows names damage
            continue
        at = [_committed(action["commitInfo"]) for action in actions if "commitInfo" in action]
        for add in (action["add"] for action in actions if "add" in action):
            file = folder / unquote(add["path"])
            # Maintenance joins files without new rows, and deletes those that no version needs.
            if at and add["dataChange"] and file.exists():
                yield at[0], file, _day(add)


def _committed(info: dict[str, Any]) -> datetime:
    at = info.get("inCommitTimestamp", info["timestamp"])
    return datetime.fromtimestamp(at / 1_000, UTC)


def _day(add: dict[str, Any]) -> date | None:
    text = add["partitionValues"].get("arrival_unit")
    return None if text is None else date.fromisoformat(text)
