"""delta-rs on the driver reads and writes the same tables as Spark."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from delta.tables import DeltaTable
from pyspark.sql import DataFrame, SparkSession

from tests.support.pipeline_texts import PIPELINES
from tests.support.pipelines import Project, day
from tests.support.spark import forget_delta_logs, spark_bytes
from tests.support.spark_cases import texts
from tests.support.streams import writer_of
from windows_pipeline.compat.local_frame import small_frame
from windows_pipeline.compat.spark_session import configured
from windows_pipeline.config import load_pipeline
from windows_pipeline.settings import Settings
from windows_pipeline.storage import delta_rs
from windows_pipeline.storage.catalog import specs_of
from windows_pipeline.storage.gathered import gather
from windows_pipeline.storage.spark_schema import spark_schema
from windows_pipeline.storage.table import Table

DAYS = [date(2026, 11, 1) + timedelta(days=number) for number in range(4)]
CHECKPOINTS = {"spark.databricks.delta.properties.defaults.checkpointInterval": "4"}
COLUMNS = specs_of(load_pipeline(PIPELINES / "flights.yaml"), "").arrival_log.columns
SCHEMA = spark_schema(COLUMNS)
TABLES = ("keyed_windows", "final_windows")
Step = Callable[[Table, SparkSession], object]


class SparkProject(Project):
    """A project whose warehouse is a URI, as in an object store, so only Spark reads and writes."""

    @property
    def settings(self) -> Settings:
        settings = super().settings
        return settings.model_copy(update={"warehouse": f"file:{settings.warehouse}"})


def with_defaults(spark: SparkSession, properties: Mapping[str, str]) -> SparkSession:
    """A session with default properties of new tables; a session's are read once."""
    own = spark.newSession()
    for name, text in properties.items():
        own.conf.set(name, text)
    return own


def for_spark_alone(table: Table) -> Table:
    """The same table by its URI, as in an object store, so only Spark reads and writes it."""
    return replace(table, location=f"file:{table.location}")


def table_in(folder: Path, *, partitioned: bool) -> Table:
    location = str(folder / "a b" / "t*{x}")
    return Table(
        "numbers/log", "Rows.", location, COLUMNS, ("max_event_time",),
        {"a": "hourly 'x' \"y\""},
        change_feed=True, partitioned=partitioned,
    )  # fmt: skip


def rows_of(spark: SparkSession, *numbers: tuple[date, int]) -> DataFrame:
    """Rows of arrival units, each identified by its number."""
    rows = [
        {
            "arrival_unit": arrival_unit,
            "source_partition": str(number),
            "max_event_time": datetime(2026, 11, 1, tzinfo=UTC) + timedelta(seconds=number),
            "rows": number,
            "arrival_unit_rejected": 0,
        }
        for arrival_unit, number in numbers
    ]
    return small_frame(spark, [[row.get(name) for name in SCHEMA.names] for row in rows], SCHEMA)


def publish(*numbers: tuple[date, int], days: list[date]) -> Step:
    return lambda table, spark: table.publish(rows_of(spark, *numbers), days, len(numbers))


def append(batch: int, *numbers: tuple[date, int]) -> Step:
    return lambda table, spark: table.append(rows_of(spark, *numbers), batch, len(numbers))


def reject(rejected: dict[date, int]) -> Step:
    columns = {
        "arrival_unit": pa.array([*rejected], pa.date32()),
        "arrival_unit_rejected": pa.array([*rejected.values()], pa.int64()),
    }
    values = pa.table(columns)
    return lambda table, spark: table.update_arrival_units(spark, values)


def replace_last(table: Table, spark: SparkSession) -> None:
    """By the driver, if it reaches the table."""
    rows = rows_of(spark, (DAYS[2], 5), (DAYS[3], 12))
    gathered = gather([(table, rows)])
    table.replace(rows, "rows IN (5, 12)", gathered and gathered[0])


