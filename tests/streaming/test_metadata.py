"""Columns of a record's metadata: a topic's key and times, and when a file was written."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from confluent_kafka import Producer
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from tests.support.kafka import KafkaBroker
from tests.support.pipeline_texts import load_text
from tests.support.pipelines import settings_in
from tests.support.small_project import SmallProject
from tests.support.stored_rows import named_rows
from windows_pipeline.config import Pipeline
from windows_pipeline.settings import Settings
from windows_pipeline.sources.metadata import topic_metadata
from windows_pipeline.storage.table import Table
from windows_pipeline.storage.tables import tables_of
from windows_pipeline.streaming import run_stream

AT = 1_793_491_200_000
"""1 November 2026, in ms since 1970."""
WINDOWS = """
partitions: {start: 2026-11-01}
windows:
  w: {kind: tumbling, size: 10 ms, grace: 0 ms, partial_results: true, aggregates: {s: sum(v)}}
"""
TOPIC = """
name: p
source:
  format: kafka
  kafka: {servers: "SERVERS", topic: by_key}
  columns:
    user: {type: string, metadata: key}
    sent: {type: timestamp, metadata: timestamp}
    trace: {type: bigint, metadata: headers.trace}
    v: bigint
  key: user
  event_time: sent
"""
DELTA = """
name: p
source:
  path: data
  format: delta
  columns:
    k: string
    v: bigint
    written: {type: timestamp, metadata: file_modification_time}
  key: k
  event_time: written
  max_ahead: 40000 days
"""


def windows_of(table: Table) -> list[tuple[object, ...]]:
    """Key, start in ms since `AT`, and sum of each window."""
    rows = named_rows(table, ["key", "window_start", "s"])
    return sorted((row["key"], _since(row["window_start"]), row["s"]) for row in rows)


def _since(time: datetime) -> int:
    return round(time.replace(tzinfo=UTC).timestamp() * 1000) - AT


def _streamed(spark: SparkSession, pipeline: Pipeline, settings: Settings) -> list[object]:
    run_stream(spark, tables_of(pipeline, settings.warehouse), settings)
    return [*windows_of(tables_of(pipeline, settings.warehouse).of("w").keyed_windows)]


def test_a_topic_is_grouped_by_its_own_key_at_its_own_times(
    spark: SparkSession, settings: Settings, tmp_path: Path, broker: KafkaBroker
) -> None:
    """KIP-450's `stream.groupByKey()`; rules A1, A6: a record without a key is rejected."""
    broker.create_topic("by_key", 1)
    sent = [("a", 3, 1), ("b", 4, 10), ("a", 9, 2), (None, 9, 5)]
    broker.send("by_key", [(0, key, json.dumps({"v": v}), AT + at) for key, at, v in sent])
    client = Producer({"bootstrap.servers": broker.servers})
    client.produce("by_key", b'{"v": 4}', "a", timestamp=AT + 12, headers=[("trace", b"7")])
    assert client.flush(30) == 0
    pipeline = load_text(tmp_path, TOPIC.replace("SERVERS", broker.servers) + WINDOWS)
    own = settings_in(tmp_path, settings)
    assert _streamed(spark, pipeline, own) == [("a", 0, 3), ("a", 10, 4), ("b", 0, 10)]
    source = tables_of(pipeline, own.warehouse)
    assert named_rows(source.rejected_records, ["reason"]) == [{"reason": "null_key"}]
    traces = {row["offset"]: row["trace"] for row in named_rows(source.raw_events)}
    assert traces == {0: None, 1: None, 2: None, 4: 7}


def test_the_last_header_of_a_name_counts(spark: SparkSession, tmp_path: Path) -> None:
    """As Kafka's `lastHeader`; a header that is missing is null."""
    source = load_text(tmp_path, TOPIC + WINDOWS).source
    headers = "array<struct<key: string, value: binary>>"
    rows = [
        ([("trace", b"1"), ("other", b"7"), ("trace", b"2")],),
        ([("other", b"\xff")],),
        ([("trace", b"\xff")],),
        (None,),
    ]
    frame = spark.createDataFrame(rows, f"headers {headers}").select(
        F.lit("a").alias("key"), F.timestamp_millis(F.lit(AT)).alias("arrived_at"), "headers"
    )
    found = frame.select(*topic_metadata(source)).collect()
    assert [row.trace for row in found] == ["2", None, "\ufffd", None]
    assert {(row.user, row.sent) for row in found} == {("a", "2026-11-01 00:00:00Z")}


@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_when_files_were_written_is_one_time_by_days_and_in_a_stream(
    project: SmallProject, tmp_path: Path, form: str
) -> None:
    """Rule H1: windows by processing time, which the files keep."""
    columns = {
        "k": "string",
        "v": "bigint",
        "written": {"type": "timestamp", "metadata": "file_modification_time"},
    }
    found = []
    for way in ("run", "stream"):
        project.folder = tmp_path / way
        project.declare(
            {"kind": "tumbling", "size": "10 ms", "grace": "0 ms", "aggregates": {"s": "sum(v)"}},
            columns=columns,  # type: ignore[arg-type]
            event_time="written",
            format=form,
            max_ahead="40000 days",
            stream=way == "stream",
        )
        for name, at, v in (("a", 3, 1), ("b", 7, 2), ("c", 15, 4)):
            line = f"k,v\nx,{v}\n" if form == "csv" else json.dumps({"k": "x", "v": v}) + "\n"
            file = project.land(1, line, f"{name}.{form}")
            os.utime(file, ns=((AT + at) * 1_000_000, (AT + at) * 1_000_000))
        status, said = project.ingest(way)
        assert status == 0, said
        found.append(windows_of(project.windows.keyed_windows))
    assert found == [[("x", 0, 3), ("x", 10, 4)]] * 2


def test_rows_of_a_delta_table_have_the_time_of_their_file(
    spark: SparkSession, settings: Settings, tmp_path: Path
) -> None:
    """Windows by processing time over a table that has no time of its own."""
    table = tmp_path / "data"
    for number, v in enumerate((1, 2, 4)):
        write_deltalake(table, pa.table({"k": ["x"], "v": [v]}), mode="append")
        known = set(tmp_path.glob("data/*.parquet"))
        (file,) = [one for one in known if not one.with_suffix(".seen").exists()]
        file.with_suffix(".seen").touch()
        os.utime(file, ns=((AT + 6 * number) * 1_000_000,) * 2)
    assert DeltaTable(table).version() == 2
    pipeline = load_text(tmp_path, DELTA + WINDOWS)
    own = settings_in(tmp_path, settings)
    assert _streamed(spark, pipeline, own) == [("x", 0, 3), ("x", 10, 4)]
