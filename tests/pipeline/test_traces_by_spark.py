"""Traces where only Spark evaluates a filter or reads the tables (rule E5)."""

from __future__ import annotations

import json
from datetime import UTC
from pathlib import Path
from random import Random
from typing import Any

import pytest
import yaml
from delta import DeltaTable
from pyspark.sql import SparkSession

from tests.support.alert_ids import digest
from tests.support.oracle.keys import asked_for, seen_by
from tests.support.oracle.windows import Record
from tests.support.small_project import HEADER, TUMBLING, SmallProject
from tests.support.written_rows import (
    KEY_OF,
    KINDS,
    finals_of,
    instant,
    passes,
    pipeline_of,
    record_of,
    stored_key,
    write,
)
from windows_pipeline.query import WindowStore
from windows_pipeline.query.records.trace_by_spark import records_of_alert
from windows_pipeline.query.tables.spark import SparkTables
from windows_pipeline.settings import Settings
from windows_pipeline.storage.tables import source_tables, window_tables

A_DAY = 12


def flown() -> list[Record]:
    """Records of two days, out of order and some late; another day closes all windows."""
    draw = Random(7)
    listed = [
        record_of(
            arrival_unit,
            offset,
            draw.choice(("a", None)),
            10 * arrival_unit + offset + draw.randrange(9),
            delay=draw.choice((9.0, 1.0)),
        )
        for arrival_unit in range(2)
        for offset in range(A_DAY)
    ]
    return [*listed, record_of(2, 0, "c", 1_000)]


@pytest.mark.parametrize(
    ("kind", "keyed"),
    [(kind, ("filtered", "two", "source")[number % 3]) for number, kind in enumerate(KINDS)],
)
def test_both_find_the_same_records(
    kind: str, keyed: str, spark: SparkSession, settings: Settings, tmp_path: Path
) -> None:
    """Of all windows of a key that end with its last one."""
    records = flown()
    is_in = passes if keyed == "filtered" else lambda _: True
    finals = asked_for(finals_of(seen_by(records, KEY_OF[keyed], is_in), 3, kind))
    pipeline, own = pipeline_of(tmp_path, kind, keyed), str(tmp_path / "warehouse")
    source = source_tables(pipeline, own)
    final_windows = window_tables(pipeline, "hourly", own).final_windows
    for table in (source.raw_events, source.arrival_log, final_windows):
        table.create_if_missing(spark)  # with the definition, which Spark's readers look for
    write(pipeline, own, records, finals, keyed)
    last = max(finals, key=lambda each: (each.end, each.row))
    key: Any = stored_key(keyed, last.key)
    store = WindowStore(pipeline, "hourly", own, row_filter=SparkTables(spark).passing)
    end = instant(last.end)
    without = {
        (row["arrival_unit"], row["offset"]): (row["stream_time"], row["close_time"])
        for window in store.bounded(key, end, end)
        if window.end == end
        for row in store.trace(window).records.to_pylist()
    }
    assert without
    parts = tuple(key.values()) if keyed == "two" else key
    found = records_of_alert(
        spark, settings.model_copy(update={"warehouse": own}), pipeline, "hourly", parts, end
    )
    with_spark = {
        (row.arrival_unit, row.offset): tuple(
            at.astimezone(UTC) for at in (row.stream_time, row.close_time)
        )
        for row in found.collect()
    }
    assert with_spark == without


def test_an_alert_is_traced_through_a_filter_and_to_tables_that_only_spark_reads(
    project: SmallProject, spark: SparkSession
) -> None:
    """Rules A5, A9 and E5: by the id of `episodes`; a record that does not pass is left out."""
    rules = {"many": {"when": "c >= 1", "severity": "c"}}
    project.declare({**TUMBLING, "alerts": rules, "where": "abs(v) >= 2"})
    project.land(1, f"{HEADER}a,0,1\na,1,-27\na,2,38\na,100,9\n")
    status, said = project.ingest("run")
    assert status == 0, said
    bounds = "1970-01-01T00:00:00.000Z", "1970-01-01T00:00:00.010Z"
    of_alert = digest(["p", "w", "many", ["a"], *bounds, None])
    status, said = project.call("episodes", "p")
    assert (status, of_alert in said) == (0, True), said
    status, said = project.call("trace", "p", "--alert", of_alert, "--json")
    assert status == 0, said
    assert [record["v"] for record in json.loads(said)["records"]] == [-27.0, 38.0]
    for time, fate in (
        ("1970-01-01 00:00:00.000", "filtered_out"),
        ("1970-01-01 00:00:00.001", "counted"),
    ):
        status, said = project.call("explain", "p", "a", time, "--json")
        assert status == 0, said
        assert [record["fate"] for record in json.loads(said)["records"]] == [fate]
    raw = project.source.raw_events
    raw.set_properties(spark, {"delta.enableDeletionVectors": "true"})
    DeltaTable.forPath(spark, raw.location).delete("v = 1")
    status, said = project.call("trace", "p", "--alert", of_alert, "--json")
    assert status == 0, said
    assert [record["v"] for record in json.loads(said)["records"]] == [-27.0, 38.0]
    # A URI, which has no storage options.
    file = project.folder / "settings.yaml"
    by_uri = {"warehouse": (project.folder / "warehouse").as_uri()}
    file.write_text(yaml.safe_dump(yaml.safe_load(file.read_text()) | by_uri))
    status, said = project.call("trace", "p", "--alert", of_alert)
    assert (status, "or name the window by KEY and TIME" in said) == (2, True), said
    status, said = project.call("trace", "p", "a", bounds[1])
    assert status == 0, said
    assert "starting Spark" in said
    assert (" -27 " in said, " 38 " in said) == (True, True), said
    status, said = project.call("trace", "p", "a", bounds[1], "--json")
    assert (status, "--json: needs tables that can be read without Spark" in said) == (2, True), (
        said
    )
