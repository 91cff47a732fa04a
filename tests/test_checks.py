"""A broken table fails the check that is there for it, and readers never see it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import and_
from pathlib import Path
from typing import NamedTuple

import pytest
from delta.tables import DeltaTable
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from pipeline_runs import DAYS, DERIVED, Project, day, failed_checks
from windows_pipeline.config import load_pipeline
from windows_pipeline.jobs import Job, KeyedWindowsJob, RawEventsJob, check_published, run_job
from windows_pipeline.jobs.chain import window_jobs
from windows_pipeline.quality.invariants import final_windows_checks
from windows_pipeline.quality.validation import SAMPLE_ROWS, validate
from windows_pipeline.quality.window_checks import window_checks
from windows_pipeline.tables.delta import Table

IDENTITY = ("unit", "file", "original", "offset", "rule", "key", "window_start", "window_end")
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
        "keyed", "keyed_windows", "record_count > 2 AND NOT closed",
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


def rows_to_break(spark: SparkSession, table: Table, breaks: list[Break]) -> list[Row]:
    """A row of its own for each break, far apart, so that each is the only fault around."""
    found = []
    rows = table.read(spark)
    for place, how in enumerate(breaks):
        fitting = rows.where(how.where).orderBy(*rows.columns).collect()
        found.append(fitting[(place * len(fitting)) // len(breaks)])
    return found


def broken(rows: DataFrame, picked: Sequence[tuple[Row, Break]]) -> DataFrame:
    """The rows of a table with each of some broken."""
    sound = rows
    for row, how in picked:
        names = [name for name in IDENTITY if name in row]
        same = reduce(and_, (F.col(name).eqNullSafe(F.lit(row[name])) for name in names))
        if how.do == "twice":
            rows = rows.unionByName(sound.where(same))
        elif how.do == "delete":
            rows = rows.where(~same)
        else:
            assert isinstance(how.do, dict)
            changed = {name: F.when(same, F.expr(sql)) for name, sql in how.do.items()}
            rows = rows.withColumns(
                {name: change.otherwise(F.col(name)) for name, change in changed.items()}
            )
    return rows


def shows(sample: list[dict[str, str]], row: Row) -> bool:
    """Whether a failing row is the broken one, or of its unit where the check is of units."""
    if "window_start" not in row or not any("window_start_ms" in shown for shown in sample):
        return any(shown["unit"] == str(row["unit"]) for shown in sample)
    start_ms = round(row["window_start"].timestamp() * 1000)
    return any(
        shown["key"] == row["key"] and abs(int(shown["window_start_ms"]) - start_ms) <= 1
        for shown in sample
    )


@pytest.mark.parametrize("step", ["raw", "keyed", "final", "alerts"])
def test_each_check_finds_its_broken_row(
    full_run: Project, tmp_path: Path, spark: SparkSession, step: str
) -> None:
    project = full_run.copy(tmp_path / "broken", derived=True)
    tables = {**vars(project.source), **vars(project.windows)}
    breaks = [how for how in BREAKS if how.step == step]
    rows: dict[int, Row] = {}
    for name in dict.fromkeys(how.table for how in breaks):
        of_table = [how for how in breaks if how.table == name]
        picked = rows_to_break(spark, tables[name], of_table)
        rows |= dict(zip(map(id, of_table), picked, strict=True))
        changed = broken(tables[name].read(spark), list(zip(picked, of_table, strict=True)))
        tables[name].publish(changed, ALL_DAYS, changed.count())
    results = check_published(job_of(project, step), spark, ALL_DAYS)
    found = {result.check.name: result for result in results}
    for how in breaks:
        result = found[how.fails]
        assert not result.passed, how
        assert len(result.sample) <= SAMPLE_ROWS
        assert shows(result.sample, rows[id(how)]), (how, result.sample)


def test_an_empty_window_not_asked_for_fails(full_run: Project, spark: SparkSession) -> None:
    windows = full_run.pipeline.windows["hourly"].model_copy(update={"emit_empty": False})
    pipeline = full_run.pipeline.model_copy(update={"windows": {"hourly": windows}})
    job = KeyedWindowsJob(pipeline, "hourly", full_run.settings)
    rows = [table.read(spark) for table in job.tables]
    batch = job.evidence(spark, ALL_DAYS, rows, job.arrived(spark))[0]
    result = {result.check.name: result for result in validate(batch)}["no_empty_window"]
    assert result.failing_rows == rows[0].where("record_count = 0").count() > 0


def test_changed_history_is_not_published(
    full_run: Project, tmp_path: Path, spark: SparkSession
) -> None:
    project = full_run.copy(tmp_path / "changed", derived=True)
    final, alerts = project.rows("final_windows"), project.rows("alerts")
    raw = DeltaTable.forPath(spark, project.source.raw_events.location)
    raw.update(f"unit = DATE'{day(2)}' AND offset = 100", {"dep_delay": F.expr("dep_delay + 500")})
    result = project.run(1, 2, *DERIVED)
    assert not result.success
    assert failed_checks(result) == {"final_never_changed"}
    checks = final_windows_checks(project.pipeline.windows["hourly"])
    (check,) = (one for one in checks if one.name == "final_never_changed")
    assert "windows-pipeline correct" in check.description
    assert project.rows("final_windows") == final
    assert project.rows("alerts") == alerts


def test_published_alerts_that_would_change_are_not_written_over(
    full_run: Project, tmp_path: Path, spark: SparkSession
) -> None:
    project = full_run.copy(tmp_path / "missing", derived=True)
    table = project.windows.alerts
    one = table.read(spark).orderBy("window_end", "rule", "key").first()
    assert one is not None
    same = (F.col("key") == one.key) & (F.col("window_end") == one.window_end)
    DeltaTable.forPath(spark, table.location).delete(same & (F.col("rule") == one.rule))
    left = project.rows("alerts")
    assert any(row[0] == repr(one.unit) for row in left)
    result = run_job(job_of(project, "alerts"), spark, ALL_DAYS)
    assert not result.published
    assert [found.check.name for found in result.checks if not found.passed] == [
        "alerts_never_changed"
    ]
    assert project.rows("alerts") == left


def test_what_fails_a_blocking_check_is_not_published(
    full_run: Project, tmp_path: Path, spark: SparkSession
) -> None:
    project = full_run.copy(tmp_path / "broken", derived=False)
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
