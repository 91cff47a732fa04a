"""Days in any order, again or in ranges, give the tables of one full run (rules E4, H1)."""

from __future__ import annotations

import base64
import json
import re
import shutil
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from itertools import accumulate
from pathlib import Path
from threading import Barrier
from xml.etree import ElementTree as ET

import dagster as dg
import deltalake
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from definitions import build_definitions
from tests.support.pipelines import (
    DAYS,
    DERIVED,
    SELECTED,
    SHORT_GRACE,
    Project,
    day,
    failed_checks,
    materializations,
    write_unchecked,
)
from tests.support.spark_cases import texts
from tests.support.stored_rows import stored_rows
from windows_pipeline.dagster import asset_key
from windows_pipeline.jobs import RawEventsJob
from windows_pipeline.storage.table import Table

OF_OTHERS = {
    "raw_events": ("rejected_records", "arrival_log"),
    "keyed_windows": ("late_records", "failed_windows"),
    "alerts": ("episodes",),
}
NUMBERS = {
    "raw_events": {"landed", "arrival_unit_rows"},
    "keyed_windows": {"ingested", "counted", "pending", "late", "rejected"},
    "final_windows": {"records", "watermark_before", "watermark_after", "closed_through"},
    "alerts": {"alert_disruption", "alert_quiet"},
}
Rows = dict[str, list[tuple[object, ...]]]


@pytest.fixture(scope="module")
def expected(full_run: Project) -> Rows:
    rows = full_run.all_rows()
    # Each table must have rows of several days, or the comparison proves nothing. No aggregate of
    # these flights fails.
    for table in set(DERIVED) - {"failed_windows"}:
        assert len({row[0] for row in rows[table]}) > 1, table
    return rows


def not_ingested(full_run: Project, folder: Path) -> Project:
    """The same files and definition, without any table."""
    for name in ("pipelines", "data"):
        shutil.copytree(full_run.folder / name, folder / name)
    return Project(folder, full_run.base)


def raw_rows(project: Project) -> dict[str, list[str]]:
    return {table.name: texts(stored_rows(table)) for table in project.source.of_source}


def test_a_missing_raw_day_blocks_later_days_which_then_run_backwards(
    full_run: Project, tmp_path: Path, spark: SparkSession, expected: Rows
) -> None:
    """Rules A2, E4, H1."""
    project = full_run.copy(tmp_path / "gap", derived=False)
    project.source.arrival_log.withdraw(spark, [day(2)])
    result = project.run(1, DAYS, *DERIVED)
    # The run reports the missing day, and does not fail.
    assert result.success
    assert failed_checks(result) == {"no_arrival_missing"}
    assert project.all_rows() == {
        table: [row for row in rows if row[0] == repr(day(1))] for table, rows in expected.items()
    }
    blocked = {
        one.partition: one.metadata["blocked_by"].value
        for one in materializations(result)
        if "blocked_by" in one.metadata
    }
    assert blocked == dict.fromkeys((day(2).isoformat(), day(3).isoformat()), "2013-01-02")

    # The gap is filled; the days that it blocked follow, the last first, and no day before it is
    # there.
    assert project.run(2, 2, "raw_events").success
    for table in DERIVED:
        deltalake.DeltaTable(getattr(project.windows, table).location).delete()
    assert not any(project.all_rows().values())
    for number in range(DAYS, 0, -1):
        assert project.run(number, number, *DERIVED).success
    assert project.all_rows() == expected


def test_day_after_day_then_all_days_again(
    full_run: Project, tmp_path: Path, spark: SparkSession, expected: Rows
) -> None:
    """Rules A1, E4, H1: as a daily schedule runs them, no later day is there yet.

    The last day comes as one after a step that failed: with those before it, of which each raw day
    is in the arrival log.
    """
    project = not_ingested(full_run, tmp_path)
    for number in range(1, DAYS):
        assert project.run(number, number).success
    result = project.run(1, DAYS)
    assert result.success
    assert project.all_rows() == expected
    assert raw_rows(project) == raw_rows(full_run)
    assert_metadata_matches_tables(result, project, spark)


