"""New rows of several tables are brought to the driver in one query, if they are few."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml
from pyspark.sql import DataFrame, SparkSession

from tests.support.pipeline_texts import load_text
from windows_pipeline.compat.local_frame import arrow_schema, small_frame
from windows_pipeline.storage.gathered import gather
from windows_pipeline.storage.table import Table
from windows_pipeline.storage.tables import tables_of

FIRST, SECOND = date(2026, 3, 1), date(2026, 3, 2)
PIPELINE: dict[str, Any] = {
    "name": "p",
    "source": {
        "path": "data",
        "format": "jsonl",
        "columns": {"a": "string", "b": "bigint", "t": "timestamp", "v": "double"},
        "key": ["a", "b"],
        "event_time": "t",
    },
    "partitions": {"start": FIRST},
    "windows": {"w": {"kind": "tumbling", "size": "1 hour", "grace": "0 ms"}},
}


@pytest.fixture
def tables(spark: SparkSession, tmp_path: Path) -> list[Table]:
    """Records, sorted by time, and rejected records, sorted by reason."""
    pipeline = load_text(tmp_path, yaml.safe_dump(PIPELINE))
    of_source = tables_of(pipeline, str(tmp_path / "warehouse"))
    found = [of_source.raw_events, of_source.rejected_records]
    for table in found:
        table.create_if_missing(spark)
    return found


def rows_of(spark: SparkSession, table: Table, *rows: dict[str, object]) -> DataFrame:
    names = table.schema.names
    return small_frame(spark, [[row.get(name) for name in names] for row in rows], table.schema)


def record(day: date, key: tuple[str | None, int | None], second: int) -> dict[str, object]:
    at = datetime(2026, 3, 1, 12, 0, second, tzinfo=UTC)
    fields = {"a": key[0], "b": key[1]}
    return {
        "arrival_unit": day,
        "source_partition": "f",
        "offset": second,
        "key": fields,
        "event_time": at,
        "running_max": at,
        "v": None if second % 2 else second / 3,
    }


RECORDS = [
    record(SECOND, ("x", 1), 9),
    record(FIRST, ("x", None), 8),
    record(FIRST, (None, 2), 3),
    record(SECOND, ("", 1), 4),
]
REJECTED: list[dict[str, object]] = [
    {"arrival_unit": FIRST, "source_partition": "f", "reason": reason, "text": reason}
    for reason in ("late", None, "early")
]


def test_each_table_gets_its_rows_in_the_order_of_its_files(
    spark: SparkSession, tables: list[Table]
) -> None:
    """By arrival unit and the table's own columns; nulls come first, as Spark sorts them."""
    new = [
        (table, rows_of(spark, table, *rows))
        for table, rows in zip(tables, (RECORDS, REJECTED), strict=True)
    ]
    found = gather(new)
    assert found is not None
    for table, rows in zip(tables, found, strict=True):
        assert rows.schema == arrow_schema(table.schema)
    records, rejected = (rows.to_pylist() for rows in found)
    assert [row["offset"] for row in records] == [3, 8, 4, 9]
    assert {row["offset"]: row["v"] for row in records} == {3: None, 8: 8 / 3, 4: 4 / 3, 9: None}
    assert [row["key"] for row in records][:2] == [{"a": None, "b": 2}, {"a": "x", "b": None}]
    assert [row["reason"] for row in rejected] == [None, "early", "late"]


def test_published_rows_are_those_that_spark_publishes(
    spark: SparkSession, tables: list[Table]
) -> None:
    table, days = tables[0], [FIRST, SECOND]
    rows = rows_of(spark, table, *RECORDS)
    assert table.publish(rows, days) == 1
    by_spark = sorted(map(repr, table.read(spark).collect()))
    found = gather([(table, rows)])
    assert found is not None
    table.publish(rows, days, len(RECORDS), found[0])
    assert sorted(map(repr, table.read(spark).collect())) == by_spark
    table.withdraw(spark, [SECOND])
    table.publish_new(rows, days, len(RECORDS), found[0].slice(0, 3))  # of FIRST, none is new
    assert sorted(row.offset for row in table.read(spark).collect()) == [3, 4, 8]


def test_spark_writes_many_rows_and_what_the_driver_does_not_reach(
    spark: SparkSession, tables: list[Table]
) -> None:
    table = tables[0]
    rows = rows_of(spark, table, *RECORDS)
    by_uri = replace(table, location=f"file:{table.location}")
    for other in (by_uri, replace(table, starts_over=True)):
        assert gather([(table, rows), (other, rows)]) is None
    assert gather([(table, rows)], most_rows=len(RECORDS)) is not None
    assert gather([(table, rows)], most_rows=len(RECORDS) - 1) is None
