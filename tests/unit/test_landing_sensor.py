"""Sensor and schedule request landed days, and no day past a missing one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import dagster as dg
import pytest
import yaml

from tests.support.pipeline_texts import FLIGHTS, load_text, problems_of
from tests.support.requested_runs import requested_days
from tests.support.written_tables import log_days, write_rows
from windows_pipeline.dagster import range_tags
from windows_pipeline.dagster.definitions import build_definitions
from windows_pipeline.settings import Settings
from windows_pipeline.storage.catalog import specs_of
from windows_pipeline.storage.writer_lock import writing

FIRST = date(2013, 1, 1)
PARTITION_TAG = "dagster/partition"
RAW = dg.AssetKey(["flights", "raw_events"])


def key(number: int) -> str:
    """The partition key of the day of a number, from 1."""
    return (FIRST + timedelta(days=number - 1)).isoformat()


class Landing:
    """Landed folders of the flights, and the sensor's ticks over one Dagster instance."""

    def __init__(self, folder: Path, instance: dg.DagsterInstance, quiet: str | None) -> None:
        self.folder, self.instance = folder, instance
        self.cursor: str | None = None
        self.reason = ""
        self.now, self.keys = datetime(2026, 1, 1, 0, 30, tzinfo=UTC), set[str]()
        folder.mkdir(exist_ok=True)
        fields = yaml.safe_load(FLIGHTS)
        fields["schedule"] = {"on_landing": {} if quiet is None else {"quiet": quiet}}
        self.pipeline = pipeline = load_text(folder, yaml.safe_dump(fields))
        assert pipeline.partitions.start == FIRST
        self.days = folder / str(pipeline.source.path)
        self.days.mkdir(parents=True)
        settings = Settings(
            warehouse=str(folder / "warehouse"), pipelines=folder, landing=str(folder), spark={}
        )
        self.definitions = build_definitions([pipeline], settings)
        self.sensor = self.definitions.resolve_sensor_def("flights_landing")

    def land(self, number: int, text: str = "{}", name: str = "a.jsonl") -> None:
        folder = self.days / key(number)
        folder.mkdir(exist_ok=True)
        (folder / name).write_text(text)

    def mark(self, *numbers: int) -> None:
        for number in numbers:
            self.land(number, "", "_SUCCESS")

    def publish(self, *numbers: int) -> None:
        log_days(self.pipeline, str(self.folder / "warehouse"), map(key, numbers))

    def compute(self, *numbers: int) -> None:
        """Notes days as computed to the end."""
        spec = specs_of(self.pipeline, str(self.folder / "warehouse")).of("hourly").computed_days
        days = (FIRST + timedelta(days=number - 1) for number in numbers)
        write_rows(spec, [{"arrival_unit": day} for day in days])

    def begin(self, first: int, last: int) -> dg.DagsterRun:
        """A run of some days that is not finished."""
        return self.instance.create_run_for_job(
            self.definitions.resolve_job_def("flights_all"), tags=range_tags(key(first), key(last))
        )

    def tick(self) -> list[tuple[str, str]]:
        """The first and the last day of the run that the next tick requests, if it does."""
        with dg.build_sensor_context(
            self.instance,
            cursor=self.cursor,
            repository_def=self.definitions.get_repository_def(),
        ) as context:
            result = self.sensor.evaluate_tick(context)
        self.cursor = result.cursor or self.cursor
        self.reason = result.skip_message or ""
        requests = result.run_requests or []
        assert all(request.run_key for request in requests)
        return requested_days(requests)

    def night(self) -> list[tuple[str, str]]:
        """The first and the last day of each run that the schedule requests in the next night."""
        self.now += timedelta(days=1)
        schedule = self.definitions.resolve_schedule_def("flights_daily")
        with dg.build_schedule_context(
            self.instance, self.now, repository_def=self.definitions.get_repository_def()
        ) as context:
            tick = schedule.evaluate_tick(context)
        self.reason = tick.skip_message or ""
        requests = tick.run_requests or []
        keys = {str(request.run_key) for request in requests}
        assert not self.keys & keys  # Dagster passes over a request with a key that it has seen
        self.keys |= keys
        return requested_days(requests)


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.ephemeral() as instance:
        yield instance


@pytest.fixture
def landing(tmp_path: Path, instance: dg.DagsterInstance) -> Landing:
    """Only a file `_SUCCESS` makes a day complete."""
    return Landing(tmp_path, instance, None)