STEPS: list[Step] = [
    append(0, (DAYS[0], 1), (DAYS[1], 2)),
    append(1, (DAYS[1], 3)),
    append(1, (DAYS[1], 4)),  # the same micro-batch again
    publish((DAYS[2], 5), (DAYS[3], 6), days=DAYS[2:]),
    publish((DAYS[1], 7), days=[DAYS[1], DAYS[3]]),
    lambda table, spark: table.publish_new(rows_of(spark, (DAYS[1], 8), (DAYS[3], 9)), DAYS, 2),
    lambda table, spark: table.withdraw(spark, [DAYS[0]]),
    lambda table, spark: table.withdraw(spark, [DAYS[0]]),
    append(2, (DAYS[3], 10)),
    append(0, (DAYS[3], 11)),
    reject({DAYS[1]: 4, DAYS[0]: 9}),  # no row is added to an arrival unit without any
    reject({DAYS[3]: 6}),
    replace_last,
    replace_last,
]
LEFT = [(DAYS[1], 7, 4), (DAYS[2], 5, 0), (DAYS[3], 9, 6), (DAYS[3], 10, 6), (DAYS[3], 12, 0)]


def test_the_driver_reaches_local_folders_only(spark: SparkSession) -> None:
    assert delta_rs.driver_can_reach(spark, "/data/a b")
    for elsewhere in (
        "s3a://lake/tables",
        "hdfs:/tables",
        "file:///data",
        "/data/[a]",
        "/data/a%20b",
    ):
        assert not delta_rs.driver_can_reach(spark, elsewhere)


@pytest.mark.parametrize("size", ["0", "1b", "1k", "1kb", "20m", "3G", " 1gb", "2t", "1pb", "17"])
def test_sizes_are_read_as_spark_reads_them(spark: SparkSession, size: str) -> None:
    assert delta_rs.bytes_of_size(size) == spark_bytes(spark, size)


@pytest.mark.parametrize("size", ["", "m", "1.5g", "-1", "1 g", "1gg"])
def test_a_text_that_is_no_size_is_refused(size: str) -> None:
    with pytest.raises(ValueError, match=r"spark.driver.maxResultSize must be a size"):
        delta_rs.bytes_of_size(size)


def test_spark_writes_what_does_not_fit_in_the_driver(spark: SparkSession, tmp_path: Path) -> None:
    too_many = 10_000_000
    assert delta_rs.fits_in_driver(spark, SCHEMA, 1_000_000)
    assert not delta_rs.fits_in_driver(spark, SCHEMA, too_many)
    # Spark reads its own setting at the start only, so the test uses another one.
    with configured(spark, {"test.limit": "1m"}):
        assert not delta_rs.fits_in_driver(spark, SCHEMA, 1_000_000, "test.limit")
    with configured(spark, {"test.limit": "0"}):  # no limit in Spark
        assert delta_rs.fits_in_driver(spark, SCHEMA, 1_000_000, "test.limit")
        assert not delta_rs.fits_in_driver(spark, SCHEMA, too_many, "test.limit")
    table = table_in(tmp_path, partitioned=True)
    table.create_if_missing(spark)
    assert table.publish(rows_of(spark, (DAYS[0], 1)), DAYS[:1], too_many) == 1
    assert "Spark" in writer_of(table, 1)
    assert table.publish(rows_of(spark, (DAYS[0], 2)), DAYS[:1], 1) == 2
    assert "delta-rs" in writer_of(table, 2)
    table.append(rows_of(spark, (DAYS[0], 3)), 0, too_many)
    assert "Spark" in writer_of(table, 3)
    assert sorted(row.rows for row in table.read(spark).collect()) == [2, 3]


@pytest.mark.parametrize("by", ["delta-rs", "Spark"])
def test_a_micro_batch_replaces_whole_days(spark: SparkSession, tmp_path: Path, by: str) -> None:
    """Only of a table that has whole days; each micro-batch once."""
    table = replace(table_in(tmp_path, partitioned=True), has_whole_days=True)
    if by == "Spark":
        table = for_spark_alone(table)
    table.create_if_missing(spark)
    for step in (
        append(0, (DAYS[0], 1), (DAYS[1], 2)),
        append(1, (DAYS[1], 3)),
        append(1, (DAYS[1], 4)),  # the same micro-batch again
        append(2, (DAYS[2], 5)),
    ):
        step(table, spark)
    found = sorted((row.arrival_unit, row.rows) for row in table.read(spark).collect())
    assert found == [(DAYS[0], 1), (DAYS[1], 3), (DAYS[2], 5)]


