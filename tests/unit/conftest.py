"""Fixtures of the tests that call commands."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.command_line import Command, call
from windows_pipeline.settings import SETTINGS_VARIABLE


@pytest.fixture
def empty_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project without pipelines; its folder is the working directory."""
    settings = {"warehouse": "warehouse", "pipelines": "pipelines", "landing": ".", "spark": {}}
    (tmp_path / "settings.yaml").write_text(yaml.safe_dump(settings))
    (tmp_path / "pipelines").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(SETTINGS_VARIABLE, raising=False)
    return tmp_path


@pytest.fixture
def command(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    """Calls a command that must not start Spark."""

    def start(*_: object) -> Any:
        raise AssertionError("Spark must not start")

    return lambda *args: call(capfd, monkeypatch, *args, start=start)
