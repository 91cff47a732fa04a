"""Counts what small arrival units cost: Spark's queries and jobs, Delta's commits, listings.

A program of its own, as Spark writes its event log only if it starts with one. It calls commands in
its folder and writes a file of JSON: the counts by part. They do not depend on the machine's load.
"""

from __future__ import annotations

import json
import random
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from types import FrameType
from typing import Any

import yaml

from windows_pipeline.cli.main import main
from windows_pipeline.settings import load_settings
from windows_pipeline.sources import landing

RESULT = "costs.json"
_ROOT = Path(__file__).parents[2]
_RECORDS = 800
_MINUTES = 1440
_COUNTED = {
    "SparkListenerSQLExecutionStart": ("queries", "time"),
    "SparkListenerJobStart": ("jobs", "Submission Time"),
}
"""What is counted, by the event, with the event's time."""
_HOURLY = {
    "kind": "sliding",
    "time_difference": "60 minutes",
    "grace": "2 hours",
    "aggregates": {"mean": "avg(v)", "most": "max(v)"},
    "alerts": {
        "busy": {"when": "record_count >= 12 and mean > 55", "severity": "mean"},
        "high": {"when": "most > 99", "severity": "most"},
    },
}


@dataclass(frozen=True)
class Part:
    """The time of a part, in milliseconds since 1970, its commits and its listings of folders."""

    since_ms: int
    until_ms: int
    commits: int
    listings: int


def run(folder: Path) -> dict[str, dict[str, int]]:
    """Runs two days, and then counts a third day, a micro-batch and a correction."""
    declare(folder, "days")
    declare(folder, "flow", stream=True)
    chance, parts = random.Random(7), dict[str, Part]()
    for day in (date(2026, 3, number) for number in (1, 2)):
        land(folder, "days", day, chance)
        land(folder, "flow", day, chance)
    call("run", "days")
    call("stream", "flow")
    last = date(2026, 3, 3)
    changed = land(folder, "days", last, chance)
    land(folder, "flow", last, chance)
    with counted(folder, "day", parts):
        call("run", "days")
    with counted(folder, "micro_batch", parts):
        call("stream", "flow")
    lines = changed.read_text().splitlines(keepends=True)
    changed.write_text("".join([*lines[:400], *lines[401:]]))
    call("run", "days", "--from", str(last), status=1)
    with counted(folder, "correction", parts):
        call("correct", "days", "--from", str(last), "--cause", "a record less")
    return counts(folder, parts)


def declare(folder: Path, name: str, **source: object) -> None:
    """Writes the file of a pipeline with one definition and two rules."""
    columns = {"k": "string", "t": "timestamp", "v": "double"}
    fields = {"path": name, "format": "csv", "columns": columns, "key": "k", "event_time": "t"}
    declared = {
        "name": name,
        "source": fields | {"arrival": "lines"} | source,
        "partitions": {"start": date(2026, 3, 1)},
        "windows": {"hourly": _HOURLY},
    }
    file = folder / "pipelines" / f"{name}.yaml"
    file.parent.mkdir(exist_ok=True)
    file.write_text(yaml.safe_dump(declared))


def land(folder: Path, name: str, day: date, chance: random.Random) -> Path:
    """Lands a day of records, in order of time."""
    file = folder / name / str(day) / "a.csv"
    file.parent.mkdir(parents=True)
    lines = ["k,t,v\n"]
    for number in range(_RECORDS):
        minute = number * _MINUTES // _RECORDS
        at = f"{day}T{minute // 60:02}:{minute % 60:02}:{chance.randrange(60):02}Z"
        lines.append(f"k{chance.randrange(5)},{at},{chance.randrange(1000) / 10}\n")
    file.write_text("".join(lines))
    return file


def call(*args: str, status: int = 0) -> None:
    """Calls a command, which must end with a status."""
    sys.argv = ["windows-pipeline", *args]
    try:
        main()
    except SystemExit as ended:
        if (ended.code or 0) != status:
            raise


@contextmanager
def counted(folder: Path, name: str, parts: dict[str, Part]) -> Iterator[None]:
    """Notes when a part ran, its commits, and how often a folder of landed files was listed."""
    before, since_ms, listed = commits(folder), now_ms(), list[str]()

    def note(frame: FrameType, event: str, _: object) -> None:
        called = (frame.f_code.co_filename, frame.f_code.co_name)
        if event == "call" and called == (landing.__file__, "_listed"):
            listed.append(frame.f_locals["folder"])

    threading.setprofile(note)  # folders of days are listed by threads
    sys.setprofile(note)
    yield
    sys.setprofile(None)
    threading.setprofile(None)
    parts[name] = Part(since_ms, now_ms(), commits(folder) - before, len(listed))


def commits(folder: Path) -> int:
    """How many commits all tables have."""
    return len(list((folder / "warehouse").glob("**/_delta_log/*.json")))


def now_ms() -> int:
    """The clock, as Spark's event log writes it."""
    return time.time_ns() // 1_000_000


def counts(folder: Path, parts: dict[str, Part]) -> dict[str, dict[str, int]]:
    """The queries and jobs of each part by Spark's event log, and the commits."""
    found = {
        name: {"queries": 0, "jobs": 0, "commits": part.commits, "listings": part.listings}
        for name, part in parts.items()
    }
    for event in logged(folder):
        kind, time_of = _COUNTED.get(event["Event"].rsplit(".", 1)[-1], (None, ""))
        for name, part in parts.items():
            if kind is not None and part.since_ms <= event[time_of] <= part.until_ms:
                found[name][kind] += 1
    return found


def logged(folder: Path) -> Iterator[dict[str, Any]]:
    """The events of Spark's event log."""
    for file in (folder / "spark_events").rglob("events_*"):
        with file.open() as lines:
            yield from map(json.loads, lines)


def settle(folder: Path) -> None:
    """Writes the settings: those of the project, on two cores, with an event log."""
    settings = load_settings(_ROOT).model_dump(mode="json")
    paths = {"warehouse": "warehouse", "landing": ".", "pipelines": "pipelines"}
    (folder / "spark_events").mkdir()
    log = {
        "spark.master": "local[2]",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": (folder / "spark_events").as_uri(),
        "spark.eventLog.compress": "false",
    }
    changed = settings | paths | {"dagster_home": None, "spark": settings["spark"] | log}
    (folder / "settings.yaml").write_text(yaml.safe_dump(changed))


if __name__ == "__main__":
    settle(Path.cwd())
    (Path.cwd() / RESULT).write_text(json.dumps(run(Path.cwd())))
