"""The project's definitions load; a second YAML runs."""

from __future__ import annotations

from pathlib import Path

import dagster as dg
import pytest
import yaml
from pyspark.sql import SparkSession

from definitions import build_definitions, defs
from demo.run import assets_of_demo
from tests.support.pipelines import ROOT, Project, day, materializations
from windows_pipeline.config import load_pipeline
from windows_pipeline.dagster import asset_key, range_tags
from windows_pipeline.jobs import KeyedWindowsJob, check_published, published_days
from windows_pipeline.settings import Settings
from windows_pipeline.storage.table import Table
from windows_pipeline.storage.tables import tables_of


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
    raw = tables_of(pipeline, carriers.settings.warehouse).raw_events.read(spark)
    assert {row.key for row in raw.select("key").distinct().collect()} == {"EWR", "JFK", "LGA"}
    tables = tables_of(pipeline, carriers.settings.warehouse).of("carrier_three_hours")
    final = tables.final_windows.read(spark)
    assert {"UA", "DL", "AA"} <= {row.key for row in final.select("key").distinct().collect()}
    # It keeps closed windows only.
    keyed = tables.keyed_windows.read(spark)
    assert keyed.where("NOT closed").isEmpty()
    assert rows_reported(result, tables.keyed_windows) == {keyed.count()}
    # What is published stands its checks by itself, without the windows that are open.
    job = KeyedWindowsJob(
        tables_of(pipeline, carriers.settings.warehouse), "carrier_three_hours", carriers.settings
    )
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
