"""Each block of the pages is checked by the job of its language; none is left out unseen."""

from __future__ import annotations

import csv
import json
import re
import tomllib
from pathlib import Path

import pytest

from tests.support.doc_blocks import (
    COMMANDS,
    DATA,
    LANGUAGES,
    PAGES,
    ROOT,
    Block,
    blocks_in,
    blocks_of,
    name_of,
    pages_with,
)
from tests.support.doc_commands import WrongCommandError, check_command, commands_of, parsed
from tests.support.doc_yaml import load_block
from windows_pipeline.config import ConfigError, load_pipeline
from windows_pipeline.settings import SettingsError


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_each_block_has_a_language_that_is_checked(page: Path) -> None:
    text = page.read_text()
    wrong = [f"{block}: {block.language}" for block in blocks_of(page) if not is_known(block)]
    assert wrong == [], f"write one of {LANGUAGES} after the fence"
    fences = re.findall(r"^ *```", text, re.MULTILINE)
    assert len(fences) == 2 * len(blocks_of(page)), "a fence has no other end"
    assert re.findall(r"^ *~~~", text, re.MULTILINE) == [], "write fences as ```"


def is_known(block: Block) -> bool:
    return block.language in LANGUAGES


@pytest.mark.parametrize("page", pages_with("yaml"), ids=name_of)
def test_the_yaml_of_a_page_loads(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for block in blocks_of(page):
        if block.language == "yaml":
            load_block(block, tmp_path, monkeypatch)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_an_error_that_a_page_shows_is_the_loaders(page: Path, tmp_path: Path) -> None:
    """Of the page's own pipeline, or of the file that the page names."""
    for shown in (block.code for block in blocks_of(page) if block.language == "text"):
        if not (named := re.match(r"(pipelines/\w+\.yaml):\d+: ", shown)):
            continue
        whole = [block.code for block in blocks_of(page) if block.code.startswith("name: ")]
        found = []
        for text in (*whole, (ROOT / named[1]).read_text()):
            (tmp_path / "pipelines").mkdir(exist_ok=True)
            (tmp_path / named[1]).write_text(text.replace("avg(dep_delay)", "avg(dep_dely)", 1))
            with pytest.raises(ConfigError) as refused:
                load_pipeline(tmp_path / named[1])
            found.append(refused.value.problems[0].removeprefix(f"{tmp_path}/"))
        assert " ".join(shown.split()) in found


@pytest.mark.parametrize("page", pages_with(*COMMANDS), ids=name_of)
def test_the_commands_of_a_page_are_those_of_their_programs(page: Path) -> None:
    """The programs' own parsers take them; test_doc_commands runs those of windows-pipeline."""
    for block in blocks_of(page):
        check_all(block)


def check_all(block: Block) -> None:
    """Checks each command of a block."""
    for command in commands_of(block):
        check_command(command)


@pytest.mark.parametrize("page", pages_with(*DATA), ids=name_of)
def test_the_data_of_a_page_can_be_read(page: Path) -> None:
    for block in blocks_of(page):
        if block.language in DATA:
            read_data(block)


def read_data(block: Block) -> None:
    """Reads a block as what its language says.

    Raises:
        ValueError: It is not.
    """
    match block.language:
        case "json":
            json.loads(block.code)
        case "jsonl":
            for line in block.code.splitlines():
                json.loads(line)
        case "csv":
            header, *rows = csv.reader(block.code.splitlines(), strict=True)
            if not rows or any(len(row) != len(header) for row in rows):
                raise ValueError(f"{block}: a row has not as many fields as the header")
        case "toml":
            tomllib.loads(block.code)
        case _:
            read_nginx(block)


def read_nginx(block: Block) -> None:
    """Reads nginx's configuration: directives end with ';', blocks are closed.

    Raises:
        ValueError: It is neither.
    """
    without_text = re.sub(r'"[^"]*"', '""', re.sub(r"#.*", "", block.code))
    depth = 0
    for statement, end in re.findall(r"([^;{}]*)([;{}])", without_text):
        depth += {"{": 1, "}": -1, ";": 0}[end]
        if depth < 0 or bool(statement.strip()) != (end != "}"):
            raise ValueError(f"{block}: {statement.strip()!r} and {end!r} do not fit")
    if depth or re.split(r"[;{}]", without_text)[-1].strip():
        raise ValueError(f"{block}: is not closed")


def block(language: str, code: str, before: str = "") -> Block:
    (found, *_) = blocks_in(f"{before}\n```{language}\n{code}\n```\n", ROOT / "page.md")
    return found


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("windows-pipeline compute flights", "there is no command 'compute'"),
        ("windows-pipeline run flights --until 2013-03-01", "No such option: --until"),
        ("windows-pipeline episodes flights --limit 0", "greater than or equal to 1"),
        ("make nothing", "the Makefile has no 'nothing'"),
        (".venv/bin/python -m benchmarks.nothing", "there is no module benchmarks.nothing"),
        (".venv/bin/python -m pytest tests/unit/test_none.py", "there is no tests/unit/test_none"),
        (".venv/bin/dagster schedule start x --work y", "there is no option --work"),
        ("tools/none.sh", "there is no such file"),
        ("flights -> windows", "'flights' is no known program"),
        ("echo 'open", "is no command: No closing quotation"),
    ],
)
def test_a_wrong_command_is_found(line: str, words: str) -> None:
    with pytest.raises(WrongCommandError) as refused:
        check_all(block("", line))
    assert words in str(refused.value)
    assert str(refused.value).startswith("page.md:3: ")


