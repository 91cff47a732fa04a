"""The console prints data as it is: no markup, no emoji names, no terminal control codes."""

from __future__ import annotations

import io

import pytest
from rich.table import Table
from rich.text import Text

from tests.support.command_line import call
from windows_pipeline.checks.run import Check, CheckResult
from windows_pipeline.cli.terminal.console import PlainConsole, coloured
from windows_pipeline.cli.terminal.printed import print_checks, say
from windows_pipeline.cli.terminal.progress import Status

HOSTILE = ["[/x]", "[red]", "[bold red]a[/]", ":x:", ":smiley:", "[link=a]b[/link]", "\\[red]", "["]


@pytest.fixture
def out() -> io.StringIO:
    """What the console printed."""
    return io.StringIO()


@pytest.fixture
def console(out: io.StringIO) -> PlainConsole:
    """A console on a terminal without colours."""
    return PlainConsole(file=out, width=300, force_terminal=True, color_system=None)


@pytest.mark.parametrize("text", HOSTILE)
def test_a_failed_check_shows_keys_as_they_are(
    console: PlainConsole, out: io.StringIO, text: str
) -> None:
    check = CheckResult(Check(text, f"what {text} says", "TRUE"), 3, [{"key": text, "n": "1"}])
    print_checks([(f"flights/{text}/alerts", check)], console)
    assert out.getvalue() == (
        f"flights/{text}/alerts {text}: FAILED\n"
        f"  must hold: what {text} says; not so in 3 rows, such as\n"
        f"  { ({'key': text, 'n': '1'}) }\n"
    )


@pytest.mark.parametrize("text", HOSTILE)
def test_a_line_and_a_grid_show_text_as_it_is(
    console: PlainConsole, out: io.StringIO, text: str
) -> None:
    console.print(f"{text}: 5 rows of {text}")
    grid = Table(text)
    grid.add_row(text)
    console.print(grid)
    assert out.getvalue().startswith(f"{text}: 5 rows of {text}\n")
    assert out.getvalue().count(text) == 4


@pytest.mark.parametrize("text", HOSTILE)
def test_an_error_shows_text_as_it_is(capfd: pytest.CaptureFixture[str], text: str) -> None:
    say("error", f"{text} is no name")
    say("warning", text)
    assert capfd.readouterr().err == f"error: {text} is no name\nwarning: {text}\n"


@pytest.mark.parametrize("text", HOSTILE)
def test_a_call_with_brackets_is_refused_as_it_is(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    assert call(capfd, monkeypatch, "episodes", "x", "--windows", text, "--limit", "x")[0] == 2
    status, said = call(capfd, monkeypatch, f"nothing{text}")
    assert (status, f"No such command {f'nothing{text}'!r}" in said) == (2, True), said


@pytest.mark.parametrize("text", HOSTILE)
def test_the_progress_shows_text_as_it_is(text: str) -> None:
    file = io.StringIO()
    with Status(PlainConsole(file=file, force_terminal=True, width=100), text) as status:
        status.update(f"{text} again")
    assert f"{text} again" in file.getvalue()


def test_control_characters_are_printed_escaped(
    console: PlainConsole, out: io.StringIO, capfd: pytest.CaptureFixture[str]
) -> None:
    console.print("a\x1b[2Jb\x07c\rd\te\u202ef")
    assert out.getvalue() == "a\\x1b[2Jb\\x07c\\rd       e\\u202ef\n"
    say("error", "a\x1b[2Jb\nc")
    assert capfd.readouterr().err == "error: a\\x1b[2Jb\nc\n"


def test_halves_of_surrogate_pairs_are_printed_escaped(capfd: pytest.CaptureFixture[str]) -> None:
    """The name of a file, for instance, may not be UTF-8."""
    say("error", "caf\udce9.csv")
    assert capfd.readouterr().err == "error: caf\\udce9.csv\n"


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


MESSAGE = "to ingest it again: " + "windows-pipeline run flights --from 2013-01-01 " * 9


@pytest.mark.parametrize("text", [MESSAGE, coloured("note:", "cyan", f" {MESSAGE}")])
def test_lines_are_folded_on_terminals_alone(text: str | Text) -> None:
    """A command that is folded cannot be copied from a log."""
    piped, screen = io.StringIO(), Screen()
    PlainConsole(file=piped, width=240).print(text)
    assert piped.getvalue() == f"{text}\n"
    PlainConsole(file=screen, width=80, color_system=None).print(text)
    assert max(map(len, screen.getvalue().splitlines())) <= 80


def test_a_table_keeps_its_width_in_a_pipe(out: io.StringIO) -> None:
    table = Table("key")
    table.add_row(MESSAGE)
    PlainConsole(file=out, width=60).print(table)
    assert max(map(len, out.getvalue().splitlines())) == 60


def test_coloured_words_keep_their_colour_and_the_rest_stays_plain() -> None:
    file = io.StringIO()
    console = PlainConsole(file=file, force_terminal=True, color_system="standard", width=80)
    console.print(coloured("FAILED", "red", ": [green]5"))
    assert file.getvalue() == "\x1b[31mFAILED\x1b[0m: [green]5\n"
