"""Every file that a run, a stream or Dagster writes follows the umask."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from stat import S_IMODE

import pytest

from tests.support.pipelines import ROOT
from windows_pipeline.settings import load_settings

_PROGRAM = Path(__file__).parents[1] / "support" / "private_run.py"
_UMASK_KEY = "spark.hadoop.fs.permissions.umask-mode"


def test_what_runs_write_is_private_under_a_private_umask(tmp_path: Path) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    ended = subprocess.run(
        [sys.executable, _PROGRAM, folder],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'tests'}", "DAGSTER_HOME": str(folder)},
        umask=0o077,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr[-5000:]
    written = [path for path in folder.rglob("*") if not path.is_symlink()]
    names = {str(path.relative_to(folder)) for path in written}
    for part in (
        *("warehouse/flights/raw_events/_delta_log", "warehouse/flights/rejected_records"),
        *("warehouse/flights/hourly/final_windows", ".dagster_home/history"),
        "stream/warehouse/numbers/_stream/offsets/0",
    ):
        assert part in names
    opened = {name for name in names if S_IMODE((folder / name).stat().st_mode) & 0o077}
    assert opened == set()


@pytest.mark.parametrize("umask", [0o022, 0o027, 0o077])
def test_hadoop_follows_the_process(umask: int) -> None:
    settings = load_settings(ROOT)
    before = os.umask(umask)
    try:
        conf = settings.spark_conf()
        assert os.umask(umask) == umask
    finally:
        os.umask(before)
    assert conf[_UMASK_KEY] == f"{umask:03o}"


def test_hadoops_own_setting_stands_where_it_is_set_and_on_clusters() -> None:
    settings = load_settings(ROOT)
    own = settings.model_copy(update={"spark": {**settings.spark, _UMASK_KEY: "027"}})
    assert own.spark_conf()[_UMASK_KEY] == "027"
    cluster = {**settings.spark, "spark.master": "yarn"}
    assert _UMASK_KEY not in settings.model_copy(update={"spark": cluster}).spark_conf()