def assert_metadata_matches_tables(
    result: dg.ExecuteInProcessResult, project: Project, spark: SparkSession
) -> None:
    """Requires that each day's metadata in Dagster matches the tables."""
    shown = {
        (one.asset_key.to_user_string(), one.partition): {
            name: value.value for name, value in one.metadata.items()
        }
        for one in materializations(result)
    }
    source = project.source
    of_source: list[Table] = source.of_source
    derived: list[Table] = [getattr(project.windows, name) for name in DERIVED]
    rows = {
        table.name: Counter(row[0] for row in stored_rows(table)) for table in of_source + derived
    }
    late, rejected = rows[project.windows.late_records.name], rows[source.rejected_records.name]
    assert min(len(late), len(rejected)) == DAYS
    # Rules A2 to A4: of one source partition the largest event time so far, less grace.
    latest = (
        source.raw_events.read(spark).groupBy("arrival_unit").agg(F.max("event_time").alias("time"))
    )
    stream_times = accumulate((row.time for row in latest.sort("arrival_unit").collect()), max)
    grace = timedelta(minutes=int(SHORT_GRACE.removesuffix(" minutes")))
    closed = {day(n): (time - grace).timestamp() for n, time in enumerate(stream_times, 1)}

    graph = build_definitions(project.settings).resolve_asset_graph()
    alerts = project.windows.alerts.name
    plots = {
        source.raw_events.name: "lateness",
        project.windows.final_windows.name: "records_a_window",
        alerts: "plot",
    }
    for table in of_source + derived:
        is_main = table.name.rpartition("/")[2] in SELECTED
        with_rows = [of for of in closed if is_main or rows[table.name][of]]
        of_table = {
            "delta_version": deltalake.DeltaTable(table.location).version(),
            "rows_of_run": rows[table.name].total(),
        }
        stored = spark.read.format("delta").load(table.location).dtypes
        described = graph.get(asset_key(table)).metadata
        schema = described["dagster/column_schema"].value
        assert [(column.name, column.type) for column in schema.columns] == stored
        assert described["dagster/uri"] == table.location
        for arrival_unit in with_rows:
            metadata = shown.pop((table.name, arrival_unit.isoformat()))
            if table.name in plots:
                has_alerts = table.name != alerts or rows[alerts][arrival_unit] > 0
                assert_is_a_picture(str(metadata.pop(plots[table.name])), is_drawn=has_alerts)
            of_run = is_main or arrival_unit == with_rows[-1]
            if of_run:
                seconds, pace = metadata.pop("seconds_of_run"), metadata.pop("rows_per_second")
                assert isinstance(seconds, float)
                assert seconds > 0
                assert isinstance(pace, float)
                assert (pace > 0) == (of_table["rows_of_run"] > 0)
            if table in derived and arrival_unit == with_rows[-1]:
                assert_leads_to_raw_columns(metadata.pop("dagster/column_lineage"), table)
            of_day = {
                "dagster/partition_row_count": rows[table.name][arrival_unit],
                "rejected": rejected[arrival_unit],
            }
            if table in derived:
                of_day |= {"late": late[arrival_unit], "closed_through": closed[arrival_unit]}
            else:
                of_day["hourly_closed_through"] = closed[arrival_unit]
            if is_main:  # the numbers of the step's other tables, and those that rules compare
                for name in OF_OTHERS.get(table.name.rpartition("/")[2], ()):
                    of_other = rows[table.name.rpartition("/")[0] + f"/{name}"]
                    of_day[name] = of_other[arrival_unit]
                numbers = NUMBERS.get(table.name.rpartition("/")[2], set())
                first = {"watermark_before"}  # no watermark is before the first day
                assert numbers - first <= metadata.keys(), table.name
                metadata = {n: v for n, v in metadata.items() if n in of_day or n not in numbers}
            assert metadata == of_day | (of_table if of_run else {})
    assert shown == {}


def assert_leads_to_raw_columns(lineage: object, table: Table) -> None:
    """Its columns name those of raw_events that they are made of."""
    assert isinstance(lineage, dg.TableColumnLineage)
    raw = dg.AssetKey(["flights", "raw_events"])
    made_of = {
        column: {(dep.asset_key, dep.column_name) for dep in deps}
        for column, deps in lineage.deps_by_column.items()
    }
    assert made_of["key"] == {(raw, "key")}
    if "avg_dep_delay" in table.schema.names:
        assert made_of["avg_dep_delay"] == {(raw, "dep_delay")}
        assert made_of["window_start"] == {(raw, "event_time")}


def assert_is_a_picture(markdown: str, *, is_drawn: bool) -> None:
    """An SVG image that a browser can show, with bars, or windows of which some are alerts."""
    found = re.search(r"!\[\w+\]\(data:image/svg\+xml;base64,(.+)\)$", markdown)
    if not is_drawn:
        assert (found, markdown) == (None, "No window that this day closed broke a rule.")
        return
    assert found is not None, markdown
    drawing = ET.XML(base64.b64decode(found[1], validate=True))
    assert {"bar", "bad"} & {element.get("class") for element in drawing.iter()}


def test_runs_at_once_ingest_raw_days(
    full_run: Project, tmp_path: Path, spark: SparkSession
) -> None:
    """Rules A1, A2: by independent runs, all of which create the tables.

    Without checks: Great Expectations works in one thread of a process.
    """
    project = not_ingested(full_run, tmp_path)
    begin = Barrier(DAYS)

    def ingest(number: int) -> None:
        job = RawEventsJob(project.source, project.settings)
        begin.wait()
        write_unchecked(job, spark.newSession(), [day(number)])

    with ThreadPoolExecutor(DAYS) as threads:
        list(threads.map(ingest, range(DAYS, 0, -1)))
    assert raw_rows(project) == raw_rows(full_run)


def test_a_day_without_folder_says_what_to_do(full_run: Project, tmp_path: Path) -> None:
    project = Project(tmp_path / "empty", full_run.base)
    project.declare()
    (project.folder / "data" / "flights").mkdir(parents=True)
    result = project.run(1, 1, "raw_events")
    assert not result.success
    failure = json.dumps([str(event) for event in result.all_events if event.is_failure])
    assert "2013-01-01" in failure
    assert "land the day's files, or an empty folder for a day without events" in failure
