"""The project's definitions load; the schedule asks for the newest day; a second YAML runs."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import dagster as dg
import pytest
import yaml
from pyspark.sql import SparkSession

from definitions import build_definitions, defs
from demo.run import assets_of_demo
from tests.support.pipelines import ROOT, Project, day, materializations
from tests.support.requested_runs import requested_days
from tests.support.written_tables import log_days
from windows_pipeline.config import load_pipeline
from windows_pipeline.dagster import asset_key, range_tags
from windows_pipeline.jobs import KeyedWindowsJob, check_published, published_days
from windows_pipeline.settings import Settings
from windows_pipeline.storage.table import Table
from windows_pipeline.storage.tables import source_tables, window_tables
from windows_pipeline.storage.writer_lock import writing


@pytest.fixture
def carriers(tmp_path: Path, settings: Settings, landed_flights: Path) -> Project:
    """A project with a pipeline of carriers' windows as its only one, and three landed days."""
    project = Project(tmp_path, settings)
    declared = yaml.safe_load((ROOT / "pipelines" / "flights.yaml").read_text())
    windows = {name: of for name, of in declared["windows"].items() if "carrier" in name}
    (tmp_path / "pipelines").mkdir()
    text = yaml.safe_dump({**declared, "name": "carriers", "windows": windows})
    (tmp_path / "pipelines" / "carriers.yaml").write_text(text)
    project.land(landed_flights, 3)
    return project


class Nights:
    """The schedule's ticks over one Dagster instance, a night after the other."""

    def __init__(self, project: Project, instance: dg.DagsterInstance) -> None:
        self._definitions = build_definitions(project.settings)
        dg.Definitions.validate_loadable(self._definitions)
        self._pipeline = load_pipeline(project.folder / "pipelines" / "carriers.yaml")
        self._warehouse = project.settings.warehouse
        self._instance = instance
        self._now = datetime(2026, 1, 1, 0, 30, tzinfo=UTC)
        self._keys: set[str | None] = set()
        self.skipped: str | None = None

    def materialized(self, asset: str, *days: int) -> None:
        """An asset has days, by Dagster's events; raw_events by the arrival log, too."""
        if asset == "raw_events":
            log_days(self._pipeline, self._warehouse, (day(number).isoformat() for number in days))
        for number in days:
            key = dg.AssetKey(["carriers", *asset.split("/")])
            made = dg.AssetMaterialization(key, partition=day(number).isoformat())
            self._instance.report_runless_asset_event(made)

    def begun(self, first: int, last: int) -> dg.DagsterRun:
        """A run of some days that is not finished."""
        return self._instance.create_run_for_job(
            self._definitions.resolve_job_def("carriers_all"),
            tags=range_tags(day(first).isoformat(), day(last).isoformat()),
        )

    def failed(self, first: int, last: int, *, but: str | None = None) -> None:
        """A run of some days that failed: nothing came of it, but what one step made."""
        run = self.begun(first, last)
        if but is not None:
            self.materialized(but, *range(first, last + 1))
        self._instance.report_run_failed(run)

    def assets(self) -> list[str]:
        """All that a run of the job materializes, without the pipeline's name."""
        job = self._definitions.resolve_job_def("carriers_all")
        return ["/".join(key.path[1:]) for key in job.asset_layer.executable_asset_keys]

    def asked(self) -> list[tuple[str, str]]:
        """The first and the last day of each run that the next tick asks for."""
        self._now += timedelta(days=1)
        schedule = self._definitions.resolve_schedule_def("carriers_daily")
        with dg.build_schedule_context(
            instance=self._instance,
            scheduled_execution_time=self._now,
            repository_def=self._definitions.get_repository_def(),
        ) as context:
            tick = schedule.evaluate_tick(context)
        requests, self.skipped = tick.run_requests or [], tick.skip_message
        # Dagster passes over a request with a key that it has seen.
        assert not self._keys & {request.run_key for request in requests}
        self._keys |= {request.run_key for request in requests}
        return requested_days(requests)


@pytest.fixture
def nights(carriers: Project) -> Iterator[Nights]:
    with TemporaryDirectory() as folder, dg.DagsterInstance.local_temp(folder) as instance:
        yield Nights(carriers, instance)


FIRST, SECOND, THIRD = (day(number).isoformat() for number in (1, 2, 3))


def test_the_schedule_asks_for_the_newest_landed_days(carriers: Project, nights: Nights) -> None:
    assert nights.asked() == [(FIRST, THIRD)]
    nights.materialized("raw_events", 1, 3)
    # The days that a missing day blocked come with it.
    assert nights.asked() == [(SECOND, THIRD)]
    nights.materialized("raw_events", 2)
    assert nights.asked() == []
    shutil.rmtree(carriers.folder / "data" / "flights" / SECOND)
    assert nights.asked() == []
    assert nights.skipped == f"the newest landed day, {THIRD}, is materialized"


def test_the_schedule_asks_for_no_day_while_a_command_writes(
    carriers: Project, nights: Nights
) -> None:
    pipeline = load_pipeline(carriers.folder / "pipelines" / "carriers.yaml")
    with writing(pipeline, carriers.settings.warehouse):
        assert nights.asked() == []
    assert nights.asked() == [(FIRST, THIRD)]


