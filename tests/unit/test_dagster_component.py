"""The component mounts pipelines in another Dagster project; tried with Dagster's own sandbox."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
import yaml
from dagster.components.testing import create_defs_folder_sandbox

from tests.support.doc_blocks import blocks_of
from tests.support.pipeline_texts import FLIGHTS
from windows_pipeline.config import load_pipelines
from windows_pipeline.dagster import WindowsPipelines, build_definitions
from windows_pipeline.settings import SettingsError, load_settings

PAGE = Path(__file__).parents[2] / "docs" / "dagster.md"
SETTINGS = {"warehouse": "tables", "pipelines": "pipelines", "landing": ".", "spark": {}}


def shown_in_docs() -> dict[str, Any]:
    """The component's YAML file of docs/dagster.md."""
    (block,) = (block for block in blocks_of(PAGE) if block.language == "yaml")
    found: dict[str, Any] = yaml.safe_load(block.code)
    return found


def put_project(folder: Path) -> None:
    """A folder with settings, a pipeline, and a file with a mistake."""
    (folder / "pipelines").mkdir(parents=True)
    (folder / "settings.yaml").write_text(yaml.safe_dump(SETTINGS))
    (folder / "pipelines" / "flights.yaml").write_text(FLIGHTS)


def test_a_defs_yaml_mounts_the_pipelines_of_a_folder(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """What docs/dagster.md shows gives what `build_definitions` does, without a wrong file."""
    with create_defs_folder_sandbox() as sandbox:
        mounted = sandbox.scaffold_component(
            component_cls=WindowsPipelines,
            defs_path="windows",
            defs_yaml_contents=shown_in_docs(),
        )
        streams = mounted.parents[1] / "streams"
        put_project(streams)
        wrong = streams / "pipelines" / "wrong.yaml"
        wrong.write_text(FLIGHTS.replace("name: flights", "name: wrong").replace("sliding", "slid"))
        with (
            caplog.at_level(logging.WARNING, "windows_pipeline.definitions"),
            sandbox.load_component_and_build_defs(defs_path=Path("windows")) as (component, defs),
        ):
            assert isinstance(component, WindowsPipelines)
            settings = load_settings(streams)
            wrong.unlink()
            own = build_definitions(load_pipelines(settings.pipelines), settings)
            shown = dg.AssetKey(["mistakes", "wrong_yaml"])
            assert keys(defs) == keys(own) | {shown}
            assert names(defs) == names(own)
    (warned,) = [record.getMessage() for record in caplog.records]
    assert "wrong.yaml:" in warned
    assert "kind: " in warned


def keys(defs: dg.Definitions) -> set[dg.AssetKey]:
    return set(defs.resolve_asset_graph().get_all_asset_keys())


def names(defs: dg.Definitions) -> set[str]:
    """The names of jobs, schedules and sensors."""
    found = (*defs.resolve_all_job_defs(), *(defs.schedules or ()), *(defs.sensors or ()))
    return {one.name for one in found}


def test_a_folder_without_settings_is_named() -> None:
    with create_defs_folder_sandbox() as sandbox:
        sandbox.scaffold_component(
            component_cls=WindowsPipelines,
            defs_path="windows",
            defs_yaml_contents={
                "type": "windows_pipeline.dagster.WindowsPipelines",
                "attributes": {},
            },
        )
        with (
            pytest.raises(Exception, match="Error while building definitions") as raised,
            sandbox.load_component_and_build_defs(defs_path=Path("windows")),
        ):
            pass
    cause = raised.value.__cause__
    assert isinstance(cause, SettingsError)
    assert "settings.yaml: there is no settings file; write one there" in str(cause)
