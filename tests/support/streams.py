"""Pipelines that follow a source, and the end of their process at any append, for tests."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Event
from typing import Any

import pyarrow as pa
import pytest
import yaml
from deltalake import write_deltalake
from pyspark.sql import DataFrame

from tests.support.oracle.windows import SessionDefinition, SlidingDefinition, TimeDefinition
from tests.support.pipelines import settings_in
from tests.support.spark_cases import instant, texts
from tests.support.stored_rows import stored_rows
from windows_pipeline.config import Pipeline, load_pipeline
from windows_pipeline.jobs import Job
from windows_pipeline.settings import Settings
from windows_pipeline.storage.table import Table
from windows_pipeline.streaming import query

SLIDING = {"kind": "sliding", "time_difference": "10 ms", "grace": "0 ms"}
HOPS = {
    "kind": "hopping",
    "size": "10 ms",
    "advance": "5 ms",
    "grace": "8 ms",
    "trigger": {"early_every": "3 ms"},
    "aggregates": {"total": "sum(whole)"},
    "alerts": {"busy": {"when": "record_count >= 2", "severity": "record_count"}},
}


def sliding_fields(definition: SlidingDefinition) -> dict[str, object]:
    """The oracle's windows as a pipeline's file has them."""
    fields: dict[str, object] = {
        "kind": "sliding",
        "time_difference": f"{definition.time_difference} ms",
        "grace": f"{definition.grace} ms",
        "emit_empty": definition.emit_empty,
    }
    if definition.first_window_start is not None:
        fields["first_window_start"] = instant(definition.first_window_start).isoformat()
    return fields


def window_fields(
    definition: SlidingDefinition | TimeDefinition | SessionDefinition,
) -> dict[str, object]:
    """The same of windows of several kinds."""
    if isinstance(definition, SlidingDefinition):
        return sliding_fields(definition)
    grace = f"{definition.grace} ms"
    if isinstance(definition, SessionDefinition):
        return {"kind": "session", "gap": f"{definition.gap} ms", "grace": grace}
    size, advance = f"{definition.size} ms", f"{definition.advance} ms"
    kind = {"kind": "hopping", "size": size, "advance": advance}
    return {**kind, "grace": grace}


class KilledError(Exception):
    """Stands for the end of the process."""


@contextmanager
def ending_at(table: str, when: str) -> Iterator[None]:
    """Ends what runs at an append to a table, `before` or `after`: nothing is appended then.

    But for what is being appended meanwhile, as when a process is killed.
    """
    append, dead = Table.append, Event()

    def until_killed(self: Table, rows: DataFrame | pa.Table, batch: int, many: int) -> None:
        here = self.name.rsplit("/", 1)[1] == table
        if dead.is_set() or (here and when == "before"):
            dead.set()
            raise KilledError
        append(self, rows, batch, many)
        if here:
            dead.set()
            raise KilledError

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Table, "append", until_killed)
        yield


@contextmanager
def killed(table: str, when: str) -> Iterator[None]:
    """Requires that it is ended there."""
    with ending_at(table, when), pytest.raises(KilledError):
        yield


@contextmanager
def as_if_it_ran_before() -> Iterator[None]:
    """A stream that begins here saw nothing that stops it, as one that had begun long before."""
    refuse = query._refuse_while_correcting  # noqa: SLF001  nothing else tells of one that began
    looked: list[object] = []

    def only_again(*of_pipeline: Any) -> None:
        if looked:
            refuse(*of_pipeline)
        looked.append(of_pipeline)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(query, "_make_tables", lambda *_: None)
        patched.setattr(query, "_refuse_while_correcting", only_again)
        yield


def writer_of(table: Table, version: int) -> str:
    """Who made a version, as its commit says."""
    log = Path(table.location) / "_delta_log" / f"{version:020}.json"
    actions = map(json.loads, log.read_text().splitlines())
    (told,) = (one["commitInfo"] for one in actions if "commitInfo" in one)
    writer: str = told["engineInfo"]
    return writer


def rows_of(job: Job) -> list[list[str]]:
    """The rows of each of a job's tables."""
    return [texts(stored_rows(table)) for table in job.tables]


def declared_pipeline(
    folder: Path,
    settings: Settings,
    source: Mapping[str, object],
    window: Mapping[str, object],
    start: str = "2026-11-01",
    **others: Mapping[str, object],
) -> tuple[Pipeline, Settings]:
    """A pipeline of integers by key, with sliding windows and others."""
    columns = {"k": "string", "ms": "bigint", "whole": "bigint"}
    text = {
        "name": "numbers",
        "source": {"columns": columns, "key": "k", "event_time": "ms", **source},
        "partitions": {"start": start},
        "windows": {
            "sums": {"aggregates": {"total": "sum(whole)"}, **window},
            **others,
        },
    }
    file = folder / "pipelines" / "numbers.yaml"
    file.parent.mkdir(exist_ok=True)
    file.write_text(yaml.safe_dump(text))
    return load_pipeline(file), settings_in(folder, settings)


def add_rows(table: Path, rows: Sequence[tuple[str | None, int, int]]) -> None:
    """Adds records of such a pipeline to a Delta table."""
    columns = [("k", pa.string()), ("ms", pa.int64()), ("whole", pa.int64())]
    records = [dict(zip(("k", "ms", "whole"), row, strict=True)) for row in rows]
    write_deltalake(table, pa.Table.from_pylist(records, pa.schema(columns)), mode="append")


def as_json(key: str | None, ms: int, whole: object) -> str:
    """A record of such a pipeline as a topic or a file has it."""
    return json.dumps({"k": key, "ms": ms, "whole": whole})
