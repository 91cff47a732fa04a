"""Pipelines that follow a source, and streams that are killed at any append."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from threading import Event
from typing import Any

import pyarrow as pa
import pytest
import yaml
from deltalake import write_deltalake
from pyspark.sql import DataFrame, SparkSession

from tests.support.oracle.windows import (
    Definition,
    ForwardDefinition,
    SessionDefinition,
    SlidingDefinition,
)
from tests.support.pipelines import settings_in
from tests.support.spark_cases import instant, texts
from tests.support.stored_rows import stored_rows
from windows_pipeline.config import Pipeline, load_pipeline
from windows_pipeline.jobs import Job
from windows_pipeline.settings import Settings
from windows_pipeline.storage.table import Table
from windows_pipeline.storage.tables import PipelineTables
from windows_pipeline.streaming import run_stream
from windows_pipeline.streaming.windows import Append

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
    """The oracle's sliding windows, as the fields of a pipeline's file."""
    fields: dict[str, object] = {
        "kind": "sliding",
        "time_difference": f"{definition.time_difference} ms",
        "grace": f"{definition.grace} ms",
        "emit_empty": definition.emit_empty,
    }
    if definition.first_window_start is not None:
        fields["first_window_start"] = instant(definition.first_window_start).isoformat()
    return fields


def window_fields(definition: Definition) -> dict[str, object]:
    """The oracle's windows of any kind, as the fields of a pipeline's file."""
    if isinstance(definition, SlidingDefinition):
        return sliding_fields(definition)
    grace = f"{definition.grace} ms"
    if isinstance(definition, SessionDefinition):
        return {"kind": "session", "gap": f"{definition.gap} ms", "grace": grace}
    if isinstance(definition, ForwardDefinition):
        return {"kind": "forward", "size": f"{definition.size} ms", "grace": grace}
    size, advance = f"{definition.size} ms", f"{definition.advance} ms"
    kind = {"kind": "hopping", "size": size, "advance": advance}
    return {**kind, "grace": grace}


class KilledError(Exception):
    """Stands for the end of the process."""


def killed_at(table: str, when: str) -> Append:
    """Appends until the stream is killed at an append to a table, `before` or `after` it.

    Of other appends, only those that have begun by then end, as when a process is killed.
    """
    dead = Event()

    def append(to: Table, rows: DataFrame | pa.Table, batch: int, row_count: int) -> None:
        is_the_table = to.name.rsplit("/", 1)[1] == table
        if dead.is_set() or (is_the_table and when == "before"):
            dead.set()
            raise KilledError
        to.append(rows, batch, row_count)
        if is_the_table:
            dead.set()
            raise KilledError

    return append


def run_until_killed(
    spark: SparkSession,
    tables: PipelineTables,
    settings: Settings,
    table: str,
    when: str,
    **options: Any,
) -> None:
    """Runs a stream, and requires that it is killed at an append to a table."""
    with pytest.raises(KilledError):
        run_stream(spark, tables, settings, append=killed_at(table, when), **options)


def writer_of(table: Table, version: int) -> str:
    """The program that made a version, as the commit names it."""
    log = Path(table.location) / "_delta_log" / f"{version:020}.json"
    actions = map(json.loads, log.read_text().splitlines())
    (commit,) = (action["commitInfo"] for action in actions if "commitInfo" in action)
    writer: str = commit["engineInfo"]
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
    """A pipeline of integers by key, with the windows `sums` and others by name."""
    columns = {"k": "string", "ms": "bigint", "whole": "bigint"}
    text = {
        "name": "numbers",
        "source": {"columns": columns, "key": "k", "event_time": "ms", **source},
        "partitions": {"start": start},
        "limits": {"least_records": 1},
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
    """Adds records to the Delta table that such a pipeline follows."""
    columns = [("k", pa.string()), ("ms", pa.int64()), ("whole", pa.int64())]
    records = [dict(zip(("k", "ms", "whole"), row, strict=True)) for row in rows]
    write_deltalake(table, pa.Table.from_pylist(records, pa.schema(columns)), mode="append")


def as_json(key: str | None, ms: int, whole: object) -> str:
    """A record of such a pipeline as JSON, for a topic or a file."""
    return json.dumps({"k": key, "ms": ms, "whole": whole})
