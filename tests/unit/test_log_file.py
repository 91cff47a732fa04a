"""A command's log: what other programs print goes there, and the user's output does not."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from stat import S_IMODE

import pytest

from tests.support.command_line import call
from tests.support.pipeline_texts import FLIGHTS, load_text
from windows_pipeline.cli.terminal import log_file
from windows_pipeline.cli.terminal.console import CONSOLE, ERRORS
from windows_pipeline.cli.terminal.log_file import MOST_BYTES, MOST_LOGS, LogFile
from windows_pipeline.cli.terminal.progress import Status
from windows_pipeline.settings import Settings


def test_what_others_print_goes_to_the_log_alone(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    log = LogFile(tmp_path, "run")
    assert list(tmp_path.iterdir()) == []
    sys.stdout.write("before\n")
    with log.captured():
        sys.stdout.write("library\n")
        sys.stderr.write("warning of a library\n")
        subprocess.run(["sh", "-c", "echo child; echo trouble >&2"], check=True)
        CONSOLE.print("for the user")
        ERRORS.print("error for the user")
    sys.stdout.write("after\n")
    assert capfd.readouterr() == ("before\nfor the user\nafter\n", "error for the user\n")
    lines = log.path.read_text().splitlines()
    assert sorted(lines) == ["child", "library", "trouble", "warning of a library"]


def test_a_child_keeps_writing_to_the_log(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """As Spark's JVM does, which outlives the call that started it."""
    log = LogFile(tmp_path, "run")
    with log.captured():
        child = subprocess.Popen(["sh", "-c", "read line; echo $line"], stdin=subprocess.PIPE)
    child.communicate(b"late\n")
    assert log.path.read_text() == "late\n"
    assert capfd.readouterr() == ("", "")


def test_output_goes_on_after_an_error(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    log = LogFile(tmp_path, "run")
    with pytest.raises(OSError, match="disk"), log.captured():
        raise OSError("disk")
    sys.stdout.write("after\n")
    assert capfd.readouterr().out == "after\n"


@pytest.mark.parametrize("umask", [0o022, 0o077])
def test_the_log_follows_the_umask(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        log = LogFile(tmp_path / "logs", "run")
        log.open()
    finally:
        os.umask(before)
    assert S_IMODE(log.path.stat().st_mode) == 0o666 & ~umask
    assert S_IMODE(log.path.parent.stat().st_mode) == 0o777 & ~umask


def test_the_logs_that_were_written_last_stay(tmp_path: Path) -> None:
    for number in range(MOST_LOGS + 5):
        old = tmp_path / f"run-{number}.log"
        old.touch()
        os.utime(old, (number + 1, number + 1))
    (tmp_path / "notes.txt").touch()
    new = LogFile(tmp_path, "run")
    new.open()
    left = {path.name for path in tmp_path.iterdir()}
    oldest = {f"run-{number}.log" for number in range(6)}
    assert left & oldest == set()
    assert {new.path.name, "run-6.log", "notes.txt"} <= left


def test_a_log_that_another_command_deleted_gets_the_trace(tmp_path: Path) -> None:
    log = LogFile(tmp_path, "stream")
    log.open()
    log.path.unlink()
    log.add_trace(KeyError("x"))
    assert "KeyError: 'x'" in log.path.read_text()


def test_a_log_that_is_too_large_keeps_its_last_part(tmp_path: Path) -> None:
    log = LogFile(tmp_path, "stream")
    file = log.open()
    file.write(b"first\n" + b"." * MOST_BYTES + b"\nlast\n")
    log.cut()
    file.write(b"next\n")
    text = log.path.read_bytes()
    assert len(text) < MOST_BYTES / 2
    assert text.startswith(b"(the log was too large")
    assert text.endswith(b"\nlast\nnext\n")
    log.cut()
    assert log.path.read_bytes() == text


def test_an_unexpected_error_is_two_lines_and_its_trace_is_in_the_log(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_settings: Settings) -> None:
        raise KeyError("[red]what nobody expected")

    _project(tmp_path, monkeypatch)
    status, said = call(capfd, monkeypatch, "run", "flights", start=fail)  # type: ignore[arg-type]
    (log,) = (tmp_path / log_file.FOLDER).iterdir()
    assert status == 1
    assert said == (f"error: KeyError: '[red]what nobody expected' log: {log} has the trace ")
    trace = log.read_text()
    assert "Traceback (most recent call last)" in trace
    assert "[red]what nobody expected" in trace
    assert log.name.startswith("run-")


def test_an_interrupt_says_how_to_go_on(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(_settings: Settings) -> None:
        raise KeyboardInterrupt

    _project(tmp_path, monkeypatch)
    status, said = call(capfd, monkeypatch, "run", "flights", start=interrupt)  # type: ignore[arg-type]
    assert status == 130, said
    assert said.endswith("note: stopped; to resume, give the same command again ")


def test_verbose_says_where_the_log_lies_and_names_each_step(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_settings: Settings) -> None:
        raise ValueError("no session")

    _project(tmp_path, monkeypatch)
    args = ("run", "flights", "--verbose")
    status, said = call(capfd, monkeypatch, *args, start=fail)  # type: ignore[arg-type]
    (log,) = (tmp_path / log_file.FOLDER).iterdir()
    assert status == 2
    assert said == f"log: {log} flights: starting Spark error: no session "


def test_without_a_place_for_the_log_the_command_goes_on(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_settings: Settings) -> None:
        raise KeyError("x")

    _project(tmp_path, monkeypatch)
    (tmp_path / ".cache").touch()
    status, said = call(capfd, monkeypatch, "run", "flights", start=fail)  # type: ignore[arg-type]
    assert status == 1
    assert "no log is written" in said
    assert "Traceback" in said


def _project(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The working directory is a project with the flights' pipeline."""
    monkeypatch.delenv("WINDOWS_PIPELINE_SETTINGS", raising=False)
    (folder / "settings.yaml").write_text(
        "{warehouse: warehouse, pipelines: pipelines, landing: ., spark: {}}"
    )
    (folder / "pipelines").mkdir()
    load_text(folder / "pipelines", FLIGHTS)
    monkeypatch.chdir(folder)


def test_a_pipe_gets_no_progress_and_no_control_characters(
    capfd: pytest.CaptureFixture[str],
) -> None:
    with Status(CONSOLE, "starting") as status:
        status.update("computing")
    assert capfd.readouterr() == ("", "")