@pytest.fixture
def nightly(tmp_path: Path) -> Iterator[Landing]:
    """As `landing`, with an instance on disk, as the context of a schedule needs."""
    home = tmp_path / "home"
    home.mkdir()
    with dg.DagsterInstance.local_temp(str(home)) as instance:
        yield Landing(tmp_path, instance, None)


def test_a_marked_day_is_requested_once(landing: Landing) -> None:
    assert landing.sensor.default_status == dg.DefaultSensorStatus.STOPPED
    assert landing.tick() == []
    assert landing.reason == "every landed day is published"
    landing.land(1)
    assert landing.tick() == []
    assert f"{key(1)} is not complete: its folder has no file _SUCCESS" in landing.reason
    landing.mark(1)
    assert landing.tick() == [(key(1), key(1))]
    assert landing.tick() == []
    landing.publish(1)
    assert landing.tick() == []
    assert landing.reason == "every landed day is published"


def test_a_day_that_a_foreign_page_reported_is_requested(landing: Landing) -> None:
    """Whoever reaches Dagster's address of reports can mark a day; the tables lack it."""
    landing.land(1)
    landing.mark(1)
    made = dg.AssetMaterialization(RAW, partition=key(1))
    landing.instance.report_runless_asset_event(made)
    assert landing.tick() == [(key(1), key(1))]


def test_a_long_quiet_time_holds_a_day_until_it_is_marked(
    tmp_path: Path, instance: dg.DagsterInstance
) -> None:
    patient = Landing(tmp_path, instance, "1000 weeks")
    patient.land(1)
    assert [patient.tick(), patient.tick()] == [[], []]
    assert "must not change for 7000 days from one tick to another" in patient.reason
    patient.mark(1)
    assert patient.tick() == [(key(1), key(1))]


def test_a_day_is_complete_once_nothing_changed(
    tmp_path: Path, instance: dg.DagsterInstance
) -> None:
    """Each tick is more than the quiet time after the one before."""
    landing = Landing(tmp_path, instance, "1 ms")
    landing.land(1)
    (landing.days / key(2)).mkdir()  # a day without events
    assert landing.tick() == []
    landing.land(2, name=".a.jsonl.part")
    os.utime(landing.days / key(1) / "a.jsonl", (1, 1))
    assert landing.tick() == []
    (landing.days / key(2) / ".a.jsonl.part").rename(landing.days / key(2) / "a.jsonl")
    assert landing.tick() == [(key(1), key(1))]
    landing.publish(1)
    assert landing.tick() == [(key(2), key(2))]


def test_no_day_is_run_past_a_missing_or_incomplete_one(landing: Landing) -> None:
    """Rule A2: a missing day blocks all later ones, so they come with it."""
    for number in (1, 2, 4, 5):
        landing.land(number)
    landing.mark(1, 4, 5)
    assert landing.tick() == [(key(1), key(1))]
    landing.publish(1)
    assert landing.tick() == []
    assert f"{key(2)} is not complete" in landing.reason
    assert f"{key(3)} has no folder, and all later days wait for it" in landing.reason
    landing.mark(2, 3)
    assert landing.tick() == [(key(2), key(5))]


def test_days_that_a_schedule_ran_are_not_run_again(landing: Landing) -> None:
    """Day 3 was blocked by day 2, so the run of day 2 holds it, too."""
    for number in (1, 2, 3):
        landing.land(number)
    landing.mark(1, 2, 3)
    landing.publish(1, 3)
    assert landing.tick() == [(key(2), key(3))]
    landing.publish(2)
    landing.cursor = None
    assert landing.tick() == []


def test_nothing_is_requested_while_a_run_is_open(landing: Landing) -> None:
    landing.land(1)
    landing.mark(1)
    run = landing.begin(1, 1)
    assert landing.tick() == []
    assert landing.reason == f"run {run.run_id} is not finished"
    landing.instance.report_run_failed(run)
    assert landing.tick() == [(key(1), key(1))]


def test_nothing_is_requested_while_the_ui_materializes_the_day(landing: Landing) -> None:
    """A run of the UI is of no job of the pipeline."""
    landing.land(1)
    landing.mark(1)
    run = landing.instance.create_run_for_job(
        landing.definitions.resolve_implicit_global_asset_job_def(),
        asset_selection=frozenset({RAW}),
        tags={PARTITION_TAG: key(1)},
    )
    assert landing.tick() == []
    assert landing.reason == f"a run of {key(1)} is not finished"
    landing.instance.report_run_failed(run)
    assert landing.tick() == [(key(1), key(1))]


