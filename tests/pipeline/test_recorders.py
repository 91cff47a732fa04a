"""What a command did shows in the Dagster instance that the settings name."""

from __future__ import annotations

import shutil
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import dagster as dg
import pytest
import yaml

from tests.support.command_line import call
from tests.support.pipelines import SHORT_GRACE, Project, day
from windows_pipeline.settings import Settings
from windows_pipeline.storage.tables import tables_of

ROOT = Path(__file__).parents[2]


@pytest.fixture
def project(
    tmp_path: Path, settings: Settings, landed_flights: Path, monkeypatch: pytest.MonkeyPatch
) -> Project:
    """A project of one landed day, in the working directory, with a folder for an instance."""
    made = Project(tmp_path, settings)
    made.declare(grace=SHORT_GRACE)
    made.land(landed_flights, 1)
    folders = {"warehouse": "warehouse", "landing": ".", "pipelines": "pipelines"}
    written = settings.model_dump(mode="json") | folders | {"dagster_home": "home"}
    (tmp_path / "settings.yaml").write_text(yaml.safe_dump(written))
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DAGSTER_HOME", raising=False)
    return made


def home_of(project: Project) -> Path:
    """A folder for the instance that the settings name, as `make ui` makes it."""
    home = project.folder / "home"
    home.mkdir()
    shutil.copy(ROOT / "windows_pipeline" / "dagster" / "dagster.yaml", home)
    return home


def instance_in(home: Path, monkeypatch: pytest.MonkeyPatch) -> dg.DagsterInstance:
    monkeypatch.setenv("DAGSTER_HOME", str(home))
    return dg.DagsterInstance.get()


def assert_day_shows_with_checks(instance: dg.DagsterInstance, counts: set[str]) -> None:
    """The day of alerts has its plot and these counts, and tables have checks of the day."""
    alerts = dg.AssetKey(["flights", "hourly", "alerts"])
    assert instance.get_materialized_partitions(alerts) == {day(1).isoformat()}
    event = instance.get_latest_materialization_event(alerts)
    assert event is not None
    assert event.asset_materialization is not None
    assert {"plot", "dagster/column_lineage", *counts} <= set(event.asset_materialization.metadata)
    for table, check in (
        ("raw_events", "rules"),
        ("hourly/final_windows", "rules"),
        ("hourly/alerts", "rules"),
        ("hourly/alerts", "alert_disruption"),
    ):
        key = dg.AssetCheckKey(dg.AssetKey(["flights", *table.split("/")]), check)
        evaluated = instance.get_latest_asset_check_evaluation_record(key)
        assert evaluated is not None
        assert evaluated.evaluation is not None
        assert evaluated.partition is None
        assert f"; {day(1)}: " in str(evaluated.evaluation.description)


@contextmanager
def tables_built_once() -> Iterator[None]:
    """Requires that a command builds the tables of its pipeline once, and hands them down."""
    callers: list[str] = []

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code is tables_of.__code__:
            callers.append(str(frame.f_back))

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        yield
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    assert len(callers) == 1, callers


