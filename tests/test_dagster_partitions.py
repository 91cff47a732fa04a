"""Days in any order, again or in ranges, give the tables of one full run (rules E4, H1)."""

from __future__ import annotations

import json
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest
from pyspark.sql import SparkSession

from engine_runs import texts
from pipeline_runs import (
    DAYS,
    DERIVED,
    Project,
    day,
    failed_checks,
    materializations,
    version_of,
    write_unchecked,
)
from stored_rows import stored_rows
from windows_pipeline.jobs import RawEventsJob


@pytest.fixture(scope="module")
def expected(full_run: Project) -> dict[str, list[tuple[object, ...]]]:
    rows = full_run.all_rows()
    # The comparison must be of something: each table has rows of several days.
    for table in DERIVED:
        assert len({row[0] for row in rows[table]}) > 1, table
    return rows


def test_days_and_the_range_again(full_run: Project, expected: object) -> None:
    raw = stored_rows(full_run.source.raw_events)
    assert full_run.run(1, DAYS).success
    again = stored_rows(full_run.source.raw_events)
    assert sorted(map(repr, raw)) == sorted(map(repr, again))
    assert full_run.all_rows() == expected


def test_a_missing_raw_day_holds_later_days_back_then_backwards(
    full_run: Project, tmp_path: Path, spark: SparkSession, expected: object
) -> None:
    project = full_run.copy(tmp_path / "gap", derived=False)
    project.source.arrival_log.withdraw(spark, [day(2)])
    result = project.run(1, DAYS, *DERIVED)
    # It says so, and does not fail: the days before the gap are there.
    assert result.success
    assert failed_checks(result) == {"no_arrival_missing"}
    closed = project.windows.final_windows.read(spark)
    assert {row.unit for row in closed.select("unit").distinct().collect()} <= {day(1)}
    held_back = {
        one.partition: one.metadata["held_back_by"].value
        for one in materializations(result)
        if "held_back_by" in one.metadata
    }
    assert held_back == dict.fromkeys((day(2).isoformat(), day(3).isoformat()), "2013-01-02")

    # The gap is filled; what it held back follows, the last day first.
    assert project.run(2, 2, "raw_events").success
    for number in range(DAYS, 1, -1):
        result = project.run(number, number, *DERIVED)
        assert result.success
    assert project.all_rows() == expected
    # The last run names the version that it made of each table.
    named = {
        one.asset_key.path[-1]: one.metadata["delta_version"].value
        for one in materializations(result)
    }
    windows = project.windows
    assert named == {name: version_of(spark, getattr(windows, name)) for name in DERIVED}


def test_day_after_day(full_run: Project, tmp_path: Path, expected: object) -> None:
    """As a daily schedule runs it: no later day is there yet."""
    project = Project(tmp_path, full_run.base)
    shutil.copytree(full_run.folder / "pipelines", tmp_path / "pipelines")
    shutil.copytree(full_run.folder / "data", tmp_path / "data")
    for number in range(1, DAYS + 1):
        assert project.run(number, number).success
    assert project.all_rows() == expected


def test_raw_days_ingested_at_once(full_run: Project, tmp_path: Path, spark: SparkSession) -> None:
    """Rules A1, A2: by runs that know nothing of each other, and all make the tables.

    Without checks: Great Expectations works in one thread of a process.
    """
    project = Project(tmp_path, full_run.base)
    for name in ("pipelines", "data"):
        shutil.copytree(full_run.folder / name, tmp_path / name)
    begin = Barrier(DAYS)

    def ingest(number: int) -> None:
        job = RawEventsJob(project.pipeline, project.settings)
        begin.wait()
        write_unchecked(job, spark.newSession(), [day(number)])

    with ThreadPoolExecutor(DAYS) as threads:
        list(threads.map(ingest, range(DAYS, 0, -1)))
    for table in ("raw_events", "arrival_log"):
        found, wanted = (
            texts(stored_rows(getattr(one.source, table))) for one in (project, full_run)
        )
        assert found == wanted, table


def test_a_day_without_folder_says_what_to_do(full_run: Project, tmp_path: Path) -> None:
    project = Project(tmp_path / "empty", full_run.base)
    project.declare()
    (project.folder / "data" / "flights").mkdir(parents=True)
    result = project.run(1, 1, "raw_events")
    assert not result.success
    failure = json.dumps([str(event) for event in result.all_events if event.is_failure])
    assert "2013-01-01" in failure
    assert "land the day's files, or an empty folder for a day without events" in failure