@pytest.mark.long
@pytest.mark.parametrize(
    ("turn", "partitioned"),
    [(None, False), (0, True)],
    ids=["delta-rs", "in turns"],
)
def test_delta_rs_and_spark_write_the_same_table(
    spark: SparkSession, tmp_path: Path, turn: int | None, *, partitioned: bool
) -> None:
    """Rule E4: an arrival unit has the same rows whoever writes them, each micro-batch once."""
    table = table_in(tmp_path, partitioned=partitioned)
    spark = with_defaults(spark, CHECKPOINTS)
    for number, step in enumerate([Table.create_if_missing, *STEPS]):
        by_spark = turn is not None and number % 2 == turn
        step(for_spark_alone(table) if by_spark else table, spark)
    table.require(spark)
    assert table.version(spark) >= 4
    states = []
    for reader in (table, for_spark_alone(table)):
        found = reader.read(spark).select("arrival_unit", "rows", "arrival_unit_rejected").collect()
        properties = reader.texts(spark)
        states.append(
            (
                texts(map(tuple, found)),
                reader.exists(spark),
                reader.version(spark),
                reader.count(spark),
                reader.arrival_units(spark, DAYS[:3]),
                sorted(reader.rows(spark, ["rows"])["rows"].to_pylist()),
                {name: properties[name] for name in properties if "windows_" in name},
                reader.follows_definition(spark),
            )
        )
    assert states[0] == states[1]
    assert states[0][0] == texts(LEFT)
    assert states[0][3:5] == (len(LEFT), {DAYS[1], DAYS[2]})


def test_deleted_rows_in_files_are_not_counted(spark: SparkSession, tmp_path: Path) -> None:
    table = table_in(tmp_path, partitioned=True)
    table.create_if_missing(spark)
    assert table.count(spark) == 0
    table.set_properties(spark, {"delta.enableDeletionVectors": "true"})
    row_count = 20
    table.replace(rows_of(spark, *((DAYS[0], number) for number in range(row_count))), "true")
    DeltaTable.forPath(spark, table.location).delete("rows = 3")
    assert delta_rs.count(table.location) is None
    assert table.count(spark) == row_count - 1


def test_an_older_version_has_its_rows(spark: SparkSession, tmp_path: Path) -> None:
    table = table_in(tmp_path, partitioned=True)
    table.create_if_missing(spark)
    for number in (1, 2, 3):
        table.publish(rows_of(spark, (DAYS[0], number), (DAYS[1], 10 * number)), DAYS[:2], 2)
    for reader in (table, for_spark_alone(table)):
        for version in (1, 2, 3):
            found = reader.of_arrival_units(spark, DAYS[1:3], version).select("rows").collect()
            assert [row.rows for row in found] == [10 * version]
        assert reader.arrival_units(spark) == {*DAYS[:2]}


@pytest.mark.long
def test_the_change_data_feed_is_the_same(spark: SparkSession, tmp_path: Path) -> None:
    """Rule E1: old and new rows, and no row of a repeated micro-batch."""
    feeds = []
    for alone in (False, True):
        table = table_in(tmp_path / str(alone), partitioned=True)
        for step in (Table.create_if_missing, *STEPS):
            step(for_spark_alone(table) if alone else table, spark)
        feed = spark.read.format("delta").option("readChangeFeed", "true")
        changes = feed.option("startingVersion", 0).load(table.location)
        feeds.append(texts(changes.select("_change_type", "arrival_unit", "rows").collect()))
    assert feeds[0] == feeds[1]


