"""Every file that a run, a stream or Dagster writes follows the umask."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from stat import S_IMODE

import pyarrow.parquet as pq
import pytest

from tests.support.pipelines import ROOT
from tests.support.private_run import CANARY_VARIABLE, REFERENCE
from windows_pipeline.settings import load_settings

_PROGRAM = Path(__file__).parents[1] / "support" / "private_run.py"
CANARY = "canary-7f3a91"
"""A part of the value of a secret."""
_IMPORTED = ("numba", "pandas", "pyarrow", "json", "pyspark_source")
"""What Spark's workers, its daemon and its look for data sources import."""
_UMASK_KEY = "spark.hadoop.fs.permissions.umask-mode"


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The folder in which a program has written everything, and what it printed."""
    folder = tmp_path_factory.mktemp("private") / "project"
    folder.mkdir()
    for name in _IMPORTED:
        module = folder / f"{name}.py"
        module.touch(0o600)
        module.write_text(f"open({str(folder / 'imported')!r}, 'a').write('{name}')")
    paths = {"PYTHONPATH": f"{ROOT}:{ROOT / 'tests'}", "DAGSTER_HOME": str(folder)}
    ended = subprocess.run(
        [sys.executable, _PROGRAM, folder],
        cwd=folder,
        env={**os.environ, **paths, CANARY_VARIABLE: f"{CANARY} =:#\\!é😀."},
        umask=0o077,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr[-5000:]
    return folder, ended.stdout + ended.stderr


def test_what_runs_write_is_private_under_a_private_umask(ran: tuple[Path, str]) -> None:
    folder, _ = ran
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


def test_a_secret_is_in_no_file_and_on_no_command_line(ran: tuple[Path, str]) -> None:
    """Nor in what was printed; the program itself has looked at the command lines."""
    folder, printed = ran
    assert "NoConnectorError" in printed
    assert CANARY not in printed
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert any(REFERENCE.encode() in path.read_bytes() for path in files)
    assert [path for path in files if CANARY.encode() in content(path)] == []


def test_workers_import_nothing_of_the_working_directory(ran: tuple[Path, str]) -> None:
    """With the project's daemon and with Spark's own."""
    folder, _ = ran
    assert {path.stem for path in folder.glob("*.py")} >= set(_IMPORTED)
    assert not (folder / "imported").exists()


def content(path: Path) -> bytes:
    """A file's bytes; of Parquet its rows and metadata, as its pages are compressed."""
    if path.suffix != ".parquet":
        return path.read_bytes()
    table = pq.read_table(path, partitioning=None)
    return repr((table.schema.metadata, table.to_pylist())).encode() + path.read_bytes()


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
