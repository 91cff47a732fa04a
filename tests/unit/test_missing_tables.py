"""Commands that read tables say, before there are any, which command fills them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.command_line import Command
from tests.support.pipeline_texts import FLIGHTS, load_text


@pytest.mark.parametrize(
    "words",
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
    empty_project: Path, command: Command, words: tuple[str, ...]
) -> None:
    load_text(empty_project / "pipelines", FLIGHTS)
    status, printed = command(*words)
    assert status == 2, printed
    assert not (empty_project / "warehouse").exists()
    assert "does not exist yet; to fill it: windows-pipeline run flights" in printed