@pytest.mark.long
def test_checkpoints_of_both_writers_hold_the_whole_state(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Rule E1: a micro-batch that only a checkpoint records is not repeated."""
    table = table_in(tmp_path, partitioned=True)
    table.create_if_missing(with_defaults(spark, CHECKPOINTS))
    for batch in range(12):
        writer = for_spark_alone(table) if 4 <= batch < 8 else table
        append(batch, (DAYS[0], batch))(writer, spark)
    assert [writer_of(table, version)[:5] for version in (4, 8, 12)] == ["delta", "Apach", "delta"]
    log = Path(table.location) / "_delta_log"
    made = sorted(int(file.name.split(".")[0]) for file in log.glob("*.checkpoint*.parquet"))
    assert made == [4, 8, 12]
    assert not (log / "._last_checkpoint.crc").exists()  # it would belong to the checkpoint before
    for version in range(12):
        (log / f"{version:020}.json").unlink()
    forget_delta_logs(spark)
    for user in (table, for_spark_alone(table)):
        append(7, (DAYS[0], 99))(user, spark)
        assert user.version(spark) == 12
        assert sorted(row.rows for row in user.read(spark).collect()) == [*range(12)]
        user.require(spark)


@pytest.mark.parametrize(
    ("properties", "left"),
    [
        ({}, 1),
        ({"delta.enableExpiredLogCleanup": "false"}, 5),
        ({"delta.enableExpiredLogCleanup": "FALSE"}, 5),
        ({"delta.logRetentionDuration": "interval 60 days"}, 5),
        ({"delta.logRetentionDuration": "60 days"}, 5),
    ],
    ids=["after 30 days", "never", "never, written otherwise", "later", "later, for Spark alone"],
)
def test_a_checkpoint_deletes_commits_by_the_table_s_retention(
    spark: SparkSession, tmp_path: Path, properties: dict[str, str], left: int
) -> None:
    table = table_in(tmp_path, partitioned=True)
    prefix = "spark.databricks.delta.properties.defaults."
    defaults = {prefix + name.removeprefix("delta."): text for name, text in properties.items()}
    table.create_if_missing(with_defaults(spark, {**CHECKPOINTS, **defaults}))
    log = Path(table.location) / "_delta_log"
    for batch in range(3):
        append(batch, (DAYS[0], batch))(table, spark)
    forty_days_ago = time.time() - 40 * 86_400
    for commit in log.glob("*.json"):
        os.utime(commit, (forty_days_ago, forty_days_ago))
    append(3, (DAYS[0], 3))(table, spark)
    assert len([*log.glob("*.json")]) == left
    assert len([*log.glob("*.checkpoint*.parquet")]) == 1
    assert table.count(spark) == 4


def test_only_files_that_cannot_matter_are_skipped(spark: SparkSession, tmp_path: Path) -> None:
    table = table_in(tmp_path, partitioned=True)
    table.create_if_missing(spark)
    for number in range(4):
        append(number, (DAYS[number], number))(table, spark)
    start_ms = int(datetime(2026, 11, 1, tzinfo=UTC).timestamp()) * 1_000
    for since_ms, left in (
        (start_ms + 2_000, [2, 3]),
        (start_ms + 2_500, [3]),
        (-(2**60), [*range(4)]),
    ):
        found = table.read(spark, since_ms=since_ms).select("rows").collect()
        assert sorted(row.rows for row in found) == left
        assert table.rows_since(spark, since_ms) == len(left)
    assert for_spark_alone(table).rows_since(spark, start_ms) == 0
    of_arrival_units = table.read(spark, arrival_units=DAYS[1:3]).select("rows").collect()
    assert sorted(row.rows for row in of_arrival_units) == [1, 2]
    assert table.read(spark, arrival_units=[]).collect() == []
    assert table.read(spark, arrival_units=[]).schema.names == SCHEMA.names


@pytest.mark.long
def test_a_chain_by_spark_alone_is_the_same(
    full_run: Project, spark: SparkSession, tmp_path: Path
) -> None:
    """Rule H1, for tables in an object store."""
    copied = full_run.copy(tmp_path, derived=False)
    alone = SparkProject(copied.folder, copied.base)
    assert alone.run(1, 3, *TABLES, "late_records").success
    assert alone.windows.final_windows.arrival_units(spark, [day(1)]) == {day(1)}
    assert "Spark" in writer_of(copied.windows.final_windows, 1)
    for table in (*TABLES, "late_records"):
        assert copied.rows(table) == full_run.rows(table), table
