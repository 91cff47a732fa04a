"""A broken row fails the check that guards against it, and is never published."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import reduce
from operator import and_
from pathlib import Path
from typing import NamedTuple

import dagster as dg
import pytest
from delta.tables import DeltaTable
from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from tests.support.pipelines import DAYS, DERIVED, Project, day, failed_checks
from windows_pipeline.checks.run import SAMPLE_ROWS, validate
from windows_pipeline.checks.window_rules import window_checks
from windows_pipeline.config import load_pipeline
from windows_pipeline.jobs import Job, KeyedWindowsJob, RawEventsJob, check_published, run_job
from windows_pipeline.jobs.days.chain import window_jobs
from windows_pipeline.storage.table import Table
from windows_pipeline.storage.tables import tables_of
from windows_pipeline.text.instants import time_text

IDENTITY = (
    "arrival_unit",
    "file",
    "original",
    "offset",
    "rule",
    "key",
    "window_start",
    "window_end",
)
ALL_DAYS = [day(number) for number in range(1, DAYS + 1)]


class Break(NamedTuple):
    """How to break one row of a table.

    Attributes:
        step: The job that computes the table.
        table: The table.
        where: SQL: the rows that can be broken so.
        do: SQL by column, or `delete`.
        fails: The check that must find the broken row.
        keeps_sound: Whether the sound row stays in the table, too.
        also: Another check that must find the broken row; no other check may.
    """

    step: str
    table: str
    where: str
    do: dict[str, str] | str
    fails: str
    keeps_sound: bool = False
    also: str | None = None


# Both bounds, so that the window keeps its length.
SHIFTED = {
    name: f"{name} + INTERVAL 1 MILLISECOND" for name in ("window_start", "window_end")
}  # fmt: skip
BREAKS = [
    Break("raw", "raw_events", "offset = 5", "delete", "offsets_without_gap"),
    Break(
        "raw", "raw_events", "offset = 5",
        {"running_max": "running_max + INTERVAL 1 SECOND"}, "running_max_is_stream_time",
    ),
    # In an arrival unit without another broken row.
    Break(
        "raw", "rejected_records", f"arrival_unit = DATE'{day(3)}'", "delete",
        "landed_is_accepted_or_rejected",
    ),
    Break(
        "keyed", "keyed_windows", "record_count > 2",
        {"last_event_time": "window_end + INTERVAL 1 MILLISECOND"}, "bounds_inclusive",
        also="holds_its_records",
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
    Break(
        "keyed", "keyed_windows", "last_event_time < window_end AND record_count > 2",
        SHIFTED, "bounds_inclusive",
    ),
    Break("keyed", "keyed_windows", "closed", {}, "one_window_per_record_set", keeps_sound=True),
    Break(
        # No partly late record is near, so no other window holds the same records (rule B4).
        "keyed", "keyed_windows", "key = 'JFK' AND window_end = '2013-01-02 05:10:00.001'",
        SHIFTED, "one_window_per_record_set", keeps_sound=True, also="bounds_inclusive",
    ),
    Break(
        "keyed", "keyed_windows", "record_count > 2 AND NOT closed",
        {"record_count": "0"}, "empty_windows_are_silences", also="holds_its_records",
    ),
    Break(
        "keyed", "late_records", "arrival_unit = record_arrival_unit", "delete",
        "every_record_accounted_for",
    ),
    Break(
        "final", "final_windows", "record_count > 2",
        {"record_count": "record_count + 1"}, "final_is_closed",
    ),
    Break(
        "final", "final_windows", "record_count > 2",
        {"window_end": "window_end + INTERVAL 3 DAYS"}, "final_is_closed",
    ),
    Break("final", "final_windows", "true", "delete", "final_is_closed"),
    Break("final", "final_windows", "true", {}, "final_once", keeps_sound=True),
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
        return RawEventsJob(project.source, project.settings)
    keyed, final, alerts = window_jobs(project.source, "hourly", project.settings)
    return {"keyed": keyed, "final": final, "alerts": alerts}[step]


def rows_to_break(spark: SparkSession, table: Table, breaks: list[Break]) -> list[Row]:
    """A row for each break, far apart, so that no fault disturbs the check of another."""
    rows = table.read(spark)
    fits = {f"fits_{index}": F.expr(how.where) for index, how in enumerate(breaks)}
    in_order = rows.withColumns(fits).orderBy(*rows.columns).collect()
    found = []
    for index, name in enumerate(fits):
        fitting = [row for row in in_order if row[name]]
        found.append(fitting[(index * len(fitting)) // len(breaks)])
    return found


def broken(rows: DataFrame, picked: Sequence[tuple[Row, Break]]) -> DataFrame:
    """The rows of a table, with the picked rows broken."""
    sound = rows
    for row, how in picked:
        names = [name for name in IDENTITY if name in row]
        same = reduce(and_, (F.col(name).eqNullSafe(F.lit(row[name])) for name in names))
        if not isinstance(how.do, dict):
            rows = rows.where(~same)
            continue
        changed = {name: F.expr(sql) for name, sql in how.do.items()}
        if how.keeps_sound:
            rows = rows.unionByName(sound.where(same).withColumns(changed))
        else:
            rows = rows.withColumns(
                {name: F.when(same, new).otherwise(F.col(name)) for name, new in changed.items()}
            )
    return rows


def in_utc(collected: datetime) -> datetime:
    """A collected timestamp, which is one of this machine's zone, as samples show it."""
    return collected.astimezone(UTC).replace(tzinfo=None)


