"""What Spark does for a store: it evaluates filters, and it may write what deltalake reads."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest
import yaml
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from tests.support.pipeline_texts import FLIGHTS, load_text
from tests.support.written_tables import write_rows
from windows_pipeline.query import WindowStore
from windows_pipeline.query.tables.local import LocalTable, NoTableError, UnreadableTableError
from windows_pipeline.query.tables.wanted import Span, Wanted
from windows_pipeline.storage.catalog import TableColumn, TableSpec, specs_of

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
KEYS = ("", "a", "é'", "\uff5e", "\U0001f600")


def at(minutes: float) -> datetime:
    return EPOCH + timedelta(minutes=minutes)


def test_a_store_with_a_session_is_that_without(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("WINDOWS_PIPELINE_SETTINGS", raising=False)
    settings = {"warehouse": "warehouse", "pipelines": "pipelines", "landing": ".", "spark": {}}
    (tmp_path / "settings.yaml").write_text(yaml.safe_dump(settings))
    (tmp_path / "pipelines").mkdir()
    pipeline = load_text(tmp_path / "pipelines", FLIGHTS)
    with pytest.raises(NoTableError, match="flights/hourly/final_windows: the table does not"):
        WindowStore.on(spark, "flights", project=tmp_path)
    tables = specs_of(pipeline, str(tmp_path / "warehouse")).of("hourly")
    window = {"key": "a", "window_start": at(0), "window_end": at(60)}
    write_rows(tables.final_windows, [{"arrival_unit": date(2013, 1, 1), **window}])
    store = WindowStore.on(spark, "flights", project=tmp_path)
    assert list(store.fetch("a")) == list(WindowStore.open("flights", project=tmp_path).fetch("a"))
    with pytest.raises(UnreadableTableError, match=r"must have version 7 in its log, but does not"):
        WindowStore.on(spark, "flights", project=tmp_path, version=7)


def test_deletion_vectors_and_renamed_columns_are_read_without_spark(
    tmp_path: Path, spark: SparkSession
) -> None:
    """The log does not say how many rows are left."""
    columns = (
        TableColumn("arrival_unit", "date", ""),
        TableColumn("key", "string", ""),
        TableColumn("window_end", "timestamp", ""),
        TableColumn("n", "bigint", ""),
    )
    spec = TableSpec("p/w/t", "", str(tmp_path / "t"), columns, ("window_end", "key"), {})
    rows = [
        {"arrival_unit": date(2013, 1, 1 + day), "key": key, "window_end": at(day), "n": day}
        for day in range(2)
        for key in KEYS
    ]
    write_rows(spec, rows)
    assert LocalTable(spec).row_count == 2 * len(KEYS)
    name = f"delta.`{spec.location}`"
    mapped = "'delta.columnMapping.mode' = 'name', 'delta.enableDeletionVectors' = 'true'"
    spark.sql(
        f"ALTER TABLE {name} SET TBLPROPERTIES ("
        f"{mapped}, 'delta.minReaderVersion' = '3', 'delta.minWriterVersion' = '7')"
    )
    spark.sql(f"ALTER TABLE {name} RENAME COLUMN n TO m")
    spark.sql(f"DELETE FROM {name} WHERE key = 'a' AND m = 1")  # noqa: S608  of the test
    names = "arrival_unit date, key string, window_end timestamp, m bigint"
    added = spark.createDataFrame([(date(2013, 1, 3), "b", at(2), 2)], names)
    added.write.format("delta").mode("append").save(spec.location)
    assert DeltaTable(spec.location).deletion_vectors().read_all().num_rows == 1
    table, stored = LocalTable(spec), spark.read.format("delta").load(spec.location)
    assert (table.days, table.row_count) == ({date(2013, 1, 1 + day) for day in range(3)}, None)
    one = table.key.one("a", "key")
    for wanted, where in (
        (Wanted(), "true"),
        (Wanted(one), "key = 'a'"),
        (Wanted(times={"window_end": Span(60_000_000, None)}), f"window_end >= '{at(1)}'"),
    ):
        by_spark = stored.where(where).select("key", "m").collect()
        found = sorted((row["key"], row["m"]) for row in table.read(wanted).to_pylist())
        assert found == sorted(map(tuple, by_spark))
    assert table.read(Wanted(one))["m"].to_pylist() == [0]