def test_each_run_by_the_shell_shows_in_dagster(
    project: Project, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each table of each step has a materialization of the day, and each check its result.

    So has a day that runs again, also where checks refuse to publish; a command is a run.
    """
    home = home_of(project)
    of_day = ("run", "flights", "--from", day(1).isoformat(), "--to", day(1).isoformat())
    for _ in range(2):
        with tables_built_once():
            status, said = call(capfd, monkeypatch, *of_day)
        assert (status, "warning" in said) == (0, False), said
        instance = instance_in(home, monkeypatch)
        shown = {key.to_user_string() for key in instance.get_asset_keys()}
        # failed_windows has no rows.
        of_windows = ("keyed_windows", "late_records", "final_windows", "alerts", "episodes")
        expected = {f"flights/{name}" for name in ("raw_events", "rejected_records", "arrival_log")}
        assert shown == expected | {f"flights/hourly/{name}" for name in of_windows}
        assert_day_shows_with_checks(instance, {"dagster/partition_row_count"})
    landed = project.folder / "data" / "flights" / day(1).isoformat()
    (file,) = landed.iterdir()
    lines = file.read_text().splitlines(keepends=True)
    file.write_text("".join(lines[: len(lines) // 2]))
    status, said = call(capfd, monkeypatch, *of_day)
    assert (status, "final_windows: NOT published" in said) == (1, True), said
    assert "warning: dagster" not in said

    runs = instance.get_runs()
    assert {run.job_name for run in runs} == {"flights_in_shell"}
    assert [run.is_success for run in reversed(runs)] == [True, True, False]
    command = f"windows-pipeline run flights --from {day(1)} --to {day(1)}"
    assert {run.tags["windows-pipeline/command"] for run in runs} == {command}
    did = runs[0].tags["windows-pipeline/did"]
    assert f"flights/hourly/final_windows: NOT published, 1 day, {day(1)}" in did
    evaluated = [
        (check.check_name, check.partition, check.passed)
        for run in reversed(runs)
        for event in instance.all_logs(run.run_id, dg.DagsterEventType.ASSET_CHECK_EVALUATION)
        if (check := event.asset_check_evaluation) is not None
        and check.asset_key.path[-1] == "final_windows"
    ]
    assert evaluated == [
        ("rules", None, True),
        ("rules", None, True),
        ("rules", day(1).isoformat(), False),
        ("rules", None, False),
    ]


def test_a_correction_and_a_stream_show_in_dagster(
    project: Project, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The days that they changed, of the tables that they wrote."""
    home = home_of(project)
    with tables_built_once():
        status, said = call(capfd, monkeypatch, "stream", "flights")
    assert (status, "warning: dagster" in said) == (0, False), said
    instance = instance_in(home, monkeypatch)
    raw = dg.AssetKey(["flights", "raw_events"])
    assert instance.get_materialized_partitions(raw) == {day(1).isoformat()}
    assert_day_shows_with_checks(instance, {"dagster/row_count", "delta_version"})
    project.declare(grace="10 minutes")
    correct = ("correct", "flights", "--from", day(1).isoformat(), "--cause", "another grace")
    with tables_built_once():
        status, said = call(capfd, monkeypatch, *correct)
    # With so short a grace most records are late: it is published, and a check fails.
    assert (status, "correction 1 is published" in said) == (1, True), said
    assert "warning: dagster" not in said
    corrections = dg.AssetKey(["flights", "hourly", "corrections"])
    event = instance.get_latest_materialization_event(corrections)
    assert event is not None
    assert event.asset_materialization is not None
    assert event.asset_materialization.metadata["cause"].value == "another grace"
    final = instance.get_latest_materialization_event(
        dg.AssetKey(["flights", "hourly", "final_windows"])
    )
    assert final is not None
    assert final.asset_materialization is not None
    # As after a run of the day: the page loses nothing that it showed before.
    shown = {"dagster/partition_row_count", "dagster/column_lineage", "records_a_window"}
    assert shown | {"correction", "delta_version"} <= set(final.asset_materialization.metadata)
    run, followed = instance.get_runs()
    assert run.job_name == "flights_in_shell"
    command, did = "windows-pipeline/command", "windows-pipeline/did"
    assert (followed.tags[command], followed.tags[did]) == (
        "windows-pipeline stream flights",
        f"1 micro-batch, 1 day, {day(1)}",
    )
    assert run.tags[command] == (
        f"windows-pipeline correct flights --from {day(1)} --cause 'another grace'"
    )
    assert run.tags[did] == f"hourly: correction 1 is published, 1 day, {day(1)}"
    evaluated = {
        (check.asset_key.path[-1], check.check_name)
        for event in instance.all_logs(run.run_id, dg.DagsterEventType.ASSET_CHECK_EVALUATION)
        if (check := event.asset_check_evaluation) is not None
    }
    names = ("alert_disruption", "alert_quiet", "rules")
    tables = {("keyed_windows", "rules"), ("final_windows", "rules")}
    assert evaluated == tables | {("alerts", name) for name in names}


def test_an_instance_that_fails_is_a_warning(
    project: Project, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tables hold the results, so the command goes on."""
    home = project.folder / "home"
    home.mkdir()
    (home / "dagster.yaml").write_text("telemetry: 5\n")
    status, said = call(capfd, monkeypatch, "run", "flights")
    assert "warning: dagster does not show this run's results" in said
    assert (status, "flights/hourly/alerts: published" in said) == (0, True), said


def test_without_an_instance_nothing_is_reported(
    project: Project, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    status, said = call(capfd, monkeypatch, "run", "flights")
    assert (status, "warning" in said) == (0, False), said
    assert not (project.folder / "home").exists()


@pytest.mark.usefixtures("project")
def test_without_dagster_nothing_is_reported(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pipelines and commands need the extra `pipeline` alone."""
    for name in [name for name in sys.modules if name.startswith("windows_pipeline.dagster")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "dagster", None)
    status, said = call(capfd, monkeypatch, "run", "flights")
    assert (status, "warning" in said) == (0, False), said


def test_a_bad_file_shows_as_a_failed_run(
    project: Project, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """By days and as a stream: whoever looks at Dagster alone sees that something is missing."""
    home = home_of(project)
    (project.folder / "data" / "flights" / day(1).isoformat() / "bad.jsonl.gz").write_bytes(b"x")
    assert call(capfd, monkeypatch, "run", "flights")[0] == 3
    assert call(capfd, monkeypatch, "stream", "flights")[0] == 3
    instance = instance_in(home, monkeypatch)
    runs = instance.get_runs()
    assert [(run.job_name, run.is_failure) for run in runs] == [("flights_in_shell", True)] * 2
    for run in runs:
        (failure,) = instance.all_logs(run.run_id, dg.DagsterEventType.STEP_FAILURE)
        assert "bad.jsonl.gz: " in str(failure.dagster_event)


def test_a_command_that_ends_with_an_error_shows_as_a_failed_run(
    project: Project, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stream without end, too; the run says what the command says."""
    home = home_of(project)
    assert call(capfd, monkeypatch, "run", "flights")[0] == 0
    shutil.rmtree(project.source.raw_events.location)
    for command in (("run", "flights"), ("stream", "flights", "--every", "1 second")):
        status, said = call(capfd, monkeypatch, *command)
        assert (status, "warning: dagster" in said) == (2, False), said
    instance = instance_in(home, monkeypatch)
    followed, ran, _ = instance.get_runs()
    for run in (followed, ran):
        assert (run.job_name, run.is_failure) == ("flights_in_shell", True)
        (failure,) = instance.all_logs(run.run_id, dg.DagsterEventType.STEP_FAILURE)
        assert "windows-pipeline rebuild flights --from raw_events" in str(failure.dagster_event)
    assert followed.tags["windows-pipeline/command"].endswith("stream flights --every '1 second'")
