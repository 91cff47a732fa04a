"""Who is notified that a run failed, and that records do not come in time."""

from __future__ import annotations

import json
import os
import pty
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
import typer
from deltalake import DeltaTable

from tests.support.command_line import call
from tests.support.notified import Notified
from tests.support.pipeline_texts import FLIGHTS
from tests.support.receivers import Receiver, receiver
from tests.support.written_tables import write_rows
from windows_pipeline.cli.failures import noting_failures
from windows_pipeline.cli.terminal.console import UserStream
from windows_pipeline.dagster.definitions import build_definitions
from windows_pipeline.notify import note_failure
from windows_pipeline.storage.catalog import specs_of

DAILY = FLIGHTS.replace("windows:", "expect_every: 1 day\nwindows:", 1)
DAY = timedelta(days=1)


@pytest.fixture
def hook() -> Iterator[Receiver]:
    with receiver() as made:
        yield made


def notified(folder: Path, hook: Receiver, more: str = "", text: str = FLIGHTS) -> Notified:
    return Notified(folder, f"  people:\n    webhook: {{url: '{hook.url}'}}\n{more}", text=text)


def sent(hook: Receiver) -> list[dict[str, Any]]:
    return [event for body in hook.bodies for event in body["events"]]


def test_a_failed_run_is_sent_once(tmp_path: Path, hook: Receiver) -> None:
    """Whatever rules and severities a target names: a failed run has none."""
    project = notified(tmp_path, hook, "    rules: [disruption]\n    min_severity: 90\n")
    warehouse = project.settings.warehouse
    now = datetime.now(UTC)
    note_failure(project.pipeline, warehouse, "windows-pipeline run", "the disk is full", "a")
    assert project.deliver(now)["people"].events == 1
    (body,) = hook.bodies
    assert body["text"].startswith("flights: windows-pipeline run failed at ")
    assert body["text"].endswith("\nthe disk is full")
    (event,) = body["events"]
    assert (event["event"], event["what"]) == ("failed", "windows-pipeline run")
    # The same run again is no news; another one is, and a torn line is none.
    note_failure(project.pipeline, warehouse, "windows-pipeline run", "the disk is full", "a")
    assert project.deliver(now)["people"].events == 0
    with (Path(warehouse) / "flights" / "_failures.jsonl").open("a") as file:
        file.write('{"run": "x", "wh\n')
    note_failure(project.pipeline, warehouse, "windows-pipeline run", "the disk is full", "b")
    assert project.deliver(now)["people"].events == 1
    assert len({event["id"] for event in sent(hook)}) == 2


def test_a_target_that_names_other_events_hears_of_no_run(tmp_path: Path, hook: Receiver) -> None:
    project = notified(tmp_path, hook, "    events: [opened]\n")
    note_failure(project.pipeline, project.settings.warehouse, "run", "no")
    assert not Path(project.settings.warehouse).exists()


def test_records_that_do_not_come_are_sent_once(tmp_path: Path, hook: Receiver) -> None:
    """However long ago they were due; until records come, whatever else is done to the table."""
    project = notified(tmp_path, hook, text=DAILY)
    log = specs_of(project.pipeline, project.settings.warehouse).arrival_log
    began = datetime.now(UTC)
    assert project.deliver(began + 9 * DAY)["people"].events == 0  # it never ran
    write_rows(log, [{"arrival_unit": date(2013, 1, 1), "rows": 5}])
    assert project.deliver(began + DAY / 2)["people"].events == 0
    for _ in range(2):
        project.deliver(began + 3 * DAY)
    (event,) = sent(hook)
    assert (event["event"], event["what"]) == ("overdue", "flights/arrival_log")
    assert "records are expected every 1 day, and none came since " in event["text"]
    write_rows(log, [{"arrival_unit": date(2013, 1, 2), "rows": 5}])
    assert project.deliver(began + DAY / 2)["people"].events == 0
    DeltaTable(log.location).optimize.compact()
    assert project.deliver(began + 3 * DAY)["people"].events == 1
    assert len({event["id"] for event in sent(hook)}) == 2


