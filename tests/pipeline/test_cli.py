"""The command line: what users type, and the output and exit status they get."""

from __future__ import annotations

import shutil
from datetime import UTC, timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from tests.support.command_line import call
from tests.support.pipelines import DAYS, SHORT_GRACE, Project, day
from windows_pipeline.jobs import RawEventsJob
from windows_pipeline.jobs.days.runs import run_days, runs_to_do
from windows_pipeline.query import WindowStore
from windows_pipeline.settings import Settings

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def in_project(full_run: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    """The working directory is the project's, with a settings file."""
    full_run.write_settings()
    monkeypatch.chdir(full_run.folder)
    return full_run


def test_validate_names_the_line_of_a_mistake(
    in_project: Project, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert call(capfd, monkeypatch, "validate") == (0, "flights: valid; windows: hourly ")
    wrong = in_project.folder / "wrong.yaml"
    text = (ROOT / "pipelines" / "flights.yaml").read_text()
    wrong.write_text(text.replace("avg(dep_delay)", "avg(dep_dely)"))
    status, said = call(capfd, monkeypatch, "validate", str(wrong))
    assert status == 2
    assert "wrong.yaml:34: windows.hourly.aggregates.avg_dep_delay: 'avg(dep_dely)'" in said
    assert "Traceback" not in said


@pytest.mark.long
@pytest.mark.smoke
def test_landed_days_are_run_once_or_again(
    full_run: Project,
    landed_flights: Path,
    spark: SparkSession,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Rules A2, A5, H1: without Dagster, in several runs, one of them stopped half-way."""
    made = Project(tmp_path, full_run.base)
    made.declare(grace=SHORT_GRACE)
    made.land(landed_flights, DAYS)
    second = made.folder / "data" / "flights" / day(2).isoformat()
    second.rename(made.folder / "to come")
    shutil.copy(full_run.folder / "settings.yaml", tmp_path)
    monkeypatch.chdir(tmp_path)
    status, said = call(capfd, monkeypatch, "run", "flights", "--to", "2012-12-31")
    assert (status, "are from 2013-01-01 to" in said) == (2, True), said
    status, said = call(capfd, monkeypatch, "run", "flights", "--from", "2013-01-01")
    assert (status, "flights: 1 day, 2013-01-01 " in said) == (0, True), said
    # A day after a missing day waits, and every command reports that.
    waits = "1 day, 2013-01-03: blocked by a missing day: no window closes past 2013-01-02. Land"
    status, said = call(capfd, monkeypatch, "run", "flights")
    assert (status, "flights: 1 day, 2013-01-03 " in said, waits in said) == (1, True, True), said
    status, said = call(capfd, monkeypatch, "run", "flights")
    assert (status, "no landed day is new" in said, waits in said) == (1, True, True), said
    status, said = call(capfd, monkeypatch, "check", "flights")
    assert (status, waits in said, "no_arrival_missing: warning" in said) == (1, True, True), said
    # The missing day lands, and its run is stopped once its records are ingested.
    (made.folder / "to come").rename(second)
    raw = RawEventsJob(made.source, made.settings)
    (days,) = runs_to_do(spark, raw)
    assert days.ingest == [day(2)]
    assert days.compute == {"hourly": [day(2), day(3)]}
    assert next(run_days(spark, raw, days))[0] == "flights/raw_events"
    status, said = call(capfd, monkeypatch, "check", "flights")
    assert (status, "every_record_accounted_for: FAILED" in said) == (1, True), said
    lacking = "flights hourly: 2 days, 2013-01-02 to 2013-01-03: ingested and not computed"
    assert lacking in said
    status, said = call(capfd, monkeypatch, "run", "flights")
    assert (status, "flights: 2 days, 2013-01-02 to 2013-01-03 " in said) == (0, True), said
    assert "raw_events: published" not in said
    assert "flights/hourly/alerts: published" in said
    assert made.all_rows() == full_run.all_rows()
    status, said = call(capfd, monkeypatch, "run", "flights")
    assert (status, "no landed day is new; nothing to do" in said) == (0, True), said
    assert call(capfd, monkeypatch, "check", "flights")[0] == 0


def test_an_unknown_pipeline_is_one_line(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    status, said = call(capfd, monkeypatch, "episodes", "fights")
    assert status == 2
    assert "'fights' is not in" in said
    assert "use one of flights" in said


def no_session(_settings: Settings) -> SparkSession:
    raise AssertionError("Spark must not start")


def test_wrong_arguments_are_refused_before_spark_starts(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    status, said = call(
        capfd, monkeypatch, "stream", "flights", "--every", "soon", start=no_session
    )
    assert (status, "--every: 'soon' is not a duration" in said) == (2, True), said
    status, said = call(
        capfd, monkeypatch, "episodes", "flights", "--windows", "nope", start=no_session
    )
    assert (status, "use one of hourly" in said) == (2, True), said


def test_episodes_lists_the_worst_first(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    status, said = call(capfd, monkeypatch, "episodes", "flights", "--rule", "quiet")
    assert status == 0
    assert "quiet" in said
    assert "disruption" not in said


def test_trace_lists_exactly_the_records_of_the_window(
    in_project: Project, spark: SparkSession
) -> None:
    alerts = in_project.windows.alerts.read(spark).where("record_count > 0")
    alert = alerts.orderBy(F.desc("record_count"), "window_end", "key", "rule").first()
    assert alert is not None
    end = alert.window_end.astimezone(UTC)
    store = WindowStore(in_project.pipeline, "hourly", in_project.settings.warehouse)
    (window,) = (one for one in store.bounded(alert.key, end, end) if one.end == end)
    records = store.trace(window).records.to_pylist()
    assert len(records) == alert.record_count
    assert {record["key"] for record in records} == {alert.key}
    assert records[0]["event_time"] == alert.first_event_time.astimezone(UTC)
    assert records[-1]["event_time"] == alert.last_event_time.astimezone(UTC)
    assert end - records[0]["event_time"] <= timedelta(hours=1)
    assert max(record["dep_delay"] for record in records) == alert.max_dep_delay