def test_a_block_without_commands_is_found() -> None:
    with pytest.raises(WrongCommandError, match="has no command; if it shows none, write"):
        commands_of(block("", "  raw_events"))
    with pytest.raises(WrongCommandError, match="has no command"):
        commands_of(block("console", "windows-pipeline validate"))


def test_commands_are_read_without_what_describes_them() -> None:
    code = """export A="$PWD"     # a comment
B=1 windows-pipeline run flights --from 2013-03-01 \\
    --to 2013-03-07
windows-pipeline trace flights LGA '2013-09-13  02:00'   the records
                                             of an alert
windows-pipeline check flights | cat && make check"""
    found = [command.words for command in commands_of(block("sh", code))]
    assert found == [
        ("windows-pipeline", "run", "flights", "--from", "2013-03-01", "--to", "2013-03-07"),
        ("windows-pipeline", "trace", "flights", "LGA", "2013-09-13  02:00"),
        ("windows-pipeline", "check", "flights"),
        ("cat",),
        ("make", "check"),
    ]
    shown = "$ windows-pipeline validate\nflights: valid\n$ make check"
    programs = [command.program for command in commands_of(block("console", shown))]
    assert programs == ["windows-pipeline", "make"]


def test_a_command_takes_the_values_of_another_project() -> None:
    line = "windows-pipeline trace flights LGA '2013-09-13 02:00' --windows hourly --limit 3"
    (command,) = commands_of(block("", line))
    values: dict[str, object] = {"pipeline": "p", "key": "a", "windows": None}
    arguments = ["trace", "p", "a", "2013-09-13 02:00", "--limit", "3"]
    assert sorted(parsed(command).with_values(values)) == sorted(arguments)


@pytest.mark.parametrize(
    ("code", "part"),
    [
        ("  w: {kind: count, size: 3, grace: 1 hour}", "windows"),
        ("trigger: {early_every: update}\naggregates: {a: avg(delay)}", "windows"),
        ("preceding: 5 rows", "windows"),
        ("source: {format: delta, path: s3a://lake/payments}", "pipeline"),
        ("format: kafka\nkafka: {servers: 'a:1', topic: b}", "source"),
        ("keep_plans: true", "settings"),
    ],
)
def test_parts_are_loaded_as_what_they_are(
    code: str, part: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert load_block(block("yaml", code), tmp_path, monkeypatch) == part


@pytest.mark.parametrize(
    "code",
    [
        "trigger: {early: update}",
        "source: {format: delta}\nsource: {format: kafka}",
        "keep_plans: perhaps",
        "anything: 3",
        "name: flights\nsource: {format: delta, path: a}",
    ],
)
def test_wrong_yaml_is_found(code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises((ConfigError, SettingsError, AssertionError)):
        load_block(block("yaml", code), tmp_path, monkeypatch)
    other = block("yaml", "ops: {flights: 3}", "<!-- yaml: other -->")
    assert load_block(other, tmp_path, monkeypatch) == "other"


@pytest.mark.parametrize(
    ("language", "code"),
    [
        ("json", "{a: 1}"),
        ("jsonl", '{"a": 1}\nb'),
        ("csv", "a,b\n1"),
        ("toml", "a ="),
        ("nginx", "server { listen 443 }"),
    ],
)
def test_wrong_data_is_found(language: str, code: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011  each reader has words of its own
        read_data(block(language, code))


def test_output_is_a_text_block_right_after_a_program() -> None:
    printing = "```python\nprint(1)\n```\n\n```\n1\n```\n"
    page = f"{printing}\n```sql\nSELECT 1\n```\nand\n```text\n2\n```\n"
    program, output, query, text = blocks_in(page, ROOT / "page.md")
    assert (program.expected, program.line) == ("1\n", 2)
    assert output.is_output
    assert commands_of(output) == []
    assert query.expected is None
    assert not text.is_output


def test_a_language_without_a_check_is_found() -> None:
    assert not is_known(block("java", "int a;"))
    assert is_known(block("text", "a -> b"))
