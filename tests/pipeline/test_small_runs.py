"""A run of few records is computed as `small_batches` says, one of many is not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from tests.support.pipelines import Project, day
from windows_pipeline.arrival.log import ArrivalLog, read_log
from windows_pipeline.compat.spark_session import configured
from windows_pipeline.jobs import KeyedWindowsJob, RawEventsJob, run_job
from windows_pipeline.jobs.job import Stage, cache_rows, sized_for
from windows_pipeline.settings import Settings
from windows_pipeline.storage.arrival_units import in_arrival_units

NAME = "windows_pipeline.run_is"


@dataclass(frozen=True)
class NotingRaw(RawEventsJob):
    """Notes what Spark is sized while it runs."""

    seen: list[str | None] = field(default_factory=list)

    def stage(self, spark: SparkSession, days: Sequence[date], log: ArrivalLog) -> Stage:
        self.seen.append(spark.conf.get(NAME, None))
        return super().stage(spark, days, log)


def landed_in(spark: SparkSession, project: Project, days: Sequence[date]) -> int:
    tables = (project.source.raw_events, project.source.rejected_records)
    return sum(table.read(spark).where(in_arrival_units(days)).count() for table in tables)


def test_settings_distinguish_few_records_from_many(settings: Settings) -> None:
    sized = settings.model_copy(update={"small_batches": {NAME: "small"}})
    assert sized.conf_for(10_000) == {NAME: "small"}
    assert sized.conf_for(10_001) == {}


@pytest.mark.long
def test_a_small_day_runs_with_the_small_settings_and_many_days_do_not(
    spark: SparkSession, settings: Settings, landed_flights: Path, tmp_path: Path
) -> None:
    sized = settings.model_copy(update={"small_batches": {NAME: "small"}})
    project = Project(tmp_path, sized)
    project.declare()
    project.land(landed_flights, 12)
    few_days, many_days = [day(1)], [day(number) for number in range(1, 13)]
    tables = project.source
    raw = NotingRaw(tables, project.settings)
    for days in (few_days, many_days):
        assert run_job(raw, spark, days).published
        assert spark.conf.get(NAME, None) is None
    assert raw.seen == ["small", None]

    # Other jobs ask the log.
    keyed = KeyedWindowsJob(tables, "hourly", project.settings)
    log = read_log(spark, project.source.arrival_log)
    for days in (few_days, many_days):
        assert keyed.estimated_records(days, log) == landed_in(spark, project, days)
    assert landed_in(spark, project, many_days) > 10_000


def test_settings_are_restored_after_an_error(spark: SparkSession) -> None:
    spark.conf.set(NAME, "before")
    with pytest.raises(AnalysisException), configured(spark, {NAME: "small"}):
        spark.sql("SELECT no_such_column")
    assert spark.conf.get(NAME) == "before"
    spark.conf.unset(NAME)


@pytest.mark.parametrize(
    ("setting", "records", "keeps"),
    [(True, 1, True), (False, 10_001, True), (False, 10_000, False)],
    ids=["set", "many records", "few records"],
)
def test_cached_rows_are_computed_once_with_or_without_their_plan(
    spark: SparkSession,
    settings: Settings,
    capsys: pytest.CaptureFixture[str],
    *,
    setting: bool,
    records: int,
    keeps: bool,
) -> None:
    sized = settings.model_copy(update={"keep_plans": setting})
    with sized_for(spark, sized, records):
        rows = cache_rows(spark.range(4).withColumn("drawn", F.expr("uuid()")))
    further = rows.where("id > 0")
    first = sorted(rows.collect())
    assert sorted(further.collect()) == first[1:]
    capsys.readouterr()
    further.explain("extended")
    analyzed = capsys.readouterr().out.split("== Optimized")[0]
    assert ("Range (0, 4" in analyzed) is keeps
    rows.unpersist()