def shows(sample: list[dict[str, str]], row: Row) -> bool:
    """Whether a sample shows the broken row; for rows that are no windows, its arrival unit."""
    if "window_start" not in row:
        return any(shown.get("arrival_unit") == str(row["arrival_unit"]) for shown in sample)
    assert not any(name.startswith("_") for shown in sample for name in shown)
    return any(
        shown["key"] == row["key"]
        and abs(datetime.fromisoformat(shown["window_start"]) - in_utc(row["window_start"]))
        <= timedelta(milliseconds=1)
        for shown in sample
        if "window_start" in shown
    )


@pytest.mark.parametrize(
    ("step", "made"),
    [
        *((step, "full_run") for step in ("raw", "keyed", "final", "alerts")),
        *((step, "full_stream") for step in ("raw", "keyed")),
    ],
)
def test_each_check_finds_its_broken_row(
    request: pytest.FixtureRequest, tmp_path: Path, spark: SparkSession, step: str, made: str
) -> None:
    """By days; in a stream those of the steps that read its arrival log otherwise."""
    whole: Project = request.getfixturevalue(made)
    project = whole.copy(tmp_path / "broken", derived=True)
    tables = project.tables_by_name
    breaks = [how for how in BREAKS if how.step == step]
    rows: dict[int, Row] = {}
    for name in dict.fromkeys(how.table for how in breaks):
        of_table = [how for how in breaks if how.table == name]
        picked = rows_to_break(spark, tables[name], of_table)
        rows |= dict(zip(map(id, of_table), picked, strict=True))
        changed = broken(tables[name].read(spark), list(zip(picked, of_table, strict=True)))
        tables[name].publish(changed, ALL_DAYS, changed.count())
    results = check_published(job_of(project, step), spark, ALL_DAYS)
    for result in results:
        # The sample is complete.
        assert result.failing_rows == len(result.sample) <= SAMPLE_ROWS
    for how in breaks:
        finding = {result.check.name for result in results if shows(result.sample, rows[id(how)])}
        assert finding == {how.fails, how.also} - {None}, how


def what_fails(
    result: dg.ExecuteInProcessResult, name: str
) -> tuple[object, list[Mapping[str, object]]]:
    """The number of failing rows and the sample of the only rule that failed in a run."""
    assert failed_checks(result) == {name}
    evaluation = next(
        found
        for found in result.get_asset_check_evaluations()
        if found.check_name == "rules" and not found.passed and found.partition
    )
    sample = evaluation.metadata[f"{name}_sample"]
    assert isinstance(sample, dg.TableMetadataValue)
    failing = evaluation.metadata[f"{name}_failing_rows"].value
    return failing, [row.data for row in sample.records]


def test_an_empty_window_fails_without_emit_empty(full_run: Project, spark: SparkSession) -> None:
    windows = full_run.pipeline.windows["hourly"].model_copy(update={"emit_empty": False})
    pipeline = full_run.pipeline.model_copy(update={"windows": {"hourly": windows}})
    job = KeyedWindowsJob(
        tables_of(pipeline, full_run.settings.warehouse), "hourly", full_run.settings
    )
    rows = {table.short_name: table.read(spark) for table in job.tables}
    batch = job.check_batches(spark, ALL_DAYS, rows, job.arrived(spark))[0]
    result = {result.check.name: result for result in validate([batch])}["no_empty_window"]
    assert result.failing_rows == rows["keyed_windows"].where("record_count = 0").count() > 0