def test_a_command_that_fails_notes_it(
    tmp_path: Path,
    hook: Receiver,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    project = notified(tmp_path, hook)
    written = project.settings.model_dump(mode="json", include={"warehouse", "landing"})
    assert project.pipeline.name == "flights"
    (tmp_path / "pipelines").mkdir()
    (tmp_path / "flights.yaml").rename(tmp_path / "pipelines" / "flights.yaml")
    settings = {**written, "pipelines": "pipelines", "spark": {}}
    (tmp_path / "settings.yaml").write_text(json.dumps(settings))
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("WINDOWS_PIPELINE_SETTINGS", raising=False)

    def no_session(*_: object) -> Any:
        raise RuntimeError("no session today")

    assert call(capfd, monkeypatch, "run", "flights", start=no_session)[0] == 1
    assert call(capfd, monkeypatch, "run", "unknown", start=no_session)[0] == 2
    # Mistakes of whoever gave the command, and what a person reads on a terminal, page nobody.
    for option in ("--from", "--nope"):
        assert call(capfd, monkeypatch, "run", "flights", option, "x", start=no_session)[0] == 2
    for status in (0, 1, 2):
        with pytest.raises(typer.Exit), noting_failures("check", {"pipeline": "flights"}):
            raise typer.Exit(status)
    person, terminal = pty.openpty()
    with (
        os.fdopen(terminal, "w") as shown,
        UserStream.replaced(stderr=shown),
        pytest.raises(typer.Exit),
        noting_failures("check", {"pipeline": "flights"}),
    ):
        raise typer.Exit(1)
    os.close(person)
    lines = (tmp_path / "warehouse" / "flights" / "_failures.jsonl").read_text().splitlines()
    assert [(json.loads(line)["what"], json.loads(line)["text"]) for line in lines] == [
        ("windows-pipeline run", "RuntimeError: no session today"),
        ("windows-pipeline check", "a check failed, or something is left to do: see its output"),
    ]


def test_a_failed_run_of_dagster_is_noted_for_its_pipeline(tmp_path: Path, hook: Receiver) -> None:
    """The sensor finds the pipeline by the job; the job that notifies is left out."""
    project = notified(tmp_path, hook)
    other = project.pipeline.model_copy(update={"name": "flights_late"})
    definitions = build_definitions([project.pipeline, other], project.settings)
    sensor = definitions.resolve_sensor_def("failed_runs")
    with dg.DagsterInstance.ephemeral() as instance:
        for name in ("flights_all", "flights_late_all", "flights_notify", "others"):
            failed = failing(name).execute_in_process(instance=instance, raise_on_error=False)
            with dg.build_run_status_sensor_context(
                "failed_runs", failed.get_run_failure_event(), instance, failed.dagster_run
            ) as context:
                sensor(context.for_run_failure())
    for name in ("flights", "flights_late"):
        file = Path(project.settings.warehouse) / name / "_failures.jsonl"
        (line,) = map(json.loads, file.read_text().splitlines())
        assert line["what"].endswith(f" of {name}_all")
        assert line["text"] == "the disk is full"


def test_a_run_that_dagster_runs_again_is_not_noted(tmp_path: Path, hook: Receiver) -> None:
    """A run whose process was killed; it is noted if nothing follows."""
    project = notified(tmp_path, hook)
    definitions = build_definitions([project.pipeline], project.settings)
    sensor = definitions.resolve_sensor_def("failed_runs")
    job = failing("flights_all")
    with dg.DagsterInstance.ephemeral() as instance:
        for will_retry in ("true", "false"):
            run = instance.create_run_for_job(job)
            event = instance.report_run_failed(run, "marked as failed")
            instance.add_run_tags(run.run_id, {"dagster/will_retry": will_retry})
            with dg.build_run_status_sensor_context("failed_runs", event, instance, run) as context:
                said = sensor(context.for_run_failure())
            assert isinstance(said, dg.SkipReason)
            assert said.skip_message is not None
            assert (f"runs {run.run_id} again" in said.skip_message) == (will_retry == "true")
    file = Path(project.settings.warehouse) / "flights" / "_failures.jsonl"
    (line,) = map(json.loads, file.read_text().splitlines())
    assert (
        line["text"]
        == "marked as failed. No step of it failed, so its process may have been killed."
    )


def failing(name: str) -> dg.JobDefinition:
    @dg.op
    def fail() -> None:
        raise dg.Failure("the disk is full")

    @dg.job(name=name)
    def failing_job() -> None:
        fail()

    return failing_job
