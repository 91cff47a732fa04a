"""A project folder of its own, and `make ui` in it."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import yaml

from tests.browser.waiting import wait_until
from tests.support.pipelines import ROOT, Project
from windows_pipeline.settings import Settings

_CODE = (".venv", "assets", "definitions.py", "resources", "tools", "windows_pipeline")
_FILES = ("Makefile", "pyproject.toml", "requirements.lock", "workspace.yaml")
_START_S = 120
_STOP_S = 30


def make_project(folder: Path, base: Settings, flights: Path, days: int) -> Project:
    """A project as a clone would be, with the first days landed and one window definition."""
    folder.mkdir()
    for name in _CODE:
        (folder / name).symlink_to(ROOT / name)
    for name in _FILES:
        shutil.copy2(ROOT / name, folder)  # with its time, or make would install again
    settings = yaml.safe_load((ROOT / "settings.yaml").read_text()) | {"spark": base.spark}
    (folder / "settings.yaml").write_text(yaml.safe_dump(settings))
    project = Project(folder, base)
    project.land(flights, days)
    project.declare()
    return project


@contextmanager
def running_ui(folder: Path, variables: Mapping[str, str]) -> Iterator[str]:
    """`make ui` in a folder: the UI's address, once it answers. At the end no process is left.

    What it prints goes to `ui.log` in the folder.

    Args:
        folder: The folder of the project.
        variables: Variables of the environment, to which the pipeline's file refers.
    """
    port = _free_port()
    log_file = folder / "ui.log"
    with log_file.open("wb") as log:
        ui = subprocess.Popen(
            ["make", "ui", f"PORT={port}"],
            cwd=folder,
            stdout=log,
            stderr=subprocess.STDOUT,
            env={**_own_environment(), **variables},
            start_new_session=True,
        )
    try:
        wait_until(lambda: _answers(ui, port, log_file), _START_S, f"the UI; see {log_file}")
        yield f"http://127.0.0.1:{port}"
    finally:
        _stop_group(ui)


def shell(folder: Path, command: str, variables: Mapping[str, str]) -> str:
    """What a command prints that a user copies from a page, in a terminal in the project's folder.

    Args:
        folder: The folder of the project.
        command: The command, which must succeed.
        variables: Variables of the environment, to which the pipeline's file refers.
    """
    environment = {**_own_environment(), **variables}
    environment["PATH"] = f"{folder / '.venv' / 'bin'}{os.pathsep}{environment['PATH']}"
    ended = subprocess.run(
        ["/bin/sh", "-c", command],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


def _own_environment() -> dict[str, str]:
    # make hands its own settings down, and a user's other installations are not for the test.
    ours = ("MAKE", "MFLAGS", "DAGSTER_", "WINDOWS_PIPELINE_")
    return {name: value for name, value in os.environ.items() if not name.startswith(ours)}


def _answers(ui: subprocess.Popen[bytes], port: int, log_file: Path) -> bool:
    if ui.poll() is not None:
        raise RuntimeError(f"make ui ended with {ui.returncode}; see {log_file}")
    with suppress(ConnectionRefusedError), socket.create_connection(("127.0.0.1", port)):
        return True
    return False


def _stop_group(leader: subprocess.Popen[bytes]) -> None:
    """Ends a process and all that it started: as Ctrl-C does, then whatever is left."""
    with suppress(ProcessLookupError):
        os.killpg(leader.pid, signal.SIGINT)
        with suppress(TimeoutError):
            wait_until(lambda: not _group_lives(leader), _STOP_S, "the end of make ui")
        os.killpg(leader.pid, signal.SIGKILL)
    leader.wait()


def _group_lives(leader: subprocess.Popen[bytes]) -> bool:
    leader.poll()
    try:
        os.killpg(leader.pid, 0)
    except ProcessLookupError:
        return False
    return True


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
