"""Commands that read tables say, before there are any, which command fills them."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from pyspark.sql import SparkSession

from tests.support.command_line import call
from tests.support.pipeline_texts import FLIGHTS, load_text


def no_session(*_: object) -> SparkSession:
    raise AssertionError("Spark must not start")


@pytest.mark.parametrize(
    "command",
    [
        ("fetch", "flights", "JFK"),
        ("trace", "flights", "JFK", "2013-03-08 09:00"),
        ("trace", "flights", "--alert", "0e7eab8e53fb"),
        ("explain", "flights", "JFK", "2013-03-08 09:00"),
        ("explain", "flights", "--offset", "3"),
        ("alerts", "flights"),
        ("late", "flights"),
        ("rejected", "flights"),
        ("report", "flights"),
        ("episodes", "flights"),
        ("forget", "flights", "2013-03-08"),
        ("correct", "flights", "--from", "2013-03-08", "--cause", "late files"),
        ("rebuild", "flights"),
        ("maintain", "flights"),
        ("check", "flights"),
    ],
    ids=" ".join,
)
def test_the_command_that_fills_a_table_is_named(
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    command: tuple[str, ...],
) -> None:
    settings = {"warehouse": "warehouse", "pipelines": "pipelines", "landing": ".", "spark": {}}
    (tmp_path / "settings.yaml").write_text(yaml.safe_dump(settings))
    (tmp_path / "pipelines").mkdir()
    load_text(tmp_path / "pipelines", FLIGHTS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("WINDOWS_PIPELINE_SETTINGS", raising=False)
    status, printed = call(capfd, monkeypatch, *command, start=no_session)
    assert status == 2, printed
    assert not (tmp_path / "warehouse").exists()
    assert "does not exist yet; to fill it: windows-pipeline run flights" in printed
