"""A broken table fails the check that is there for it, and readers never see it."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest
from delta.tables import DeltaTable
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from pipeline_runs import DAYS, DERIVED, Project, day, failed_checks
from windows_pipeline.config import load_pipeline
from windows_pipeline.jobs import Job, RawEventsJob, check_published
from windows_pipeline.jobs.chain import window_jobs
from windows_pipeline.quality.invariants import window_checks
from windows_pipeline.quality.validation import Batch, validate

ALL_DAYS = [day(number) for number in range(1, DAYS + 1)]


class Break(NamedTuple):
    """How to break one row of a table: SQL by column, `delete`, or `twice` for a second one."""

    step: str
    table: str
    where: str
    do: dict[str, str] | str
    fails: str


BREAKS = [
    Break("raw", "raw_events", "offset = 5", "delete", "offsets_without_gap"),
    Break(
        "raw", "raw_events", "offset = 5",
        {"running_max": "running_max + INTERVAL 1 SECOND"}, "running_max_is_stream_time",
    ),
    Break("raw", "rejected_records", "true", "delete", "landed_is_accepted_or_rejected"),
    Break(
        "keyed", "keyed_windows", "record_count > 2",
        {"last_event_time": "window_end + INTERVAL 1 MILLISECOND"}, "bounds_inclusive",
    ),
    Break(
        "keyed", "keyed_windows", "record_count > 2",
        {"window_start": "window_start + INTERVAL 1 MILLISECOND"}, "bounds_inclusive",
    ),
    Break(
        "keyed", "keyed_windows", "record_count > 2",
        {"record_count": "record_count + 1"}, "holds_its_records",
    ),
    Break(
        "keyed", "keyed_windows", "record_count > 2",
        {"first_event_time": "first_event_time - INTERVAL 1 MILLISECOND"}, "holds_its_records",
    ),
    Break("keyed", "keyed_windows", "closed", "twice", "one_window_per_record_set"),
    Break(
        "keyed", "keyed_windows", "record_count > 2",
        {"record_count": "0"}, "empty_windows_are_silences",
    ),
    Break("keyed", "late_records", "unit = arrived_unit", "delete", "every_record_accounted_for"),
    Break(
        "final", "final_windows", "record_count > 2",
        {"record_count": "record_count + 1"}, "final_is_closed",
    ),
    Break(
        "final", "final_windows", "record_count > 2",
        {"window_end": "window_end + INTERVAL 3 DAYS"}, "final_is_closed",
    ),
    Break("final", "final_windows", "true", "delete", "final_is_closed"),
    Break("final", "final_windows", "true", "twice", "final_once"),
    Break(
        "alerts", "alerts", "rule = 'quiet'", {"record_count": "4"}, "alert_breaks_its_rule",
    ),
    Break(
        "alerts", "alerts", "episode_start < window_start",
        {"episode_start": "window_start"}, "episodes_apart",
    ),
]  # fmt: skip


def job_of(project: Project, step: str) -> Job:
    if step == "raw":
        return RawEventsJob(project.pipeline, project.settings)
    keyed, final, alerts = window_jobs(project.pipeline, "hourly", project.settings)
    return {"keyed": keyed, "final": final, "alerts": alerts}[step]


def break_one_row(spark: SparkSession, location: str, how: Break) -> None:
    """Breaks the first row, in the order of all columns, of those that the condition finds."""
    table = DeltaTable.forPath(spark, location)
    rows = table.toDF()
    one = rows.where(how.where).orderBy(*rows.columns).limit(1)
    if how.do == "twice":
        one.write.format("delta").mode("append").save(location)
        return
    (found,) = one.collect()
    same = " AND ".join(
        f"`{name}` <=> {_literal(one.select(name))}" for name in rows.columns if name in found
    )
    if how.do == "delete":
        table.delete(same)
    else:
        assert isinstance(how.do, dict)
        table.update(same, {name: F.expr(sql) for name, sql in how.do.items()})


def _literal(one_value: DataFrame) -> str:
    (name,) = one_value.columns
    kind = one_value.schema[name].dataType.simpleString()
    value = one_value.select(F.col(name).cast("string")).collect()[0][0]
    quoted = "NULL" if value is None else "'" + value.replace("'", r"\'") + "'"
    return f"CAST({quoted} AS {kind})"


@pytest.mark.parametrize("how", BREAKS, ids=lambda how: f"{how.fails}-{how.do!s:.25}")
def test_each_check_finds_a_broken_row(full_run: Project, spark: SparkSession, how: Break) -> None:
    tables = {**vars(full_run.source), **vars(full_run.windows)}
    table = tables[how.table]
    version = table.version(spark)
    break_one_row(spark, table.location, how)
    try:
        results = check_published(job_of(full_run, how.step), spark, ALL_DAYS)
    finally:
        DeltaTable.forPath(spark, table.location).restoreToVersion(version)
    failed = {result.check.name: result for result in results if not result.passed}
    assert how.fails in failed
    # The sample is bounded and shows rows.
    assert 1 <= len(failed[how.fails].sample) <= 10


@pytest.mark.parametrize("step", ["raw", "keyed", "final", "alerts"])
def test_sound_tables_pass(full_run: Project, spark: SparkSession, step: str) -> None:
    results = check_published(job_of(full_run, step), spark, ALL_DAYS)
    assert results
    assert [result.check.name for result in results if not result.passed] == []


def test_an_empty_window_not_asked_for_fails(full_run: Project, spark: SparkSession) -> None:
    job = job_of(full_run, "keyed")
    rows = [table.read(spark) for table in job.tables]
    evidence = job.evidence(spark, ALL_DAYS, rows)[0]
    windows = full_run.pipeline.windows["hourly"].model_copy(update={"emit_empty": False})
    (check,) = [c for c in window_checks(windows) if c.name == "no_empty_window"]
    (result,) = validate(Batch("empty", evidence.evidence, evidence.rows, [check]))
    assert result.failing_rows == rows[1].where("record_count = 0").count() > 0


def test_changed_history_is_not_published(
    full_run: Project, tmp_path: Path, spark: SparkSession
) -> None:
    project = full_run.with_raw_of(full_run, tmp_path / "changed")
    assert project.run(1, 2, *DERIVED).success
    final, alerts = project.rows(spark, "final_windows"), project.rows(spark, "alerts")
    raw = DeltaTable.forPath(spark, project.source.raw_events.location)
    raw.update(f"unit = DATE'{day(2)}' AND offset = 100", {"dep_delay": F.expr("dep_delay + 500")})
    result = project.run(1, 2, *DERIVED)
    assert not result.success
    assert failed_checks(result) == {"final_never_changed"}
    assert project.rows(spark, "final_windows") == final
    assert project.rows(spark, "alerts") == alerts


def test_what_fails_a_blocking_check_is_not_published(
    full_run: Project, tmp_path: Path, spark: SparkSession
) -> None:
    project = full_run.with_raw_of(full_run, tmp_path / "broken")
    rejected = DeltaTable.forPath(spark, project.source.rejected_records.location)
    rejected.delete(f"unit = DATE'{day(1)}'")
    result = project.run(1, 1, *DERIVED)
    assert not result.success
    assert failed_checks(result) == {"every_record_accounted_for"}
    assert project.windows.keyed_windows.read(spark).count() == 0
    assert not project.windows.final_windows.exists(spark)


def test_checks_are_unique_in_each_pipeline_table() -> None:
    pipeline = load_pipeline(Path(__file__).parent.parent / "pipelines" / "flights.yaml")
    names = [check.name for check in window_checks(pipeline.windows["hourly"])]
    assert len(names) == len(set(names))
