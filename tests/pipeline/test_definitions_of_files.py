"""A pipeline file with mistakes leaves the others' definitions as they are."""

from __future__ import annotations

import logging
from pathlib import Path

import dagster as dg
import pytest

from definitions import build_definitions
from tests.support.pipeline_texts import FLIGHTS
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
    assert pipelines_of(definitions) == {"flights"}
    assert definitions.resolve_job_def("flights_all").name == "flights_all"
    first, second = caplog.messages
    assert f"left out: {tmp_path / 'bad.yaml'}:" in first
    assert "windows.hourly.grace: '6' has no unit" in first
    assert f"left out: {tmp_path / 'folder.yaml'}: is a folder" in second


def test_with_mistakes_in_all_files_the_code_location_loads_empty(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for name in ("a.yaml", "b.yaml"):
        (tmp_path / name).write_text(FLIGHTS)
    with caplog.at_level(logging.WARNING):
        assert pipelines_of(build_definitions(settings_of(tmp_path))) == set()
    assert len(caplog.messages) == 2
