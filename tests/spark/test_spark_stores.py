"""A store that reads with Spark gives the rows of one that reads without."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from tests.support.pipeline_texts import FLIGHTS, changed, load_text, of_kind
from tests.support.written_tables import Row, write_rows
from windows_pipeline.config import Pipeline
from windows_pipeline.query import WindowStore
from windows_pipeline.query.stored_window import FoundWindows
from windows_pipeline.query.tables.keys import KeyRange
from windows_pipeline.query.tables.local import LocalTable, NoTableError, UnreadableTableError
from windows_pipeline.query.tables.spark import SparkTables
from windows_pipeline.query.tables.wanted import Span, Wanted
from windows_pipeline.storage.catalog import TableSpec, source_tables, window_tables
from windows_pipeline.storage.schemas import TableColumn

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
SESSIONS = of_kind("kind: session\n    gap: 60 minutes")
OWN_KEY = changed("    grace: 6 hours", "    key: [carrier, flight]\n    grace: 6 hours")
KEYS = ("", "a", "é'", "\uff5e", "\U0001f600")
PARTS = ((None, None), (None, 3), ("", 1), ("a", None), ("a", 2), ("a", 3), ("b", 1))
STARTS = (-90, -1, 0, 45, 130)
Ask = Callable[[WindowStore], FoundWindows]


def at(minutes: float) -> datetime:
    return EPOCH + timedelta(minutes=minutes)


def row(key: object, start: int, day: int = 0, **values: Any) -> Row:
    bounds = {"window_start": at(start), "window_end": at(start + 60)}
    found = {"arrival_unit": date(2013, 1, 1 + day), "key": key, "record_count": start + 90}
    return {**found, **bounds, "failed": [], "avg_dep_delay": 1.5, **values}


def both(
    spark: SparkSession, pipeline: Pipeline, warehouse: str, ask: Ask, **options: Any
) -> list[tuple[Any, datetime]]:
    """The rows of an answer, which both readers give."""
    stores = [
        WindowStore(pipeline, "hourly", warehouse, **options),
        WindowStore(pipeline, "hourly", warehouse, **options, open_table=SparkTables(spark)),
    ]
    without, by_spark = (ask(store).to_arrow() for store in stores)
    assert by_spark.to_pylist() == without.to_pylist()
    assert by_spark.schema.names == without.schema.names
    assert list(ask(stores[1])) == list(ask(stores[0]))
    assert [store.through for store in stores] == [stores[0].through] * 2
    return [(each["key"], each["window_start"]) for each in without.to_pylist()]


QUESTIONS: list[Ask] = [
    lambda store: store.fetch("é'", at(-1), at(45)),
    lambda store: store.fetch("a", newest_first=True),
    lambda store: store.fetch("a", at(1), at(0)),
    lambda store: store.fetch_keys("a", "\uff5e", at(0)),
    lambda store: store.fetch_keys(None, "é'", newest_first=True),
    lambda store: store.holding("\U0001f600", at(60)),
]


def test_the_rows_are_those_of_the_other_reader(tmp_path: Path, spark: SparkSession) -> None:
    """Keys with quotes, bounds on keys and starts, and slices of few rows."""
    pipeline, warehouse = load_text(tmp_path, FLIGHTS), str(tmp_path / "warehouse")
    final = window_tables(pipeline, "hourly", warehouse).final_windows
    for day in range(2):
        rows = [row(key, start, day) for start in STARTS[day::2] for key in KEYS]
        write_rows(final, rows)
    parts = {"source_partition": "0", "rows": 1, "arrival_unit_rejected": 0}
    write_rows(
        source_tables(pipeline, warehouse).arrival_log,
        [{**parts, "arrival_unit": date(2013, 1, 1), "watermark": at(45)}],
    )
    counts = []
    for most_rows in (3, 1_000):
        found = [both(spark, pipeline, warehouse, ask, most_rows=most_rows) for ask in QUESTIONS]
        counts.append(list(map(len, found)))
    assert counts == [[3, 5, 0, 9, 15, 2]] * 2


def test_current_sessions_and_composite_keys_are_the_same(
    tmp_path: Path, spark: SparkSession
) -> None:
    """Rules A9 and E4: a session that grew; null parts of a key come first."""
    pipeline, warehouse = load_text(tmp_path, SESSIONS), str(tmp_path / "sessions")
    keyed = window_tables(pipeline, "hourly", warehouse).keyed_windows
    grown = {**row("a", -10, 1, closed=False, batch=4), "window_end": at(100)}
    write_rows(keyed, [row("a", 0, closed=False, batch=3), row("b", 0, closed=True, batch=3)])
    write_rows(keyed, [grown])
    asked = both(spark, pipeline, warehouse, lambda s: s.find_sessions_of_keys(), table="current")
    assert asked == [("a", at(-10)), ("b", at(0))]
    own, warehouse = load_text(tmp_path, OWN_KEY), str(tmp_path / "own")
    final = window_tables(own, "hourly", warehouse).final_windows
    write_rows(final, [row({"carrier": c, "flight": f}, 0) for c, f in PARTS])
    for first, last in ((("a", None), None), (None, (None, 3)), (("", 2), ("a", 2))):
        found = both(spark, own, warehouse, lambda s, a=first, b=last: s.fetch_keys(a, b))  # type: ignore[misc]
        assert found
    assert both(spark, own, warehouse, lambda s: s.fetch(("a", None))) == [
        ({"carrier": "a", "flight": None}, at(0))
    ]


def test_a_store_by_spark_has_versions_and_history(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is pinned to a version, as the other one; what is missing is named."""
    monkeypatch.delenv("WINDOWS_PIPELINE_SETTINGS", raising=False)
    settings = {"warehouse": "warehouse", "pipelines": "pipelines", "landing": ".", "spark": {}}
    (tmp_path / "settings.yaml").write_text(yaml.safe_dump(settings))
    (tmp_path / "pipelines").mkdir()
    pipeline = load_text(tmp_path / "pipelines", FLIGHTS)
    with pytest.raises(NoTableError, match="flights/hourly/final_windows: the table does not"):
        WindowStore.on(spark, "flights", project=tmp_path)
    tables = window_tables(pipeline, "hourly", str(tmp_path / "warehouse"))
    write_rows(tables.final_windows, [row("a", 0)])
    result = {"record_count": 1, "failed": []}
    change = {"correction": 1, "change": "added", "cause": "a file", "new": result}
    write_rows(tables.corrections, [{**row("a", 0), **change}])
    store = WindowStore.on(spark, "flights", project=tmp_path)
    write_rows(tables.final_windows, [row("a", 60, 1)])
    assert (store.version, len(list(store.fetch("a")))) == (0, 1)
    (correction,) = store.history("a", at(0)).corrections
    assert (correction.change, correction.cause) == ("added", "a file")
    store.refresh()
    assert (store.version, len(list(store.fetch("a")))) == (1, 2)
    assert store.get("a", at(60)) is not None
    with pytest.raises(UnreadableTableError, match=r"must have version 7 in its log, but does not"):
        WindowStore.on(spark, "flights", project=tmp_path, version=7)


