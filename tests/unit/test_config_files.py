"""Pipelines and settings must be regular files of a moderate size."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from tests.support.pipeline_texts import FLIGHTS, load_text, problems_of
from windows_pipeline.cli.main import main
from windows_pipeline.config import ConfigError, load_pipeline
from windows_pipeline.settings import SETTINGS_VARIABLE, SettingsError, load_settings
from windows_pipeline.text.files import MAX_BYTES


def _socket(path: Path) -> None:
    before = Path.cwd()
    os.chdir(path.parent)  # the name of a socket must be short
    try:
        with socket.socket(socket.AF_UNIX) as unix_socket:
            unix_socket.bind(path.name)
    finally:
        os.chdir(before)


def _loop(path: Path) -> None:
    path.symlink_to(path.with_name("other"))
    path.with_name("other").symlink_to(path)


ODD: dict[str, tuple[Callable[[Path], object], str]] = {
    "a pipe": (os.mkfifo, "is a pipe, a socket or a device; put"),
    "a folder": (Path.mkdir, "is a folder; put a YAML file there"),
    "a socket": (_socket, "is a pipe, a socket or a device; put"),
    "a link to a device": (
        lambda path: path.symlink_to("/dev/zero"),
        "links to a pipe, a soc",
    ),
    "a huge file": (
        lambda path: path.write_bytes(b"#" * (MAX_BYTES + 1)),
        "has more than 1,048,576 bytes; write a shorter file",
    ),
    "no text": (lambda path: path.write_bytes(b"a: 1\n\xe9"), ":2: is not UTF-8; save it as"),
    "deep lists": (
        lambda path: path.write_text("a: " + "[" * 5_000),
        "is nested too deeply: a file must have at most 20 levels",
    ),
    "nothing": (lambda path: path.write_text(""), "is empty; write"),
    "a loop of links": (_loop, "cannot be read (Too many levels of symbolic links)"),
}


@pytest.mark.parametrize(("make", "words"), ODD.values(), ids=ODD)
def test_a_pipeline_must_be_a_regular_file(
    tmp_path: Path, make: Callable[[Path], object], words: str
) -> None:
    file = tmp_path / "odd.yaml"
    make(file)
    with pytest.raises(ConfigError) as refused:
        load_pipeline(file)
    (problem,) = refused.value.problems
    assert problem.startswith(f"{file}:")
    assert words in problem


@pytest.mark.parametrize("case", [case for case in ODD if "link" not in case])
def test_settings_must_be_a_regular_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: str
) -> None:
    make, words = ODD[case]
    file = tmp_path / "odd.yaml"
    make(file)
    monkeypatch.setenv(SETTINGS_VARIABLE, str(file))
    with pytest.raises(SettingsError) as refused:
        load_settings(tmp_path)
    assert str(refused.value).startswith(f"{file}:")
    assert words in str(refused.value)


def test_an_error_names_settings_that_are_a_device_or_do_not_exist(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    missing = f"there is no settings file; write one there, or set {SETTINGS_VARIABLE} to the path"
    for name, words in (
        ("/dev/zero", "/dev/zero: is a pipe, a socket or a device"),
        ("x" * 300, missing),
        ("nothing.yaml", missing),
    ):
        monkeypatch.setenv(SETTINGS_VARIABLE, name)
        with pytest.raises(SettingsError) as refused:
            load_settings(tmp_path)
        assert words in str(refused.value)


@pytest.mark.parametrize("field", ["warehouse", "landing"])
def test_a_location_with_one_slash_after_its_scheme_is_no_folder_of_that_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, field: str
) -> None:
    settings = {"warehouse": "w", "landing": ".", "pipelines": ".", "spark": {}}
    file = tmp_path / "settings.yaml"
    file.write_text(yaml.safe_dump({**settings, field: "file:/tables"}))
    monkeypatch.delenv(SETTINGS_VARIABLE, raising=False)
    with pytest.raises(SettingsError, match=f": {field}: .*; write 'file:///tables'") as refused:
        load_settings(tmp_path)
    assert len(str(refused.value).splitlines()) == 1


def test_a_link_to_a_pipeline_is_read(tmp_path: Path) -> None:
    (tmp_path / "flights.txt").write_text(FLIGHTS)
    (tmp_path / "flights.yaml").symlink_to("flights.txt")
    assert load_pipeline(tmp_path / "flights.yaml").name == "flights"


@pytest.mark.parametrize(
    ("old", "new", "field", "tag"),
    [
        ("name: flights", "name: !!bool abc", "name", "bool"),
        ("name: flights", "name: !!int ''", "name", "int"),
        ("emit_empty: true", "emit_empty: !!bool abc", "windows.hourly.emit_empty", "bool"),
    ],
)
def test_a_tag_that_does_not_fit_its_value_is_one_error(
    tmp_path: Path, old: str, new: str, field: str, tag: str
) -> None:
    (problem,) = problems_of(tmp_path, FLIGHTS.replace(old, new))
    assert f": {field}: is not a value of its tag, !!{tag}; remove the tag, or correct" in problem


@pytest.mark.parametrize(
    "value", ["1:" * 1_500 + "1", ":".join(["1"] * 400) + ".5", "9" * 5_000, "0x" + "f" * 9_000]
)
def test_a_number_of_any_length_is_one_error(tmp_path: Path, value: str) -> None:
    (problem,) = problems_of(tmp_path, FLIGHTS.replace("grace: 6 hours", f"grace: {value}"))
    assert ": windows.hourly.grace: " in problem


@pytest.mark.parametrize("instant", ["0001-01-01T00:00:00+05:00", "9999-12-31T23:59:59-05:00"])
def test_an_instant_beyond_the_calendar_is_one_error(tmp_path: Path, instant: str) -> None:
    text = FLIGHTS.replace("emit_empty: true", f"first_window_start: {instant}")
    (problem,) = problems_of(tmp_path, text)
    assert "is outside the years 1 to 9999 in UTC; write another time" in problem


def test_a_quoted_number_is_text(tmp_path: Path) -> None:
    text = FLIGHTS.replace("carrier: string", "carrier: !!str string")
    assert load_text(tmp_path, text).source.columns["carrier"] == "string"


# The settings, the pipeline's file, and the words of the error that a command prints.
SETTINGS = b"warehouse: w\npipelines: pipelines\nlanding: .\nspark: {}\n"
DEEP = b"[" * 5_000 + b"]" * 5_000
COMMANDS: dict[str, tuple[bytes | None, bytes, str]] = {
    "settings that are a folder": (None, b"", "settings.yaml: is a folder; put a YAML file there"),
    "a pipeline nested deeply": (
        SETTINGS,
        b"name: " + DEEP,
        "p.yaml:1: is nested too deeply: a file must have at most 20 levels",
    ),
    "a tag that does not fit in a pipeline": (
        SETTINGS,
        FLIGHTS.replace("emit_empty: true", "emit_empty: !!bool abc").encode(),
        "windows.hourly.emit_empty: is not a value of its tag, !!bool; remove the tag, or correct",
    ),
    "a pipeline in another encoding": (
        SETTINGS,
        b"name: caf\xe9",
        "p.yaml:1: is not UTF-8; save it as UTF-8",
    ),
}


@pytest.mark.parametrize(("settings", "pipeline", "words"), COMMANDS.values(), ids=COMMANDS)
def test_a_command_prints_a_few_lines_about_an_odd_file(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    settings: bytes | None,
    pipeline: bytes,
    words: str,
) -> None:
    """No mistake in a file is a Python trace: each is an error with the file, of exit status 2."""
    monkeypatch.delenv(SETTINGS_VARIABLE, raising=False)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pipelines").mkdir()
    (tmp_path / "pipelines" / "p.yaml").write_bytes(pipeline)
    if settings is None:
        (tmp_path / "settings.yaml").mkdir()
    else:
        (tmp_path / "settings.yaml").write_bytes(settings)
    monkeypatch.setattr("sys.argv", ["windows-pipeline", "validate"])
    with pytest.raises(SystemExit) as stopped:
        main()
    out, err = capfd.readouterr()
    assert (stopped.value.code, out) == (2, "")
    assert err.startswith(f"error: {tmp_path}/")
    assert words in err
    assert 1 <= len(err.splitlines()) <= 5
    assert "Traceback" not in err
