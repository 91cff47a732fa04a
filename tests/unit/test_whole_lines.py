"""Lines of files that only grow: a full disk or a killed command costs no other line."""

from __future__ import annotations

import json
import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.notified import Notified
from windows_pipeline.notify import note_failure
from windows_pipeline.notify.whole_lines import append, json_objects

TARGETS = "  people: {file: people.ndjson, group: 100}\n"


@contextmanager
def full_disk(file: Path, room: int) -> Iterator[None]:
    """A file takes some bytes more: writes are short, and then an error, as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    size = file.stat().st_size if file.exists() else 0
    resource.setrlimit(resource.RLIMIT_FSIZE, (size + room, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("room", [0, 1, 100])
@pytest.mark.parametrize("before", [0, 2])
def test_a_full_disk_costs_no_message(tmp_path: Path, room: int, before: int) -> None:
    """What is logged as sent can be read as a line of JSON, in the file of a target as well."""
    made = Notified(tmp_path, TARGETS)
    file = made.log.parent / "people.ndjson"
    if before:
        made.happen(*({"key": f"A{number}"} for number in range(before)))
        made.deliver()
    made.happen({"key": "B"}, {"key": "C"})
    text = file.read_text() if file.exists() else ""
    with full_disk(file, room):
        assert "cannot be written (File too large)" in no_room(made)
    assert (file.read_text() if file.exists() else "") == text
    made.deliver()
    keys = [json.loads(line)["events"][0]["key"] for line in file.read_text().splitlines()]
    assert keys == [*(f"A{number}" for number in range(before)), "B", "C"]


def no_room(made: Notified) -> str:
    """Why nothing was sent; the log is as full as the file, so that its own error is right, too."""
    try:
        return made.deliver(waits_s=())["people"].reason
    except OSError as error:
        return f"cannot be written ({error.strerror})"


@pytest.mark.parametrize("torn", [b'{"id": "x', b"x" * 200_000, "ä".encode()[:1]])
@pytest.mark.parametrize("before", [b"", b'{"a": 1}\n', b"y" * 70_000 + b"\n\n"])
def test_a_torn_end_is_cut_before_the_next_line(tmp_path: Path, torn: bytes, before: bytes) -> None:
    file = tmp_path / "lines"
    file.write_bytes(before + torn)
    found = list(json_objects(file.read_bytes()))
    assert found == ([{"a": 1}] if before.startswith(b"{") else [])
    append(file, {"next": "ä"})
    append(file, {"last": "\ud800"})
    assert file.read_bytes() == before + b'{"next":"\xc3\xa4"}\n{"last":"\\ud800"}\n'


def test_a_failure_on_a_full_disk_costs_no_other(tmp_path: Path) -> None:
    made = Notified(tmp_path, TARGETS)
    file = made.log.parent / "_failures.jsonl"

    def fail(name: str) -> None:
        note_failure(made.pipeline, made.settings.warehouse, "run", name, name)

    fail("a")
    with full_disk(file, 20), pytest.raises(OSError, match="File too large"):
        fail("b")
    fail("c")
    with file.open("ab") as torn:
        torn.write(b'{"run": "d", "wh')
    fail("e")
    assert [json.loads(line)["run"] for line in file.read_text().splitlines()] == ["a", "c", "e"]
    assert made.deliver()["people"].events == 3


def test_what_is_no_file_is_not_written(tmp_path: Path) -> None:
    """A pipe that nobody reads would block the command; a link leads elsewhere."""
    made = Notified(tmp_path, TARGETS)
    made.happen({})
    file = made.log.parent / "people.ndjson"
    os.mkfifo(file)
    assert "it is no regular file" in made.deliver(waits_s=())["people"].reason
    file.unlink()
    file.symlink_to(tmp_path / "elsewhere")
    assert "cannot be written" in made.deliver(waits_s=())["people"].reason
    file.unlink()
    assert made.deliver()["people"].events == 1