@pytest.mark.parametrize(
    ("kind", "keys"),
    [
        ("bigint", (None, -(2**63), -1, 0, 2**63 - 1)),
        ("date", (None, date(1, 1, 1), date(1582, 10, 4), date(9999, 12, 31))),
        (
            "timestamp",
            (None, datetime(1, 1, 1, tzinfo=UTC), EPOCH + timedelta(microseconds=1), at(1)),
        ),
    ],
)
def test_keys_of_each_type_are_found(
    tmp_path: Path, spark: SparkSession, kind: str, keys: tuple[object, ...]
) -> None:
    """Null is a key, before all others; bounds are included."""
    columns = (TableColumn("arrival_unit", "date", ""), TableColumn("key", kind, ""))
    spec = TableSpec("p/w/t", "", str(tmp_path / "t"), columns, ("key",), {})
    write_rows(spec, [{"arrival_unit": date(2013, 1, 1), "key": key} for key in keys])
    without, by_spark = LocalTable(spec), SparkTables(spark)(spec)
    assert by_spark.schema.field("key").type == without.schema.field("key").type
    values = [without.key.value(key, "key") for key in keys]
    ranges = [KeyRange(value, value) for value in values]
    ranges += [KeyRange(values[0], values[2]), KeyRange(values[1], None), KeyRange(None, values[2])]
    sizes = []
    for wanted in map(Wanted, ranges):
        found = [set(table.read(wanted)["key"].to_pylist()) for table in (without, by_spark)]
        assert found[0] == found[1]
        sizes.append(len(found[0]))
    assert sizes == [*[1] * len(keys), 3, len(keys) - 1, 3]


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
    without, by_spark = LocalTable(spec), SparkTables(spark)(spec)
    assert (without.days, without.row_count) == (by_spark.days, None)
    one = without.key.one("a", "key")
    for wanted in (Wanted(), Wanted(one), Wanted(times={"window_end": Span(60_000_000, None)})):
        found = [
            sorted((row["key"], row["m"]) for row in table.read(wanted).to_pylist())
            for table in (without, by_spark)
        ]
        assert found[0] == found[1]
    assert without.read(Wanted(one))["m"].to_pylist() == [0]
