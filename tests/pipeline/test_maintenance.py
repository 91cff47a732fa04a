"""Maintenance joins and deletes files, and leaves rows, versions and readers alone."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from pathlib import Path

import dagster as dg
import pytest
from pyspark.sql import SparkSession

from definitions import build_definitions
from tests.support.pipelines import DAYS, Project, day, version_of
from windows_pipeline.storage.arrival_units import in_arrival_units
from windows_pipeline.storage.maintenance import maintain
from windows_pipeline.storage.table import Table, TableMissingError


def files_by_arrival_unit(spark: SparkSession, table: Table) -> dict[date, int]:
    files = table.read(spark).select("arrival_unit", "_metadata.file_path").distinct()
    return {
        row["arrival_unit"]: row["count"] for row in files.groupBy("arrival_unit").count().collect()
    }


def scatter(spark: SparkSession, table: Table) -> None:
    """Writes day 2 again, in three files."""
    rows = table.read(spark).where(in_arrival_units([day(2)])).repartition(3).persist()
    rows.count()
    rows.write.format("delta").mode("overwrite").option(
        "replaceWhere", f"arrival_unit = DATE'{day(2)}'"
    ).save(table.location)
    rows.unpersist()


@pytest.fixture
def crowded(full_run: Project, tmp_path: Path, spark: SparkSession) -> Project:
    """The rows of day 2 lie in three files of keyed_windows."""
    project = full_run.copy(tmp_path / "crowded", derived=True)
    scatter(spark, project.windows.keyed_windows)
    return project


@pytest.mark.long
@pytest.mark.smoke
def test_files_are_joined_once_and_old_versions_stay(crowded: Project, spark: SparkSession) -> None:
    table = crowded.windows.keyed_windows
    rows, version = crowded.rows("keyed_windows"), version_of(spark, table)
    several = {
        arrival_unit: files
        for arrival_unit, files in files_by_arrival_unit(spark, table).items()
        if files > 1
    }
    assert several[day(2)] == 3

    done = maintain(spark, table)
    assert done.arrival_units == sorted(several)
    assert (done.files_before, done.files_after) == (sum(several.values()), len(several))
    assert set(files_by_arrival_unit(spark, table).values()) == {1}
    assert crowded.rows("keyed_windows") == rows
    before = spark.read.format("delta").option("versionAsOf", version).load(table.location)
    assert before.count() == len(rows)

    again = maintain(spark, table)
    assert (again.arrival_units, again.files_before, again.files_after) == ([], 0, 0)


@pytest.mark.long
def test_the_change_data_feed_stays_whole_until_retention_ends(
    crowded: Project, spark: SparkSession
) -> None:
    """Maintenance then deletes the files that were unused for the retention."""
    table = crowded.windows.final_windows
    scatter(spark, table)
    changes = changes_of(spark, table)
    assert {change.split("change=")[1].split(",")[0] for change in changes} == {"insert", "delete"}
    assert maintain(spark, table).files_before == 3
    assert changes_of(spark, table) == changes

    earlier = {path.name for path in parquet_files(table)}
    spark.sql(
        f"ALTER TABLE delta.`{table.location}` "
        "SET TBLPROPERTIES ('delta.deletedFileRetentionDuration' = 'interval 0 seconds')"
    )
    rows = crowded.rows("final_windows")
    maintain(spark, table)
    left = {path.name for path in parquet_files(table)}
    live = table.read(spark).select("_metadata.file_name").distinct().collect()
    assert left == {row.file_name for row in live} < earlier
    assert crowded.rows("final_windows") == rows


def changes_of(spark: SparkSession, table: Table) -> list[str]:
    """The sorted rows of the change data feed."""
    feed = spark.read.format("delta").option("readChangeFeed", True).option("startingVersion", 0)
    return sorted(
        f"change={row['_change_type']}, {row}" for row in feed.load(table.location).collect()
    )


def parquet_files(table: Table) -> set[Path]:
    """The data files, including those that no version needs."""
    return set(Path(table.location).rglob("*.parquet")) - set(
        Path(table.location, "_delta_log").rglob("*")
    )


@pytest.mark.long
def test_arrival_units_that_share_files_are_joined_together(
    full_run: Project, tmp_path: Path, spark: SparkSession
) -> None:
    """The arrival log, which each run reads whole, has few files for many arrival units."""
    project = full_run.copy(tmp_path / "days", derived=False)
    log = project.source.arrival_log
    rows = log.read(spark).persist()
    before = sorted(map(str, rows.collect()))
    for number in (2, 3):
        log.publish(rows.where(in_arrival_units([day(number)])), [day(number)])
    assert len(files_by_arrival_unit(spark, log)) == rows.select("arrival_unit").distinct().count()
    several = log.read(spark).select("_metadata.file_path").distinct().count()
    assert several > 1
    assert maintain(spark, log).files_before == several
    assert log.read(spark).select("_metadata.file_path").distinct().count() == 1
    assert sorted(map(str, log.read(spark).collect())) == before
    assert maintain(spark, log).files_before == 0
    rows.unpersist()


@pytest.mark.long
def test_days_written_at_once_do_not_lose_each_other(
    full_run: Project, tmp_path: Path, spark: SparkSession
) -> None:
    """Arrival units of the log share files, so a write that conflicts with another is repeated."""
    project = full_run.copy(tmp_path / "at once", derived=False)
    log = project.source.arrival_log
    before = log.read(spark).persist()
    rows = sorted(map(str, before.collect()))

    def write(number: int) -> None:
        session = spark.newSession()
        own = session.createDataFrame(before.where(in_arrival_units([day(number)])).toArrow())
        for _ in range(3):
            log.withdraw(session, [day(number)])
            log.publish(own, [day(number)])

    with ThreadPoolExecutor(DAYS) as pool:
        list(pool.map(write, range(1, DAYS + 1)))
    assert sorted(map(str, log.read(spark).collect())) == rows
    before.unpersist()


@pytest.mark.long
def test_the_job_maintains_the_tables_that_exist(
    full_run: Project, tmp_path: Path, spark: SparkSession
) -> None:
    project = full_run.copy(tmp_path / "raw", derived=False)
    raw = project.source.raw_events
    rows = raw.read(spark).count()
    scatter(spark, raw)
    assert files_by_arrival_unit(spark, raw)[day(2)] == 3
    definitions = build_definitions(project.settings)
    with dg.DagsterInstance.ephemeral() as instance:
        job = definitions.resolve_job_def("flights_maintenance")
        assert job.execute_in_process(instance=instance).success
    assert raw.read(spark).count() == rows
    assert set(files_by_arrival_unit(spark, raw).values()) == {1}
    names = {schedule.name for schedule in definitions.schedules or []}
    assert "flights_weekly_maintenance" in names


def test_a_missing_table_is_named(full_run: Project, tmp_path: Path, spark: SparkSession) -> None:
    project = full_run.copy(tmp_path / "raw", derived=False)
    with pytest.raises(TableMissingError, match="flights/hourly/alerts"):
        maintain(spark, project.windows.alerts)


def test_files_have_statistics_of_their_sort_columns_only(
    full_run: Project, spark: SparkSession
) -> None:
    """Bounds of other columns would prune few files, and cost time to write and to read."""
    tables = [
        (full_run.windows.keyed_windows, {"window_end", "key"}),
        (full_run.source.raw_events, {"event_time"}),
        (full_run.source.arrival_log, {"arrival_unit", "source_partition"}),
    ]
    for table, columns in tables:
        added = spark.read.json(f"{table.location}/_delta_log/*.json").select("add.stats")
        found = [json.loads(row.stats) for row in added.dropna().collect()]
        assert found
        assert {name for stats in found for name in stats["minValues"]} == columns, table.name
