"""The project's definitions load; the schedule asks for the newest day; a second YAML runs."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

import dagster as dg
import pytest
from dagster._core.storage.tags import (
    ASSET_PARTITION_RANGE_END_TAG,
    ASSET_PARTITION_RANGE_START_TAG,
)
from pyspark.sql import SparkSession

from assets.step import asset_key
from definitions import build_definitions, defs
from demo.run import assets_of_demo
from pipeline_runs import ROOT, Project, day, materializations
from windows_pipeline.config import load_pipeline
from windows_pipeline.jobs import KeyedWindowsJob, check_published, published_days
from windows_pipeline.settings import Settings
from windows_pipeline.tables.catalog import source_tables, window_tables
from windows_pipeline.tables.delta import Table


@pytest.fixture
def carriers(tmp_path: Path, settings: Settings, landed_flights: Path) -> Project:
    """A project with the carriers' pipeline as its only one, and three landed days."""
    project = Project(tmp_path, settings)
    (tmp_path / "pipelines").mkdir()
    shutil.copy(ROOT / "pipelines" / "carriers.yaml", tmp_path / "pipelines")
    project.land(landed_flights, 3)
    return project


def test_the_schedule_asks_for_the_newest_landed_days(carriers: Project) -> None:
    definitions = build_definitions(carriers.settings)
    dg.Definitions.validate_loadable(definitions)
    schedule = definitions.resolve_schedule_def("carriers_daily")
    assert schedule.cron_schedule == "30 0 * * *"
    repository = definitions.get_repository_def()
    now = datetime(2026, 1, 1, 0, 30, tzinfo=UTC)

    def asked(*materialized: int) -> tuple[str, str] | None:
        """The first and the last day that it asks for where some are materialized."""
        with (
            TemporaryDirectory() as folder,
            dg.DagsterInstance.local_temp(folder) as instance,
            dg.build_schedule_context(
                instance=instance, scheduled_execution_time=now, repository_def=repository
            ) as context,
        ):
            for number in materialized:
                made = dg.AssetMaterialization(
                    ["carriers", "raw_events"], partition=day(number).isoformat()
                )
                instance.report_runless_asset_event(made)
            requests = schedule.evaluate_tick(context).run_requests or []
        if not requests:
            return None
        (request,) = requests
        if request.partition_key is not None:
            return request.partition_key, request.partition_key
        tags = request.tags
        return tags[ASSET_PARTITION_RANGE_START_TAG], tags[ASSET_PARTITION_RANGE_END_TAG]

    first, second, third = (day(number).isoformat() for number in (1, 2, 3))
    assert asked() == (first, third)
    assert asked(1, 2) == (third, third)
    # What a missing day held back comes with it.
    assert asked(1, 3) == (second, third)
    assert asked(1, 2, 3) is None
    shutil.rmtree(carriers.folder / "data" / "flights" / second)
    assert asked() == (third, third)


def rows_told(result: dg.ExecuteInProcessResult, table: Table) -> set[object]:
    """How many rows of the run a table's materializations tell of."""
    made = (one for one in materializations(result) if one.asset_key == asset_key(table))
    return {one.metadata["rows_of_run"].value for one in made}


def test_a_second_yaml_file_is_a_second_pipeline(carriers: Project, spark: SparkSession) -> None:
    definitions = build_definitions(carriers.settings)
    with dg.DagsterInstance.ephemeral() as instance:
        result = definitions.resolve_job_def("carriers_all").execute_in_process(
            instance=instance,
            # One of its two window definitions is enough.
            asset_selection=[
                dg.AssetKey(["carriers", *table])
                for table in (
                    ["raw_events"],
                    ["rejected_records"],
                    ["arrival_log"],
                    ["half_hour", "keyed_windows"],
                    ["half_hour", "late_records"],
                    ["half_hour", "final_windows"],
                    ["half_hour", "alerts"],
                )
            ],
            tags={
                ASSET_PARTITION_RANGE_START_TAG: day(1).isoformat(),
                ASSET_PARTITION_RANGE_END_TAG: day(3).isoformat(),
            },
            raise_on_error=False,
        )
    assert result.success
    pipeline = load_pipeline(carriers.folder / "pipelines" / "carriers.yaml")
    raw = source_tables(pipeline, carriers.settings.warehouse).raw_events.read(spark)
    keys = {row.key for row in raw.select("key").distinct().collect()}
    assert {"UA", "DL", "AA"} <= keys
    tables = window_tables(pipeline, "half_hour", carriers.settings.warehouse)
    final = tables.final_windows.read(spark)
    assert {"UA", "DL", "AA"} <= {row.key for row in final.select("key").distinct().collect()}
    # It keeps closed windows only.
    keyed = tables.keyed_windows.read(spark)
    assert keyed.where("NOT closed").isEmpty()
    assert rows_told(result, tables.keyed_windows) == {keyed.count()}
    # What is published stands its checks by itself, without the windows that are open.
    job = KeyedWindowsJob(pipeline, "half_hour", carriers.settings)
    checks = check_published(job, spark, published_days(job, spark))
    assert [check.check.name for check in checks if not check.passed] == []


def test_windows_with_a_trigger_have_firings_and_the_demo_leaves_them_to_try() -> None:
    job = defs.resolve_job_def("flights_all")
    every = {key.to_user_string() for key in job.asset_layer.executable_asset_keys}
    derived = {"keyed_windows", "late_records", "final_windows", "alerts"}
    fired = {"firings", "early_warnings"}
    shared = {f"flights/{name}" for name in ("raw_events", "rejected_records", "arrival_log")}
    hourly = {f"flights/hourly/{name}" for name in derived}
    assert every == shared | hourly | {f"flights/by_hour/{name}" for name in derived | fired}
    assert {key.to_user_string() for key in assets_of_demo(job)} == shared | hourly
    graph = defs.resolve_asset_graph()
    alerts = graph.get(dg.AssetKey(["flights", "by_hour", "alerts"]))
    assert dg.AssetKey(["flights", "by_hour", "early_warnings"]) in alerts.parent_keys
