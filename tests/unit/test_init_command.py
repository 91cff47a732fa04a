"""`init` makes a folder for pipelines outside of this project."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import dagster as dg
import pytest
import yaml

from tests.support.pipeline_texts import FLIGHTS
from windows_pipeline.cli.init import init
from windows_pipeline.settings import SETTINGS_VARIABLE, load_settings
from windows_pipeline.spark_profiles import PROFILES


def test_dagster_loads_the_folder_and_its_pipelines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "streams"
    init(folder)
    monkeypatch.delenv(SETTINGS_VARIABLE, raising=False)
    settings = load_settings(folder)
    assert settings.warehouse == str(folder / "warehouse")
    assert settings.dagster_home == folder / ".dagster_home"
    assert settings.keep_plans is PROFILES["local"].keep_plans
    (folder / "pipelines" / "flights.yaml").write_text(FLIGHTS)
    module = yaml.safe_load((folder / "workspace.yaml").read_text())["load_from"][0]["python_file"]
    listed = subprocess.run(
        [sys.executable, "-c", LIST, module["relative_path"]],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "flights_all" in listed.stdout.split()
    monkeypatch.setenv("DAGSTER_HOME", str(folder / ".dagster_home"))
    with dg.DagsterInstance.get() as instance:
        assert instance.get_runs() == []


LIST = """
import runpy, sys
for job in runpy.run_path(sys.argv[1])["defs"].resolve_all_job_defs():
    print(job.name)
"""


def test_no_file_is_overwritten(tmp_path: Path) -> None:
    own = tmp_path / "settings.yaml"
    own.write_text("mine")
    with pytest.raises(ValueError, match=r"must be new, .* has settings\.yaml; name another"):
        init(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["settings.yaml"]
    assert own.read_text() == "mine"


@pytest.mark.parametrize(
    ("fields", "master", "few"),
    [
        ("profile: local", "local[*]", PROFILES["local"].small_batches),
        ("spark: {spark.master: yarn}", "yarn", {}),
        ("profile: local\nspark: {spark.master: yarn}\nsmall_batches: {}", "yarn", {}),
    ],
)
def test_an_option_of_the_settings_wins_over_that_of_the_profile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fields: str, master: str, few: dict[str, str]
) -> None:
    monkeypatch.delenv(SETTINGS_VARIABLE, raising=False)
    text = f"warehouse: w\npipelines: p\nlanding: .\n{fields}\n"
    (tmp_path / "settings.yaml").write_text(text)
    settings = load_settings(tmp_path)
    assert settings.spark["spark.master"] == master
    assert settings.conf_for(1) == few
    cached = settings.spark.get("spark.sql.codegen.cache.maxEntries")
    assert cached == ("2000" if "profile" in fields else None)
