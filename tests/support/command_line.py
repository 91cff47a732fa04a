"""Calls the command line within the tests' process, and so with its Spark session."""

from __future__ import annotations

import re

import pytest

from windows_pipeline.cli.arguments import StartSession
from windows_pipeline.cli.main import main
from windows_pipeline.compat.spark_session import start_session


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
