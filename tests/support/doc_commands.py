"""The commands of a page's blocks, each checked against the program that it names."""

from __future__ import annotations

import importlib.util
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import typer

from tests.support.doc_blocks import COMMANDS, ROOT, Block
from windows_pipeline.cli.main import app

NOT_OURS = frozenset(
    (
        "cat",
        "cd",
        "chmod",
        "cp",
        "curl",
        "dg",
        "git",
        "ls",
        "mkdir",
        "mv",
        "pip",
        "pipx",
        "pre-commit",
        "rm",
    )
)
"""Programs of others that pages name: their options are not looked at."""
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
_DESCRIPTION = re.compile(r"""((?:[^\s'"]|'[^']*'|"[^"]*"|\s(?!\s))*)\s{2,}\S""")
_TARGET = re.compile(r"^([a-z][a-z-]*):", re.MULTILINE)
_VARIABLE = re.compile(r"^([A-Z]+) \?=", re.MULTILINE)


class WrongCommandError(AssertionError):
    """A page has a command that would not run."""


@dataclass(frozen=True)
class Command:
    """A command of a page.

    Attributes:
        block: The block that has it.
        words: The program and its arguments.
    """

    block: Block
    words: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.block}: {shlex.join(self.words)}"

    @property
    def program(self) -> str:
        return Path(self.words[0]).name


def commands_of(block: Block) -> list[Command]:
    """The commands of a block; a line that begins with blanks describes the command before it.

    Raises:
        WrongCommandError: A line is no command.
    """
    if block.language not in COMMANDS or block.is_output:
        return []
    lines = block.code.replace("\\\n", " ").splitlines()
    if block.language == "console":
        lines = [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]
    found = [
        Command(block, words)
        for line in lines
        if line.strip() and not line.startswith((" ", "#"))
        for words in _commands_in(block, line)
    ]
    if not found:
        raise WrongCommandError(f"{block}: has no command; if it shows none, write ```text")
    return found


def _commands_in(block: Block, line: str) -> Iterator[tuple[str, ...]]:
    """The commands of a line, without variables and descriptions."""
    described = _DESCRIPTION.match(line)
    # Two blanks begin a description, unless an option or a comment comes next.
    if described and not re.match(r"\s+(-|#)", line[described.end(1) :]):
        line = described[1]
    lexer = shlex.shlex(line, posix=True, punctuation_chars="();<>|&")
    lexer.whitespace_split = True
    try:
        tokens = list(lexer)
    except ValueError as error:
        raise WrongCommandError(f"{block}: {line!r} is no command: {error}") from None
    words: list[str] = []
    for token in [*tokens, ";"]:
        if token in (";", "&&", "||", "|", "&"):
            if words and words[0] != "export":
                yield tuple(words)
            words = []
        elif words or not _ASSIGNMENT.match(token):
            words.append(token)


def check_command(command: Command) -> None:
    """Checks that a command's program, and the options that are the project's, exist.

    Raises:
        WrongCommandError: They do not; the message has the page's line.
    """
    program, arguments = command.program, list(command.words[1:])
    if program == "windows-pipeline":
        parsed(command)
    elif program == "make":
        _check_make(command, arguments)
    elif re.fullmatch(r"python[0-9.]*", program):
        _check_python(command, arguments)
    elif program == "dagster":
        _check_dagster(command, arguments)
    elif program.endswith(".sh") or command.words[0].startswith((".ci/", "tools/")):
        if not (ROOT / command.words[0]).is_file():
            raise WrongCommandError(f"{command}: there is no such file")
    elif program not in NOT_OURS:
        fix = "correct it; if the block has no commands, write ```text before it"
        raise WrongCommandError(f"{command}: {program!r} is no known program; {fix}")


