"""The command line's help: quick, with examples; docs/commands.md names all of it."""

from __future__ import annotations

import re
import shlex
from functools import cache
from pathlib import Path

import pytest
import typer
from typer.core import TyperCommand, TyperGroup
from typer.testing import CliRunner

from tests.support.command_line import called_alone
from windows_pipeline.cli.main import app

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "commands.md"
HEAVY = {"pyspark", "great_expectations", "numba", "deltalake", "pandas"}


@cache
def group() -> TyperGroup:
    found = typer.main.get_command(app)
    assert isinstance(found, TyperGroup)
    return found


def command(name: str) -> TyperCommand:
    found = group().commands[name]
    assert isinstance(found, TyperCommand)
    return found


NAMES = sorted(group().commands)


def example(name: str) -> str:
    """The example at the end of a command's help."""
    title, _, lines = (command(name).epilog or "").partition("\n\n")
    assert title == "Example:"
    return lines


def options(name: str) -> set[str]:
    """The options of a command, with their long names."""
    return {text for parameter in command(name).params for text in parameter.opts if "--" in text}


def test_help_imports_nothing_that_takes_long(tmp_path: Path) -> None:
    """One process prints them all, so none of them imports what it must not."""
    calls = [["--help"], *([name, "--help"] for name in NAMES)]
    printed = called_alone(tmp_path, calls, heavy=HEAVY)
    assert printed.count("Usage: windows-pipeline") == len(calls)


@pytest.mark.parametrize("name", NAMES)
def test_the_help_of_a_command_has_an_example_that_parses(name: str) -> None:
    program, called, *arguments = shlex.split(example(name))
    assert (program, called) == ("windows-pipeline", name)
    assert command(name).make_context(name, arguments).params


def test_a_terminal_of_80_columns_shows_each_example_in_a_line() -> None:
    """A line that the terminal breaks could not be pasted into a shell."""
    for name in NAMES:
        shown = CliRunner().invoke(app, [name, "--help"], env={"COLUMNS": "80"}).output
        assert example(name) in [line.strip() for line in shown.splitlines()]


@pytest.mark.parametrize("name", NAMES)
def test_each_command_stands_in_a_group_and_can_be_verbose(name: str) -> None:
    assert command(name).rich_help_panel
    assert "--verbose" in options(name)


def test_the_page_has_a_part_for_each_command() -> None:
    parts = re.findall(r"^### `(.+)`$", PAGE.read_text(), re.MULTILINE)
    assert sorted(parts) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_the_page_lists_the_arguments_options_and_example_of_a_command(name: str) -> None:
    """`--verbose` and `--help` are the same for all, and stand at the page's top."""
    head, _, rest = PAGE.read_text().partition(f"\n### `{name}`\n")
    part = re.split(r"^##", rest, maxsplit=1, flags=re.MULTILINE)[0]
    listed = set(re.findall(r"^\| `(--[a-z-]+)", part, re.MULTILINE))
    assert listed == options(name) - {"--verbose"}
    assert "`--verbose`" in head.partition("\n## ")[0]
    assert f"\n{example(name)}\n" in part
