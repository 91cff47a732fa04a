"""`tools.ui`, which `make ui` runs, prints an address that answers and leaves no process behind."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.client import HTTPConnection
from pathlib import Path
from shutil import copy

import pytest

ROOT = Path(__file__).parents[2]
FILES = ("assets", "definitions.py", "resources", "tools")
HOME = "DAGSTER_HOME"
STOP_SECONDS = 90


@pytest.mark.long
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_ui_answers_and_ends_with_all_of_its_processes(
    tmp_path: Path, number: signal.Signals
) -> None:
    with running_ui(tmp_path) as (ui, port):
        assert ui.stdout is not None
        assert ui.stdout.readline() == "starting the Dagster UI\n"
        assert ui.stdout.readline() == f"the Dagster UI: http://127.0.0.1:{port}\n"
        log = Path(ui.stdout.readline().removeprefix("its log: ").strip())
        assert ui.stdout.readline() == "Ctrl-C stops it\n"
        connection = HTTPConnection("127.0.0.1", port, timeout=30)
        connection.request("GET", "/server_info")
        assert connection.getresponse().status == 200
        connection.close()
        assert len(list(processes_of(tmp_path))) > 3
        ui.send_signal(number)
        out, err = ui.communicate(timeout=STOP_SECONDS)
        assert (ui.returncode, out, err) == (0, "stopping the Dagster UI\n", "")
        assert list(processes_of(tmp_path)) == []
        assert "Serving dagster-webserver" in log.read_text()


def test_a_failed_start_is_an_error_that_names_the_log(tmp_path: Path) -> None:
    """The workspace that Dagster should load is not there, and a pipeline has a mistake."""
    with running_ui(tmp_path, workspace=False, wrong="kind: wrong\n") as (ui, _):
        out, err = ui.communicate(timeout=STOP_SECONDS)
        assert (ui.returncode, out) == (1, "starting the Dagster UI\n")
        (log,) = (tmp_path / ".cache" / "windows-pipeline").iterdir()
        wrong = f"error: {tmp_path / 'pipelines' / 'wrong.yaml'}:1: "
        lines = err.splitlines()
        mistakes = [line for line in lines if line.startswith(wrong)]
        assert any("'kind' is not a field here; " in line for line in mistakes)
        assert lines[len(mistakes)].startswith("note: the UI leaves out these files' pipelines; ")
        first, *last_lines = lines[len(mistakes) + 1 :]
        assert first.startswith("error: Dagster has ended with ")
        assert first.endswith(f"; {log} ends with:")
        assert last_lines
        assert list(processes_of(tmp_path)) == []


@contextmanager
def running_ui(
    folder: Path, *, workspace: bool = True, wrong: str | None = None
) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """The launcher in a project folder of its own, and its port."""
    for name in FILES:
        (folder / name).symlink_to(ROOT / name)
    copy(ROOT / "settings.yaml", folder)  # its own folder is where its paths begin
    (folder / "pipelines").mkdir()
    for file in (ROOT / "pipelines").iterdir():
        copy(file, folder / "pipelines")
    if wrong is not None:
        (folder / "pipelines" / "wrong.yaml").write_text(wrong)
    if workspace:
        copy(ROOT / "workspace.yaml", folder)
    home = folder / ".dagster_home"
    home.mkdir()
    copy(ROOT / "windows_pipeline" / "dagster" / "dagster.yaml", home)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    ui = subprocess.Popen(
        [sys.executable, "-m", "tools.ui", str(port)],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), HOME: str(home)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield ui, port
    finally:
        for process in processes_of(folder):
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        ui.communicate()


def processes_of(folder: Path) -> Iterator[int]:
    """The processes that live and were started with this folder's Dagster home."""
    wanted = f"{HOME}={folder / '.dagster_home'}".encode()
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if wanted in (process / "environ").read_bytes().split(b"\0"):
                yield int(process.name)
