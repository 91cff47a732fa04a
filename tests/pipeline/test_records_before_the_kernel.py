"""A record that is lost, doubled or misplaced before the kernel fails a check of its day."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tests.support.kinds import DAYS, DAYS_WHOLE, Ran, declare
from windows_pipeline.engine import windows as engine
from windows_pipeline.engine.time_shards import TIME_SHARD
from windows_pipeline.incremental import arrival_units
from windows_pipeline.jobs import Job, KeyedWindowsJob, RawEventsJob
from windows_pipeline.jobs.job import run_job
from windows_pipeline.settings import Settings
from windows_pipeline.sources.landed_files import read_landed

FAULTY = "offset = 12"
"""A record that is not late."""


def dropped(records: DataFrame) -> DataFrame:
    return records.where(f"NOT {FAULTY}")


def doubled(records: DataFrame) -> DataFrame:
    return records.unionByName(records.where(FAULTY))


def in_a_wrong_shard(records: DataFrame) -> DataFrame:
    return records.withColumn(TIME_SHARD, F.col(TIME_SHARD) + F.expr(FAULTY).cast("int"))


@pytest.fixture(scope="module")
def ran(short_shards: Settings, tmp_path_factory: pytest.TempPathFactory) -> Ran:
    """A pipeline whose files have landed."""
    return declare(short_shards, tmp_path_factory.mktemp("faulty") / "own", DAYS_WHOLE)


@pytest.fixture(scope="module")
def job(spark: SparkSession, ran: Ran) -> KeyedWindowsJob:
    """A day of sliding windows, whose records are ingested."""
    assert run_job(RawEventsJob(ran.source, ran.settings), spark, DAYS[:1]).published
    return KeyedWindowsJob(ran.source, "slides", ran.settings)


def failed(spark: SparkSession, job: Job) -> list[str]:
    """The checks that fail, of a day that is therefore not published."""
    result = run_job(job, spark, DAYS[:1])
    assert not result.published
    return [one.check.name for one in result.checks if not one.passed]


def test_a_record_that_the_reader_drops_fails_a_check_of_its_day(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, ran: Ran
) -> None:
    """Rule A6: landed records are counted by other code."""
    faulty = "windows_pipeline.jobs.raw_events.read_landed"
    monkeypatch.setattr(faulty, lambda *args: read_landed(*args).where("n <> 12"))
    job = RawEventsJob(ran.source, ran.settings)
    assert failed(spark, job) == ["landed_is_accepted_or_rejected"]


@pytest.mark.parametrize(
    ("module", "function", "fault", "fails"),
    [
        (engine, "in_time_shards", dropped, "holds_its_records"),
        (engine, "in_time_shards", doubled, "holds_its_records"),
        (engine, "in_time_shards", in_a_wrong_shard, "holds_its_records"),
        # The checks read by this function, too; the arrival log says how many records there are.
        (arrival_units, "records_to_read", dropped, "every_record_accounted_for"),
        (arrival_units, "records_to_read", doubled, "every_record_accounted_for"),
    ],
)
def test_a_faulty_record_fails_a_check_of_its_day(
    spark: SparkSession,
    monkeypatch: pytest.MonkeyPatch,
    job: KeyedWindowsJob,
    module: ModuleType,
    function: str,
    fault: Callable[[DataFrame], DataFrame],
    fails: str,
) -> None:
    """Rule A5. No check but this one fails, so that the day is sound without the fault."""
    sound: Callable[..., DataFrame] = getattr(module, function)
    monkeypatch.setattr(module, function, lambda *args, **kwargs: fault(sound(*args, **kwargs)))
    assert failed(spark, job) == [fails]
