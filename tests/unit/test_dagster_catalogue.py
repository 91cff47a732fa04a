"""What Dagster's catalogue shows of a pipeline's assets, by which people distinguish them."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path

import dagster as dg
import yaml

from tests.support.pipeline_texts import FLIGHTS
from windows_pipeline.config import load_pipelines
from windows_pipeline.dagster import build_definitions
from windows_pipeline.settings import Settings

SETTINGS = Settings(warehouse="tables", pipelines=Path("pipelines"), landing=".", spark={})


def specs(folder: Path, **hourly: str) -> dict[str, dg.AssetSpec]:
    """The assets of a pipeline of two definitions by their keys, with changes of the first one."""
    declared = yaml.safe_load(FLIGHTS)
    windows = declared["windows"]["hourly"]
    declared["windows"] = {"hourly": {**windows, **hourly}, "again": deepcopy(windows)}
    (folder / "flights.yaml").write_text(yaml.safe_dump(declared, sort_keys=False))
    definitions = build_definitions(load_pipelines(folder), SETTINGS)
    found = definitions.resolve_all_asset_specs()
    return {spec.key.to_user_string(): spec for spec in found}


def test_the_graph_names_the_definition_of_each_table(tmp_path: Path) -> None:
    """Tables of two definitions have one name; their nodes show which definition they are of."""
    found = specs(tmp_path)
    for name in ("hourly", "again"):
        assert found[f"flights/{name}/final_windows"].kinds == {"pyspark", "delta", name}
    assert found["flights/raw_events"].kinds == {"pyspark", "delta"}
    assert {spec.group_name for spec in found.values()} == {"flights"}


def test_the_description_of_a_pipeline_is_markdown(tmp_path: Path) -> None:
    (tmp_path / "flights.yaml").write_text(f"description: '**Delays** of `flights`'\n{FLIGHTS}")
    definitions = build_definitions(load_pipelines(tmp_path), SETTINGS)
    for spec in definitions.resolve_all_asset_specs():
        assert "\n\n**Delays** of `flights`" in str(spec.description)


def test_an_edited_definition_changes_the_version_of_its_tables_alone(tmp_path: Path) -> None:
    before, after = specs(tmp_path), specs(tmp_path, grace="2 hours")
    changed = {key for key in before if before[key].code_version != after[key].code_version}
    assert changed == {key for key in before if key.startswith("flights/hourly/")}


def test_the_job_of_days_plans_no_check_but_those_of_a_stream(tmp_path: Path) -> None:
    """Otherwise Dagster shows each day without an evaluation as skipped.

    Nor has a check days of its own: of such a check the list and the graph show another state than
    the page. A stream's raw_events have no step that checks them.
    """
    (tmp_path / "flights.yaml").write_text(FLIGHTS)
    streamed = FLIGHTS.replace("source:\n", "source:\n  stream: true\n", 1)
    (tmp_path / "other.yaml").write_text(streamed.replace("name: flights", "name: other", 1))
    definitions = build_definitions(load_pipelines(tmp_path), SETTINGS)
    graph = definitions.resolve_asset_graph()
    checks = [graph.get_check_spec(key) for key in graph.asset_check_keys]
    assert {spec.key.asset_key.path[0] for spec in checks} == {"flights", "other"}
    assert {spec.partitions_def for spec in checks} == {None}
    planned = {
        name: definitions.resolve_job_def(f"{name}_all").asset_layer.asset_graph.asset_check_keys
        for name in ("flights", "other")
    }
    raw = dg.AssetCheckKey(dg.AssetKey(["other", "raw_events"]), "rules")
    assert planned == {"flights": set(), "other": {raw}}


def test_a_column_says_of_which_raw_columns_it_is_made(tmp_path: Path) -> None:
    """Dagster draws the lineage of columns in its paid version only."""
    schema = specs(tmp_path)["flights/hourly/alerts"].metadata["dagster/column_schema"].value
    described = {column.name: column.description for column in schema.columns}
    assert described["key"] == "the source's column origin (from raw_events: key)"
    assert described["avg_dep_delay"] == "avg(dep_delay) (from raw_events: dep_delay)"
    assert described["rule"] == "name of the rule"


def test_notifications_are_made_of_alerts(tmp_path: Path) -> None:
    notify = "notify:\n  everything: {file: alerts.ndjson}\n"
    (tmp_path / "flights.yaml").write_text(FLIGHTS + notify)
    definitions = build_definitions(load_pipelines(tmp_path), SETTINGS)
    graph = definitions.resolve_asset_graph()
    alerts = dg.AssetKey(["flights", "hourly", "alerts"])
    assert alerts in graph.get(dg.AssetKey(["flights", "hourly", "notifications"])).parent_keys
    assert alerts not in graph.get(alerts).parent_keys
