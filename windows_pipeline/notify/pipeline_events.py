"""Events of a pipeline itself: failed runs, and records that did not come in time.

Failed runs are lines of a file in the pipeline's folder of the warehouse, so that none is lost
while nobody can be notified. Whether records are overdue follows from the log of arrival_log.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from windows_pipeline.config import Pipeline
from windows_pipeline.notify.events import Event
from windows_pipeline.notify.whole_lines import append, json_objects
from windows_pipeline.query.tables.local import NoTableError, open_table
from windows_pipeline.storage import catalog
from windows_pipeline.text.instants import time_text
from windows_pipeline.text.values import as_json
from windows_pipeline.windows.durations import duration_text

FAILED, OVERDUE = "failed", "overdue"
FILE = "_failures.jsonl"
_MOST_CHARACTERS = 500
_UPKEEP = ("OPTIMIZE", "VACUUM")
"""The first words of the names of operations that add no records."""
_LOOKED_AT = 100
"""How many of a table's newest versions are searched for a write of records."""


@dataclass(frozen=True)
class PipelineEvent:
    """A run of a pipeline that failed, or records that are overdue.

    Attributes:
        id: A digest of pipeline, event and the failed run, or the last write before the delay.
        event: failed or overdue.
        what: The command or job that failed; for overdue records, the table.
        at: When the run failed, or since when the records are overdue.
        text: What is wrong.
        age_from: The time from which the event's age counts: now for records that are overdue.
    """

    id: str
    event: str
    what: str
    at: datetime
    text: str
    age_from: datetime
    severity: None = None
    correction: None = None
    digest: str = ""
    stands: bool = True
    rule: str = ""

    @property
    def topic(self) -> str:
        """The word under which a message counts the event."""
        return self.event

    @property
    def episode(self) -> tuple[str, str, str, datetime]:
        """The values that identify the event among those of a message."""
        return self.event, self.what, self.id, self.at

    def as_json(self) -> dict[str, Any]:
        """The event as a message's body has it."""
        return {
            "id": self.id,
            "event": self.event,
            "what": self.what,
            "since": as_json(self.at),
            "text": self.text,
        }


AnyEvent = Event | PipelineEvent


def pipeline_events(pipeline: Pipeline, warehouse: str, now: datetime) -> list[PipelineEvent]:
    """The failed runs of a pipeline, the oldest first, and whether its records are overdue.

    Args:
        pipeline: The pipeline.
        warehouse: The folder of all tables.
        now: The time.

    Raises:
        TableDamagedError: The log of arrival_log is damaged.
        UnreadableTableError: The table lies where only Spark reads it.
    """
    found = list(_failures(pipeline.name, Path(warehouse) / pipeline.name / FILE))
    late = _overdue(pipeline, warehouse, now)
    return found if late is None else [*found, late]


def notifies_of(pipeline: Pipeline, event: str) -> bool:
    """Whether a target of a pipeline gets an event."""
    return any(event in target.events for target in pipeline.notify.values())


def note_failure(pipeline: Pipeline, warehouse: str, what: str, text: str, name: str = "") -> None:
    """Notes a run that failed, for the targets of the pipeline.

    Nothing is noted if no target is notified of failed runs, or the warehouse is no local folder.

    Args:
        pipeline: The pipeline.
        warehouse: The folder of all tables.
        what: The command or job.
        text: What is wrong; only the first characters are noted.
        name: What distinguishes the run from others; the time and the process if empty.

    Raises:
        OSError: The file cannot be written.
    """
    if not notifies_of(pipeline, FAILED) or not Path(warehouse).is_absolute():
        return
    folder = Path(warehouse) / pipeline.name
    folder.mkdir(parents=True, exist_ok=True)
    now = datetime.now(UTC).isoformat()
    line = {"run": name or f"{now} {os.getpid()}", "what": what, "at": now}
    append(folder / FILE, {**line, "text": text[:_MOST_CHARACTERS]})


def _failures(pipeline: str, file: Path) -> Iterator[PipelineEvent]:
    """The events in the lines of the file, without a torn line of a killed command."""
    try:
        lines = json_objects(file.read_bytes())
    except FileNotFoundError:
        return
    for found in lines:
        try:
            run, what, text = (str(found[name]) for name in ("run", "what", "text"))
            at = datetime.fromisoformat(found["at"])
        except (ValueError, TypeError, KeyError):
            continue
        yield PipelineEvent(_digest(pipeline, FAILED, what, run), FAILED, what, at, text, at)


def _overdue(pipeline: Pipeline, warehouse: str, now: datetime) -> PipelineEvent | None:
    """The event that no records came for `expect_every`; None if there is none to report."""
    if pipeline.expect_every is None or not notifies_of(pipeline, OVERDUE):
        return None
    log = catalog.specs_of(pipeline, warehouse).arrival_log
    try:
        history = open_table(log).history(_LOOKED_AT)
    except NoTableError:
        return None
    writes = (one for one in history if not str(one.get("operation")).startswith(_UPKEEP))
    newest = max((int(one["timestamp"]) for one in writes), default=None)
    if newest is None:
        return None
    last = datetime.fromtimestamp(newest / 1_000, UTC)
    due = last + timedelta(milliseconds=pipeline.expect_every)
    if now < due:
        return None
    every = duration_text(pipeline.expect_every)
    text = f"records are expected every {every}, and none came since {time_text(last)} UTC"
    return PipelineEvent(
        _digest(pipeline.name, OVERDUE, str(newest)), OVERDUE, log.name, due, text, now
    )


def _digest(*parts: str) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()
