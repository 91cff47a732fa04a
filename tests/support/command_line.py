"""Calls the command line within the tests' process, whose Spark session it takes."""

from __future__ import annotations

import re

import pytest

from windows_pipeline.cli import main as cli


def call(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *args: str
) -> tuple[int, str]:
    """Its exit status, and what it said, with single blanks."""
    monkeypatch.setattr("sys.argv", ["windows-pipeline", *args])
    with pytest.raises(SystemExit) as stopped:
        cli.main()
    out, err = capfd.readouterr()
    return int(stopped.value.code or 0), re.sub(r"\s+", " ", out + err)