@dataclass(frozen=True)
class Parsed:
    """What a command of `windows-pipeline` was given, by name of its parameter.

    Attributes:
        name: The command's name.
        given: The values that stand in the command; those left out are not here.
        command: Typer's own object.
    """

    name: str
    given: dict[str, Any]
    command: Any

    def with_values(self, values: dict[str, object]) -> list[str]:
        """The arguments with other values for the parameters of some names; None leaves out."""
        arguments = [self.name]
        for parameter in self.command.params:
            if parameter.name not in self.given:
                continue
            value = values.get(parameter.name, self.given[parameter.name])
            if value is None:
                continue
            if parameter.param_type_name == "argument":
                several = value if isinstance(value, (list, tuple)) else [value]
                arguments += map(str, several)
            elif isinstance(value, bool):
                arguments.append((parameter.opts if value else parameter.secondary_opts)[0])
            else:
                arguments += [parameter.opts[0], str(value)]
        return arguments


def parsed(command: Command) -> Parsed:
    """Parses a command of `windows-pipeline` by its own parser, without running it.

    Raises:
        WrongCommandError: The parser refuses it.
    """
    group: Any = typer.main.get_command(app)
    name, *arguments = command.words[1:] or ("",)
    found = group.commands.get(name)
    if found is None:
        raise WrongCommandError(f"{command}: there is no command {name!r}")
    if "--help" in arguments:
        return Parsed(name, {}, found)
    try:
        context = found.make_context(name, arguments)
    except Exception as error:  # noqa: BLE001  the parser's errors have no public name
        raise WrongCommandError(f"{command}: {error}") from None
    given = {
        parameter: value
        for parameter, value in context.params.items()
        if context.get_parameter_source(parameter).name == "COMMANDLINE"
    }
    return Parsed(name, given, found)


def _check_make(command: Command, arguments: Sequence[str]) -> None:
    makefile = (ROOT / "Makefile").read_text()
    for argument in arguments:
        variable = argument.partition("=")[0]
        known = _VARIABLE if "=" in argument else _TARGET
        if variable not in known.findall(makefile):
            raise WrongCommandError(f"{command}: the Makefile has no {variable!r}")


def _check_python(command: Command, arguments: Sequence[str]) -> None:
    if arguments[:1] != ["-m"] or len(arguments) < 2:
        if not (ROOT / arguments[0]).is_file():
            raise WrongCommandError(f"{command}: {arguments[0]!r} is no file")
        return
    module, rest = arguments[1], arguments[2:]
    try:
        found = importlib.util.find_spec(module)
    except ModuleNotFoundError:
        found = None
    if found is None or found.origin is None:
        raise WrongCommandError(f"{command}: there is no module {module}")
    if module == "pytest":
        for path in (word for word in rest if word.endswith(".py") or "/" in word):
            if not (ROOT / path.partition("::")[0]).exists():
                raise WrongCommandError(f"{command}: there is no {path}")
    elif any(word.startswith("-") for word in rest):  # without a parser, --help would run it
        _check_options(command, rest, help_of(sys.executable, "-m", module))


def _check_dagster(command: Command, arguments: Sequence[str]) -> None:
    names = []
    for word in arguments:
        if word.startswith("-"):
            break
        names.append(word)
    # Of `dagster schedule start NAME`, the last word is an argument and no command.
    program = Path(sys.executable).with_name("dagster")
    shown = help_of(str(program), *names[:2])
    _check_options(command, arguments, shown)


def _check_options(command: Command, arguments: Sequence[str], shown: str) -> None:
    for option in (word.partition("=")[0] for word in arguments if word.startswith("-")):
        if not re.search(rf"(?<![\w-]){re.escape(option)}(?![\w-])", shown):
            raise WrongCommandError(f"{command}: there is no option {option}")


@cache
def help_of(*words: str) -> str:
    """What a program says of its options.

    Raises:
        WrongCommandError: It has no help.
    """
    done = subprocess.run(
        [*words, "--help"], cwd=ROOT, capture_output=True, text=True, check=False
    )  # fmt: skip
    if done.returncode:
        raise WrongCommandError(f"{shlex.join(words)} --help: {done.stdout}{done.stderr}")
    return done.stdout
