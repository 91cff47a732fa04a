"""A pipeline file with mistakes leaves the others' definitions as they are."""

from __future__ import annotations

import logging
from pathlib import Path

import dagster as dg
import pytest

from definitions import build_definitions
from tests.support.pipeline_texts import FLIGHTS
from windows_pipeline import dagster as factory
from windows_pipeline.config import load_pipelines
from windows_pipeline.settings import Settings


def settings_of(folder: Path) -> Settings:
    return Settings(
        warehouse=str(folder / "warehouse"), pipelines=folder, landing=str(folder), spark={}
    )


def pipelines_of(definitions: dg.Definitions) -> set[str]:
    """The pipelines of all assets, once Dagster has loaded all that there is."""
    dg.Definitions.validate_loadable(definitions)
    keys = definitions.resolve_asset_graph().get_all_asset_keys()
    return {key.path[0] for key in keys}


def mistakes_of(definitions: dg.Definitions) -> dict[str, str]:
    """The texts of the assets that show files with mistakes, by the files' names."""
    graph = definitions.resolve_asset_graph()
    keys = [key for key in graph.get_all_asset_keys() if key.path[0] == "mistakes"]
    return {key.path[1]: (graph.get(key).description or "").replace("\\", "") for key in keys}


def test_a_file_with_mistakes_is_left_out_with_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "good.yaml").write_text(FLIGHTS)
    with caplog.at_level(logging.WARNING):
        assert pipelines_of(build_definitions(settings_of(tmp_path))) == {"flights"}
    assert caplog.messages == []
    wrong = FLIGHTS.replace("name: flights", "name: wrong").replace("grace: 6 hours", "grace: 6")
    (tmp_path / "bad.yaml").write_text(wrong)
    (tmp_path / "folder.yaml").mkdir()
    with caplog.at_level(logging.WARNING):
        definitions = build_definitions(settings_of(tmp_path))
    assert pipelines_of(definitions) == {"flights", "mistakes"}
    assert definitions.resolve_job_def("flights_all").name == "flights_all"
    shown = mistakes_of(definitions)
    line = wrong.splitlines().index("    grace: 6") + 1
    assert f"bad.yaml:{line}: windows.hourly.grace: '6' has no unit" in shown["bad_yaml"]
    assert "folder.yaml: is a folder" in shown["folder_yaml"]
    first, second = caplog.messages
    assert f"because it has a mistake: {tmp_path / 'bad.yaml'}:" in first
    assert "windows.hourly.grace: '6' has no unit" in first
    assert f"because it has a mistake: {tmp_path / 'folder.yaml'}: is a folder" in second


def test_with_mistakes_in_all_files_the_code_location_loads_empty(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for name in ("a.yaml", "b.yaml"):
        (tmp_path / name).write_text(FLIGHTS)
    with caplog.at_level(logging.WARNING):
        definitions = build_definitions(settings_of(tmp_path))
    assert pipelines_of(definitions) == {"mistakes"}
    assert set(mistakes_of(definitions)) == {"a_yaml", "b_yaml"}
    assert len(caplog.messages) == 2


@pytest.mark.parametrize("stream", [False, True], ids=["days", "stream"])
def test_another_project_builds_the_same_definitions(tmp_path: Path, *, stream: bool) -> None:
    """The library's factory needs pipelines and settings, and no file of this project."""
    follows = "source:\n  stream: true\n" if stream else "source:\n"
    (tmp_path / "flights.yaml").write_text(FLIGHTS.replace("source:\n", follows))
    settings = settings_of(tmp_path)
    made = factory.build_definitions(load_pipelines(tmp_path), settings)
    names = names_of(made)
    assert names == names_of(build_definitions(settings))
    assert {"flights/raw_events", "flights/hourly/final_windows"} <= names["assets"]
    follow = ("stream",) if stream else ()
    jobs = ("all", "correction", "rebuild", "check", "maintenance", *follow)
    assert names["jobs"] == {f"flights_{job}" for job in jobs}
    source_schedule = "flights_stream" if stream else "flights_daily"
    assert names["schedules"] == {source_schedule, "flights_weekly_maintenance"}
    assert names["resources"] == {"spark", "io_manager"}


def test_a_project_gives_the_factory_assets_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "flights.yaml").write_text(FLIGHTS)
    settings = settings_of(tmp_path)
    (pipeline,) = load_pipelines(tmp_path)
    own = dg.AssetSpec("report", deps=[dg.AssetKey(["flights", "raw_events"])])
    made = factory.build_definitions(
        [pipeline], settings, assets=[*factory.pipeline_assets(pipeline, settings), own]
    )
    assert pipelines_of(made) == {"flights", "report"}


def names_of(definitions: dg.Definitions) -> dict[str, set[str]]:
    """What there is, by kind."""
    repository = definitions.get_repository_def()
    graph = definitions.resolve_asset_graph()
    return {
        "assets": {key.to_user_string() for key in graph.get_all_asset_keys()},
        "checks": {key.to_user_string() for key in graph.asset_check_keys},
        "jobs": set(repository.job_names) - {"__ASSET_JOB"},
        "schedules": {schedule.name for schedule in repository.schedule_defs},
        "resources": set(definitions.resources or {}),
    }
