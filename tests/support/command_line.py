"""Calls the command line within the tests' process, and so with its Spark session."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Collection, Sequence
from pathlib import Path

import pytest

from windows_pipeline.cli.main import main
from windows_pipeline.cli.session import StartSession
from windows_pipeline.compat.spark_session import start_session

Command = Callable[..., tuple[int, str]]
"""Takes a command's words; returns what `call` does."""
HEAVY = frozenset({"pyspark", "great_expectations", "numba", "pandas"})
"""Packages that a command without Spark must not import, as that takes seconds."""
_ROOT = Path(__file__).parents[2]


def call(
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    *args: str,
    start: StartSession = start_session,
) -> tuple[int, str]:
    """A call's exit status, and all that it printed, with single blanks."""
    monkeypatch.setattr("sys.argv", ["windows-pipeline", *args])
    with pytest.raises(SystemExit) as stopped:
        main(start)
    out, err = capfd.readouterr()
    return int(stopped.value.code or 0), re.sub(r"\s+", " ", out + err)


def call_alone(folder: Path, *args: str, heavy: Collection[str] = HEAVY) -> str:
    """What a command prints in a process of its own, where it succeeds and imports nothing heavy.

    Args:
        folder: The folder to call it in.
        args: The command and its arguments.
        heavy: The packages that it must not import.
    """
    return called_alone(folder, [args], heavy)


def called_alone(
    folder: Path, calls: Sequence[Sequence[str]], heavy: Collection[str] = HEAVY
) -> str:
    """What several commands print in one such process, one after another."""
    script = (
        "import sys\n"
        "from windows_pipeline.cli.main import main\n"
        f"for args in {[list(args) for args in calls]!r}:\n"
        "    sys.argv = ['windows-pipeline', *args]\n"
        "    try:\n"
        "        main()\n"
        "    except SystemExit as ended:\n"
        f"        heavy = {set(heavy)!r} & set(sys.modules)\n"
        "        if heavy or ended.code:\n"
        "            sys.exit(f'{args}: imported: {heavy}' if heavy else ended.code)\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", script],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(_ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    return ended.stdout