def test_changed_history_is_not_published(
    full_run: Project, tmp_path: Path, spark: SparkSession
) -> None:
    project = full_run.copy(tmp_path / "changed", derived=True)
    final, alerts = project.rows("final_windows"), project.rows("alerts")
    raw = DeltaTable.forPath(spark, project.source.raw_events.location)
    is_changed = f"arrival_unit = DATE'{day(2)}' AND offset = 100"
    raw.update(is_changed, {"dep_delay": F.expr("dep_delay + 500")})
    result = project.run(1, 2, *DERIVED)
    assert not result.success
    failing, sample = what_fails(result, "final_never_changed")
    # Each final window that holds the record fails twice: as published, and as it is now (B2).
    record = project.source.raw_events.read(spark).where(is_changed).alias("record")
    windows = project.windows.final_windows.read(spark).where(F.col("arrival_unit") <= day(2))
    holding = windows.alias("window").join(
        record, F.expr("window.key = record.key AND event_time BETWEEN window_start AND window_end")
    )
    ends = {time_text(row.window_end) for row in holding.select("window_end").collect()}
    assert failing == 2 * len(ends) > SAMPLE_ROWS
    assert len(sample) == min(len(ends), SAMPLE_ROWS)
    assert all(" -> " in str(row["avg_dep_delay"]) for row in sample)
    assert {str(row["window_end"]) for row in sample} <= ends
    (failure,) = (event for event in result.all_events if event.is_step_failure)
    said = str(failure.step_failure_data.error)
    assert f"windows-pipeline correct flights --from {day(2)} --cause TEXT" in said
    assert "DAY" not in said
    assert project.rows("final_windows") == final
    assert project.rows("alerts") == alerts


def test_changed_alerts_do_not_replace_published_ones(
    full_run: Project, tmp_path: Path, spark: SparkSession
) -> None:
    project = full_run.copy(tmp_path / "missing", derived=True)
    table = project.windows.alerts
    deleted, other = table.read(spark).orderBy("window_end", "rule", "key").head(2)
    stored = DeltaTable.forPath(spark, table.location)
    stored.delete(is_alert(deleted))
    stored.update(is_alert(other), {"severity": F.expr("severity + 1")})
    left = project.rows("alerts")
    assert any(row[0] == repr(deleted.arrival_unit) for row in left)
    result = run_job(job_of(project, "alerts"), spark, ALL_DAYS)
    assert not result.published
    [failed] = [found for found in result.checks if not found.passed]
    assert failed.check.name == "alerts_never_changed"
    shown = {row["change"]: row for row in failed.sample}
    assert len(failed.sample) == len(shown) == 2
    assert shown["added"]["window_end"] == time_text(deleted.window_end)
    assert shown["changed"]["severity"] == f"{other.severity + 1} -> {other.severity}"
    assert project.rows("alerts") == left


def is_alert(row: Row) -> Column:
    """Whether a row of alerts is the one that was read."""
    key = ("key", "window_end", "rule")
    return reduce(and_, (F.col(name).eqNullSafe(F.lit(row[name])) for name in key))


def test_rows_that_fail_a_blocking_check_are_not_published(
    full_run: Project, tmp_path: Path, spark: SparkSession
) -> None:
    project = full_run.copy(tmp_path / "broken", derived=False)
    rejected = DeltaTable.forPath(spark, project.source.rejected_records.location)
    rejected.delete(f"arrival_unit = DATE'{day(1)}'")
    result = project.run(1, 1, *DERIVED)
    assert not result.success
    failing, (shown,) = what_fails(result, "every_record_accounted_for")
    assert (failing, shown["arrival_unit"]) == (1, str(day(1)))
    landed = project.folder / "data" / "flights" / str(day(1)) / "flights.jsonl"
    lines = landed.read_text().splitlines()
    assert int(str(shown["ingested"])) == len(lines)
    where = ("counted", "pending", "late", "rejected")
    diverted = [line for line in lines if json.loads(line)["landed_at"] is None]
    assert sum(int(str(shown[name])) for name in where) == len(lines) - len(diverted)
    assert diverted
    assert project.windows.keyed_windows.read(spark).count() == 0
    assert not project.windows.final_windows.exists(spark)


def test_checks_are_unique_in_each_pipeline_table() -> None:
    pipeline = load_pipeline(Path(__file__).parents[2] / "pipelines" / "flights.yaml")
    names = [check.name for check in window_checks(pipeline.windows["hourly"])]
    assert len(names) == len(set(names))
