"""A command as Dagster shows it: what the user may repeat, without values of variables."""

from __future__ import annotations

from typing import Any

import pytest
import typer

from windows_pipeline.cli.main import app
from windows_pipeline.cli.session import command_text


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        (
            ["correct", "p", "--cause", "it's mended", "--from", "2026-11-01"],
            "windows-pipeline correct p --from 2026-11-01 --cause 'it'\"'\"'s mended'",
        ),
        (["rebuild", "p", "--from", "alerts"], "windows-pipeline rebuild p --from alerts"),
        (["status", "--verbose", "--json", "p"], "windows-pipeline status p --json"),
    ],
)
def test_a_command_is_shown_as_it_may_be_repeated(arguments: list[str], shown: str) -> None:
    group: Any = typer.main.get_command(app)
    name, *others = arguments
    with group.commands[name].make_context(name, others) as context:
        assert command_text(context) == shown
