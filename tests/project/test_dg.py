"""Dagster's `dg` finds the project by pyproject.toml, as docs/dagster.md says."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.small_project import HEADER, SmallProject
from tests.support.stored_rows import named_rows
from windows_pipeline.settings import SETTINGS_VARIABLE

ROOT = Path(__file__).parents[2]
DG = Path(sys.executable).with_name("dg")


def dg(home: Path, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs `dg` in the project's folder, with an instance of its own."""
    home.mkdir(exist_ok=True)
    shutil.copy(ROOT / "windows_pipeline" / "dagster" / "dagster.yaml", home)
    variables = {**os.environ, "DAGSTER_HOME": str(home), **environment}
    return subprocess.run(
        [DG, *words], cwd=ROOT, env=variables, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("check", "defs"), "All definitions loaded successfully."),
        (("check", "toml"), "All TOML configuration files are valid."),
        (("check", "yaml"), "All component YAML validated successfully."),
    ],
    ids=["defs", "toml", "yaml"],
)
def test_dg_finds_nothing_wrong(tmp_path: Path, words: tuple[str, ...], said: str) -> None:
    done = dg(tmp_path, *words)
    assert (done.returncode, said in done.stdout + done.stderr) == (0, True), done


def test_dg_lists_what_a_pipeline_has(tmp_path: Path) -> None:
    done = dg(tmp_path, "list", "defs", "--json")
    assert done.returncode == 0, done
    found = json.loads(done.stdout)
    assets = {asset["asset_key"] for asset in found["assets"]}
    assert {"flights/raw_events", "flights/hourly/final_windows"} <= assets
    names = {kind: {one["name"] for one in found[kind]} for kind in found if kind != "assets"}
    assert {"flights_all", "flights_correction", "flights_rebuild"} <= names["jobs"]
    assert {"flights_daily", "flights_weekly_maintenance"} <= names["schedules"]
    assert "flights_landing" in names["sensors"]
    assert {"rules", "alert_disruption"} <= names["asset_checks"]
    assert names["resources"] == {"spark", "io_manager"}


def test_dg_knows_the_component(tmp_path: Path) -> None:
    done = dg(tmp_path, "list", "components", "--json")
    assert done.returncode == 0, done
    keys = {one["key"] for one in json.loads(done.stdout)["items"]}
    assert "windows_pipeline.dagster.WindowsPipelines" in keys


@pytest.mark.long
def test_dg_launches_a_day(project: SmallProject, tmp_path: Path) -> None:
    project.declare()
    project.land(1, f"{HEADER}a,0,1\nb,2,7\nz,13,5\n")
    settings = {SETTINGS_VARIABLE: str(project.folder / "settings.yaml")}
    done = dg(
        tmp_path / "home", "launch", "--job", "p_all", "--partition", "2026-11-01", **settings
    )
    assert done.returncode == 0, done
    final = {row["key"]: row["s"] for row in named_rows(project.windows.final_windows)}
    assert final == {"a": 1.0, "b": 7.0}
