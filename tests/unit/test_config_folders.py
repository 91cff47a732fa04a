"""`windows-pipeline validate` checks that a source's folder exists, if this machine can see it."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
import yaml
from pyspark.sql import SparkSession

from tests.support.pipeline_texts import FLIGHTS, line_of
from windows_pipeline.cli.main import main
from windows_pipeline.config import FolderProblem, folder_problem, load_folder, load_pipeline
from windows_pipeline.settings import Settings

LINE = line_of(FLIGHTS, "  path:")


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with settings, pipelines and a source's folder, data/flights."""
    settings = {"warehouse": "tables", "pipelines": "pipelines", "landing": ".", "spark": {}}
    (tmp_path / "settings.yaml").write_text(yaml.safe_dump(settings))
    (tmp_path / "pipelines").mkdir()
    (tmp_path / "data" / "flights").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def with_path(project: Path, path: str, text: str = FLIGHTS) -> Path:
    """Writes the pipeline's file with another path of its source."""
    file = project / "pipelines" / "flights.yaml"
    file.write_text(re.sub(r"  path: \S+", f"  path: {path}", text))
    return file


def problem_of(project: Path, path: str, landing: str | None = None) -> FolderProblem | None:
    file = with_path(project, path)
    return folder_problem(file, load_pipeline(file).source, landing or str(project))


def validated(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *files: str
) -> tuple[int, str, str]:
    """Runs `validate`; returns the exit status, standard output and standard error."""
    monkeypatch.setattr("sys.argv", ["windows-pipeline", "validate", *files])
    with pytest.raises(SystemExit) as stopped:
        main()
    out, err = capfd.readouterr()
    return int(stopped.value.code or 0), out, err


