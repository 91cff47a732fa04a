"""Ctrl-C ends `python -m demo`, which `make demo` runs, at each of its stages."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from shutil import copy

import dagster as dg
import pytest

ROOT = Path(__file__).parents[2]
FILES = ("assets", "definitions.py", "demo", "pipelines", "resources")
STOP_SECONDS = 90


@pytest.mark.long
@pytest.mark.parametrize("stage", ["landing the flights", "flights/raw_events ..."])
def test_one_interrupt_ends_the_demo(tmp_path: Path, stage: str) -> None:
    """Dagster would hold it back until the step ends, and then print a failure."""
    for name in FILES:
        (tmp_path / name).symlink_to(ROOT / name)
    copy(ROOT / "settings.yaml", tmp_path)  # its own folder is where its paths begin
    home = tmp_path / ".dagster_home"
    home.mkdir()
    copy(ROOT / "windows_pipeline" / "dagster" / "dagster.yaml", home)
    demo = subprocess.Popen(
        [sys.executable, "-m", "demo"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT), "DAGSTER_HOME": str(home)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert demo.stdout is not None
        assert any(line.startswith(stage) for line in demo.stdout)
        demo.send_signal(signal.SIGINT)
        out, err = demo.communicate(timeout=STOP_SECONDS)
    finally:
        demo.kill()
        demo.communicate()
    assert (demo.returncode, err) == (130, "")
    assert out.splitlines()[-1] == "stopped; to run the demo again: make demo"
    assert "FAILED" not in out
    with dg.DagsterInstance.from_config(str(home)) as instance:
        assert {run.status for run in instance.get_runs()} <= {dg.DagsterRunStatus.CANCELED}
