"""What a user does and sees in the Dagster UI of `make ui`, in a real browser: `make browser`."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from datetime import date, datetime, timedelta
from pathlib import Path

import dagster as dg
import pytest

from tests.browser.dagster_pages import DagsterPages, browser_page, instant_text
from tests.browser.project_ui import make_project, running_ui
from tests.support.pipelines import DERIVED, Project, day, version_of
from windows_pipeline.compat.spark_session import start_session
from windows_pipeline.settings import Settings
from windows_pipeline.storage.table import Table
from windows_pipeline.storage.tables import firing_tables

WITH_RULES = ("raw_events", "hourly/keyed_windows", "hourly/final_windows", "hourly/firings")
"""The assets whose only check is that of their table's rules."""
LANDED = 3
GRACE = timedelta(hours=6)


@pytest.fixture
def project(tmp_path: Path, small_settings: Settings, landed_flights: Path) -> Project:
    """Three days have landed, nothing is materialized; the folder's name has a blank."""
    project = make_project(tmp_path / "a project", small_settings, landed_flights, LANDED)
    project.declare(trigger={"early_every": "15 minutes"})
    return project


def of_firings(project: Project) -> list[Table]:
    """The tables firings and early_warnings."""
    tables = firing_tables(project.pipeline, "hourly", project.settings.warehouse)
    assert tables is not None
    return tables.all


@pytest.fixture
def pages(project: Project, tmp_path: Path) -> Iterator[DagsterPages]:
    with running_ui(project.folder) as address, browser_page(tmp_path / "last_seen.png") as page:
        yield DagsterPages(page, address)


def test_days_materialized_by_clicks_are_shown_as_they_are(
    project: Project, pages: DagsterPages, monkeypatch: pytest.MonkeyPatch
) -> None:
    pages.open_graph()
    of_source = ("raw_events", "rejected_records", "arrival_log")
    for asset in (*of_source, *DERIVED, "corrections", "firings", "early_warnings"):
        pages.shows_asset(asset)

    pages.backfill_all(day(1), day(2))
    for asset in WITH_RULES:
        pages.shows_passed(asset, ["rules"])
        for arrived in (day(1), day(2)):
            pages.shows_passed_day(asset, "rules", arrived)
    pages.open_graph()
    for asset in WITH_RULES:
        pages.shows_asset(asset.split("/")[-1], "1 / 1 Passed")
    shows_landed(pages, project, day(2))
    pages.open_day("hourly/alerts", day(2))
    pages.shows_plot("alerts")
    for arrived in (day(1), day(2)):
        pages.open_day("raw_events", arrived)
        pages.shows_plot("lateness")

    pages.materialize_all(day(3))
    shows_landed(pages, project, day(3))
    tables_hold_what_is_shown(pages, project)
    instance_knows_two_runs(project, monkeypatch)


def shows_landed(pages: DagsterPages, project: Project, newest: date) -> None:
    """What is said of a day is what has landed: its records, and how far they close windows."""
    of_day = accepted(project, newest)
    pages.open_day("raw_events", newest)
    pages.shows_metadata("dagster/partition_row_count", str(len(of_day)))
    pages.open_day("hourly/final_windows", newest)
    pages.shows_metadata("closed_through", instant_text(max(of_day) - GRACE))


def accepted(project: Project, landed: date) -> list[datetime]:
    """The departures of a day's records but the diverted flights', which are rejected."""
    lines = (project.folder / "data/flights" / str(landed) / "flights.jsonl").read_text()
    records = [json.loads(line) for line in lines.splitlines()]
    return [
        datetime.fromisoformat(record["departed_at"])
        for record in records
        if record["landed_at"] is not None
    ]


def tables_hold_what_is_shown(pages: DagsterPages, project: Project) -> None:
    """Each day has the rows and the version that its page shows."""
    spark = start_session(project.settings)
    try:
        newest = day(LANDED)
        for table in (project.windows.final_windows, project.windows.alerts, *of_firings(project)):
            rows = Counter(
                row.arrival_unit for row in table.read(spark).select("arrival_unit").collect()
            )
            name = table.name.removeprefix("flights/")
            assert rows, name
            pages.shows_storage(name, table.location)
            pages.open_day(name, newest)
            pages.shows_metadata("delta_version", str(version_of(spark, table)))
            for shown in (day(1), day(2), newest):
                pages.open_day(name, shown)
                pages.shows_metadata("dagster/partition_row_count", str(rows[shown]))
        raw = project.source.raw_events.read(spark)
        landed = sum(len(accepted(project, day(number))) for number in range(1, LANDED + 1))
        assert raw.count() == landed
    finally:
        spark.stop()


def instance_knows_two_runs(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """The range was one run, the day after it another; every table has all three days."""
    home = project.folder / ".dagster_home"
    monkeypatch.setenv("DAGSTER_HOME", str(home))
    days = {str(day(number)) for number in range(1, LANDED + 1)}
    with dg.DagsterInstance.from_config(str(home)) as instance:
        runs = instance.get_runs()
        assert [run.status for run in runs] == [dg.DagsterRunStatus.SUCCESS] * 2
        of_windows = [*vars(project.windows).values(), *of_firings(project)]
        for table in [*project.source.all, *of_windows]:
            key = dg.AssetKey(table.name.split("/"))
            if key.path[-1] != "corrections":
                assert instance.get_materialized_partitions(key) == days