def test_a_failed_day_is_run_again_with_other_files_or_a_later_day(landing: Landing) -> None:
    landing.land(1)
    landing.mark(1)
    assert landing.tick() == [(key(1), key(1))]
    landing.instance.report_run_failed(landing.begin(1, 1))
    assert landing.tick() == []
    assert f"{key(1)} was run, is not published, and its files are as they were" in landing.reason
    landing.land(1, "{} ")
    assert landing.tick() == [(key(1), key(1))]
    assert landing.tick() == []
    landing.land(2)
    landing.mark(2)
    assert landing.tick() == [(key(1), key(2))]


def test_a_tick_requests_a_month_at_most(landing: Landing) -> None:
    for number in range(1, 41):
        landing.land(number)
        landing.mark(number)
    assert landing.tick() == [(key(1), key(31))]
    landing.publish(*range(1, 32))
    assert landing.tick() == [(key(32), key(40))]


def test_the_schedule_requests_the_days_that_run_would_compute(nightly: Landing) -> None:
    """Marked or not; days that a missing day had blocked come with it (rule A2)."""
    assert nightly.night() == []
    assert nightly.reason == "every landed day is published"
    for number in (1, 2, 4):
        nightly.land(number)
    assert nightly.night() == [(key(1), key(2))]
    nightly.publish(1, 2, 4)
    nightly.compute(1, 2)
    assert nightly.night() == []
    assert f"{key(3)} has no folder, and all later days wait for it" in nightly.reason
    nightly.land(3)
    assert nightly.night() == [(key(3), key(4))]


def test_the_schedule_requests_a_day_until_it_is_computed(nightly: Landing) -> None:
    """By itself, so that a new day need not wait for one that fails again."""
    for number in (1, 2, 3):
        nightly.land(number)
    nightly.publish(1, 2)
    nightly.compute(1)
    assert nightly.night() == [(key(3), key(3)), (key(2), key(2))]
    nightly.publish(3)
    nightly.compute(3)
    assert nightly.night() == nightly.night() == [(key(2), key(2))]
    nightly.compute(2)
    assert nightly.night() == []


def test_the_schedule_leaves_days_to_whoever_computes_them(nightly: Landing) -> None:
    nightly.land(1)
    with writing(nightly.pipeline, str(nightly.folder / "warehouse")):
        assert nightly.night() == []
    run = nightly.begin(1, 1)
    assert nightly.night() == []
    nightly.instance.report_run_failed(run)
    assert nightly.night() == [(key(1), key(1))]


def test_days_outside_the_partitions_and_other_names_are_left_out(landing: Landing) -> None:
    landing.land(0)
    landing.mark(0)
    (landing.days / "notes").mkdir()
    assert landing.tick() == []
    assert landing.reason == "every landed day is published"


def test_a_folder_that_is_gone_and_a_foreign_cursor_end_no_tick(landing: Landing) -> None:
    landing.cursor = '{"waiting": 5}'
    landing.land(1)
    landing.mark(1)
    assert landing.tick() == [(key(1), key(1))]
    landing.days.rename(landing.folder / "elsewhere")
    assert landing.tick() == []
    assert "there is no such folder; land the files in" in landing.reason


def test_a_stream_has_no_such_sensor_and_its_file_names_none(tmp_path: Path) -> None:
    text = FLIGHTS.replace("source:\n", "source:\n  stream: true\n")
    pipeline = load_text(tmp_path, text)
    settings = Settings(
        warehouse=str(tmp_path / "warehouse"), pipelines=tmp_path, landing=str(tmp_path), spark={}
    )
    assert not build_definitions([pipeline], settings).sensors
    wrong = f"{text}\nschedule:\n  on_landing: {{quiet: 1 hour}}\n"
    (problem,) = problems_of(tmp_path, wrong)
    assert ": schedule.on_landing" in problem
    assert "remove on_landing, and set by cron how often the stream looks" in problem


def test_a_pipelines_file_starts_the_sensor(tmp_path: Path) -> None:
    text = f"{FLIGHTS}\nschedule:\n  on_landing: {{quiet: 10 minutes, enabled: true}}\n"
    pipeline = load_text(tmp_path, text)
    settings = Settings(
        warehouse=str(tmp_path / "warehouse"), pipelines=tmp_path, landing=str(tmp_path), spark={}
    )
    definitions = build_definitions([pipeline], settings)
    sensor = definitions.resolve_sensor_def("flights_landing")
    assert sensor.default_status == dg.DefaultSensorStatus.RUNNING
    # The schedule has its default, and is off.
    schedule = definitions.resolve_schedule_def("flights_daily")
    assert schedule.cron_schedule == "30 0 * * *"
    assert schedule.default_status == dg.DefaultScheduleStatus.STOPPED