def test_the_schedule_asks_for_no_day_before_a_gap(carriers: Project, nights: Nights) -> None:
    shutil.rmtree(carriers.folder / "data" / "flights" / SECOND)
    assert nights.asked() == [(THIRD, THIRD)]
    nights.materialized("raw_events", 3)
    assert nights.asked() == []
    assert nights.skipped is not None
    assert f"nothing closes before the raw day {SECOND}" in nights.skipped


def test_the_schedule_asks_again_for_a_day_of_which_a_step_failed(nights: Nights) -> None:
    """By itself, so that a new day need not wait for one that fails again."""
    nights.materialized("raw_events", 1)
    nights.failed(2, 2, but="raw_events")
    assert nights.asked() == [(THIRD, THIRD), (SECOND, THIRD)]
    nights.materialized("raw_events", 3)
    assert nights.asked() == [(SECOND, THIRD)]
    assert nights.asked() == [(SECOND, THIRD)]
    # What became of it since counts, and of definitions that nobody asked for nothing is missing.
    for asset in nights.assets():
        nights.materialized(asset, 2)
    assert nights.asked() == []


def test_the_schedule_leaves_days_to_the_run_that_computes_them(nights: Nights) -> None:
    nights.begun(1, 2)
    assert nights.asked() == [(THIRD, THIRD)]
    nights.begun(3, 3)
    assert nights.asked() == []


def test_the_schedule_asks_again_for_a_raw_day_that_failed(nights: Nights) -> None:
    nights.materialized("raw_events", 2)
    nights.failed(1, 1)
    assert nights.asked() == [(THIRD, THIRD), (FIRST, THIRD)]
    nights.failed(1, 3)
    assert nights.asked() == [(FIRST, THIRD)]


def rows_reported(result: dg.ExecuteInProcessResult, table: Table) -> set[object]:
    """How many rows of the run a table's materializations report."""
    made = (one for one in materializations(result) if one.asset_key == asset_key(table))
    return {one.metadata["rows_of_run"].value for one in made}


def test_a_second_yaml_file_is_a_second_pipeline(carriers: Project, spark: SparkSession) -> None:
    """Its windows have another key than its source, and a filter (rules A5, A9)."""
    definitions = build_definitions(carriers.settings)
    with dg.DagsterInstance.ephemeral() as instance:
        result = definitions.resolve_job_def("carriers_all").execute_in_process(
            instance=instance,
            # One of its two window definitions is enough.
            asset_selection=[
                dg.AssetKey(["carriers", *table])
                for table in (
                    ["raw_events"],
                    ["carrier_three_hours", "keyed_windows"],
                    ["carrier_three_hours", "final_windows"],
                    ["carrier_three_hours", "alerts"],
                )
            ],
            tags=range_tags(day(1).isoformat(), day(3).isoformat()),
            raise_on_error=False,
        )
    assert result.success
    pipeline = load_pipeline(carriers.folder / "pipelines" / "carriers.yaml")
    raw = source_tables(pipeline, carriers.settings.warehouse).raw_events.read(spark)
    assert {row.key for row in raw.select("key").distinct().collect()} == {"EWR", "JFK", "LGA"}
    tables = window_tables(pipeline, "carrier_three_hours", carriers.settings.warehouse)
    final = tables.final_windows.read(spark)
    assert {"UA", "DL", "AA"} <= {row.key for row in final.select("key").distinct().collect()}
    # It keeps closed windows only.
    keyed = tables.keyed_windows.read(spark)
    assert keyed.where("NOT closed").isEmpty()
    assert rows_reported(result, tables.keyed_windows) == {keyed.count()}
    # What is published stands its checks by itself, without the windows that are open.
    job = KeyedWindowsJob(pipeline, "carrier_three_hours", carriers.settings)
    checks = check_published(job, spark, published_days(job, spark))
    assert [check.check.name for check in checks if not check.passed] == []


def test_windows_with_a_trigger_have_firings_which_the_demo_leaves_out() -> None:
    job = defs.resolve_job_def("flights_all")
    every = {key.to_user_string() for key in job.asset_layer.executable_asset_keys}
    derived = {"keyed_windows", "final_windows", "alerts"}
    fired = {"firings"}
    shared = {"flights/raw_events"}
    hourly = {f"flights/hourly/{name}" for name in derived}
    by_hour = {f"flights/by_hour/{name}" for name in derived | fired}
    of_carriers = {
        f"flights/{windows}/{name}"
        for windows in ("carrier_half_hour", "carrier_three_hours")
        for name in derived
    }
    assert every == shared | hourly | by_hour | of_carriers
    assert {key.to_user_string() for key in assets_of_demo(job)} == shared | hourly
    graph = defs.resolve_asset_graph()
    alerts = graph.get(dg.AssetKey(["flights", "by_hour", "alerts"]))
    assert dg.AssetKey(["flights", "by_hour", "early_warnings"]) in alerts.parent_keys