def test_a_mistake_in_the_settings_is_shown_for_a_file_too(
    project: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else `validate` would report that the settings lack the modules of the file."""
    file = with_path(project, "data/flights")
    settings = project / "settings.yaml"
    line = settings.read_text().count("\n") + 1
    settings.write_text(f"{settings.read_text()}modules: [os]\n")
    status, out, err = validated(capfd, monkeypatch, str(file))
    assert (status, out) == (2, "")
    assert (
        err == f"error: {settings}:{line}: modules: 'os' is a module of Python; rename your file\n"
    )


@pytest.mark.parametrize("path", ["data/flights", "./data/flights/", "data/../data/flights"])
def test_an_existing_folder_is_right(project: Path, path: str) -> None:
    assert problem_of(project, path) is None
    assert problem_of(project, str(project / path)) is None


@pytest.mark.parametrize(
    ("path", "near"),
    [("data/flihgts", "data/flights"), ("date/flights", "data"), ("data/trains", None)],
)
def test_a_missing_folder_is_a_warning_with_the_nearest_name(
    project: Path, path: str, near: str | None
) -> None:
    (project / "data" / "flihgt").touch()  # nearer, but not a folder
    found = problem_of(project, path)
    assert found is not None
    assert not found.refused
    fix = (
        f"did you mean '{project / near}'?" if near else "correct it, or land the first files there"
    )
    assert found.text == (
        f"{project / 'pipelines' / 'flights.yaml'}:{LINE}: source.path: {path!r} is "
        f"{project / path}, which does not exist yet; {fix}"
    )


@pytest.mark.parametrize("path", ["data/all.jsonl", "data/all.jsonl/2013-01-01"])
def test_a_file_is_refused(project: Path, path: str) -> None:
    file = project / "data" / "all.jsonl"
    file.touch()
    found = problem_of(project, path)
    assert found is not None
    assert found.refused
    problem = f":{LINE}: source.path: {path!r} leads to {file}, which is a file; write the folder"
    assert problem in found.text
    assert "the folder that holds one folder per day" in found.text


def test_the_folder_of_a_delta_table_is_checked_too(project: Path) -> None:
    (project / "table").touch()
    text = FLIGHTS.replace("format: jsonl", "format: delta")
    file = with_path(project, "table", text)
    found = folder_problem(file, load_pipeline(file).source, str(project))
    assert found is not None
    assert "is a file; write the folder that holds the table" in found.text


def test_an_object_store_is_not_checked(project: Path) -> None:
    assert problem_of(project, "s3://bucket/flights") is None
    assert problem_of(project, "abfss://files@account.dfs.core.windows.net/flights") is None
    assert problem_of(project, "data/nothing", landing="s3://bucket") is None


def test_a_topic_has_no_folder(project: Path) -> None:
    text = re.sub(r"  (path|arrival): .*\n", "", FLIGHTS)
    topic = "format: kafka\n  kafka: {servers: 'a:1', topic: b}"
    file = with_path(project, "", text.replace("format: jsonl", topic))
    assert folder_problem(file, load_pipeline(file).source, str(project)) is None


def test_a_path_that_cannot_be_read_is_a_warning(project: Path) -> None:
    found = problem_of(project, "x" * 300)
    assert found is not None
    assert not found.refused
    assert "which cannot be read (File name too long); check the path" in found.text


def test_validate_warns_and_the_pipeline_is_valid(
    project: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    valid = "flights: valid; windows: hourly\n"
    with_path(project, "data/flights")
    assert validated(capfd, monkeypatch) == (0, valid, "")
    file = with_path(project, "'[data]/fights'")
    for named in ([], [str(file)]):
        status, out, err = validated(capfd, monkeypatch, *named)
        assert (status, out) == (0, valid)
        assert err.startswith(f"warning: {file}:{LINE}: source.path: '[data]/fights' is {project}/")
        assert "which does not exist yet; did you mean" in err


def called(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *args: str
) -> tuple[int, str]:
    """Runs a command up to the start of Spark; returns the exit status and standard error."""

    class Started(BaseException):
        """`main` reports each `Exception`, and lets this one pass."""

    def start(_settings: Settings) -> SparkSession:
        raise Started

    monkeypatch.setattr("sys.argv", ["windows-pipeline", *args])
    status = 0
    try:
        main(start)
    except Started:
        pass
    except SystemExit as stopped:
        status = int(stopped.code or 0)
    return status, capfd.readouterr().err


@pytest.mark.parametrize("command", ["run", "check", "maintain", "rebuild"])
def test_a_wrong_file_stops_its_own_pipeline_only(
    project: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    with_path(project, "data/flights")
    # Where no table exists, most commands end before Spark starts.
    (project / "tables" / "flights" / "raw_events" / "_delta_log").mkdir(parents=True)
    bad = project / "pipelines" / "bad.yaml"
    bad.write_text("name: bad\nsource: [red]\n")
    pipe = project / "pipelines" / "pipe.yml"
    os.mkfifo(pipe)
    status, err = called(capfd, monkeypatch, command, "flights")
    assert (status, err) == (
        0,
        "".join(
            f"warning: {file}: is left out, as it has mistakes; to see them: "
            "windows-pipeline validate\n"
            for file in (bad, pipe)
        ),
    )


def test_an_unknown_pipeline_may_be_in_a_wrong_file(
    project: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with_path(project, "data/flights")
    status, err = called(capfd, monkeypatch, "run", "bad")
    assert (status, err) == (
        2,
        f"error: PIPELINE: 'bad' is not in {project / 'pipelines'}; use one of flights\n",
    )
    bad = project / "pipelines" / "bad.yaml"
    bad.write_text(
        FLIGHTS.replace("name: flights", "name: bad").replace("grace: 6 h", "grace: 6 x")
    )
    status, err = called(capfd, monkeypatch, "run", "bad")
    assert status == 2
    assert f"'bad' is not in {project / 'pipelines'}; use one of flights, or correct these" in err
    assert f"{bad}:{line_of(FLIGHTS, '    grace:')}: windows.hourly.grace: " in err
    (project / "pipelines" / "flights.yaml").unlink()
    status, err = called(capfd, monkeypatch, "run", "bad")
    assert (status, "declare one there, or correct these files:" in err) == (2, True)


def test_files_with_the_same_pipeline_name_are_refused_and_others_work(
    project: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    first = with_path(project, "data/flights")
    second = project / "pipelines" / "copy.yaml"
    second.write_text(first.read_text())
    other = project / "pipelines" / "other.yaml"
    other.write_text(FLIGHTS.replace("name: flights", "name: other"))
    loaded = load_folder(project / "pipelines")
    assert [pipeline.name for pipeline in loaded.pipelines.values()] == ["other"]
    assert list(loaded.problems) == [second, first]
    assert called(capfd, monkeypatch, "run", "other")[0] == 0
    status, err = called(capfd, monkeypatch, "run", "flights")
    assert status == 2
    assert f"{first}:{line_of(FLIGHTS, 'name: flights')}: name: 'flights' is also the name" in err
    assert f"of the pipeline in {first}; rename one of them" in err


def test_validate_prints_the_problems_of_all_files(
    project: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with_path(project, "data/flights")
    wrong = [project / "pipelines" / name for name in ("a.yaml", "b.yml", "c.yaml")]
    wrong[0].write_text("")
    wrong[1].mkdir()
    wrong[2].write_text("name: c\n")
    for named in ([], [str(file) for file in wrong]):
        status, out, err = validated(capfd, monkeypatch, *named)
        # Without names, `validate` reads the folder, and prints its valid pipeline, too.
        assert (status, out) == (2, "" if named else "flights: valid; windows: hourly\n")
        assert all(f"{file}:" in err for file in wrong)


def test_validate_takes_names_as_other_commands_do(
    project: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the pipeline's name, whatever its file is called; a wrong file by the file's name."""
    with_path(project, "data/flights")
    pipelines = project / "pipelines"
    (pipelines / "flights.yaml").rename(pipelines / "of_airports.yaml")
    (pipelines / "wrong.yaml").write_text("name: other\n")
    status, out, err = validated(capfd, monkeypatch, "flights", "wrong")
    assert (status, out) == (2, "flights: valid; windows: hourly\n")
    assert f"{pipelines / 'wrong.yaml'}:1: source: is missing" in err
    status, _, err = validated(capfd, monkeypatch, "flight")
    refused = f"is neither a file nor a pipeline in {pipelines}; did you mean 'flights'?"
    assert (status, err) == (2, f"error: flight: {refused}\n")


def test_a_folder_that_cannot_be_read_is_one_error(
    project: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = yaml.safe_load((project / "settings.yaml").read_text())
    for folder, words in (
        ("x" * 300, "cannot be read (File name too long)"),
        ("no", "is not a folder; create it"),
    ):
        (project / "settings.yaml").write_text(yaml.safe_dump(settings | {"pipelines": folder}))
        status, err = called(capfd, monkeypatch, "run", "flights")
        assert (status, words in err) == (2, True), err


def test_validate_prints_brackets_unchanged(
    project: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with_path(project, "data", FLIGHTS.replace("format: jsonl", "format: '[red]x[/y]'"))
    status, _, err = validated(capfd, monkeypatch)
    assert status == 2
    assert "source.format: '[red]x[/y]' is not a known value; use 'csv'" in err


def test_validate_names_mistakes_and_folders_at_once(
    project: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A wrong file, others whose source folder is a file or of a missing variable; one is valid."""
    (project / "pipelines" / "other.yaml").write_text(
        FLIGHTS.replace("name: flights", "name: other").replace("format: jsonl", "format: xml")
    )
    (project / "pipelines" / "third.yaml").write_text(
        FLIGHTS.replace("name: flights", "name: third")
    )
    text = FLIGHTS.replace("name: flights", "name: fourth")
    (project / "pipelines" / "fourth.yaml").write_text(
        text.replace("path: data/flights", "path: data/${env:WP_NOT_SET}")
    )
    (project / "a_file").touch()
    with_path(project, "a_file")
    status, out, err = validated(capfd, monkeypatch)
    assert (status, out) == (2, "third: valid; windows: hourly\n")
    assert "source.path: refers to the environment variable WP_NOT_SET, which is not set" in err
    assert "other.yaml:" in err
    assert "source.format: 'xml' is not a known value" in err
    assert "flights.yaml:" in err
    assert "a_file" in err


def test_validate_works_without_settings(
    project: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = with_path(project, "data/nothing")
    (project / "settings.yaml").unlink()
    status, out, err = validated(capfd, monkeypatch, str(file))
    assert (status, out) == (0, "flights: valid; windows: hourly\n")
    assert "warning: source.path was not looked at: " in err
    assert "there is no settings file" in err
