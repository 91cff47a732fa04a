"""Only listed corrections change published results (rules E1, H1)."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from delta.tables import DeltaTable
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from definitions import build_definitions
from tests.support.command_line import call
from tests.support.pipelines import DAYS, LONGER_GRACE, Project, day, write_unchecked
from tests.support.small_ranges import SMALL_RANGES, noted_ranges
from windows_pipeline.incremental.alerts import standing
from windows_pipeline.jobs import Job, RawEventsJob, check_published, run_job
from windows_pipeline.jobs.correction.run import correct, correction_jobs
from windows_pipeline.jobs.correction_marker import (
    Correction,
    CorrectionUnfinishedError,
    mark_begun,
    unfinished_correction,
)
from windows_pipeline.jobs.days.chain import window_jobs
from windows_pipeline.jobs.final_windows import FinalWindowsJob
from windows_pipeline.jobs.keyed_windows import KeyedWindowsJob
from windows_pipeline.storage.table import Table
from windows_pipeline.storage.tables import tables_of

ALL_DAYS = [day(number) for number in range(1, DAYS + 1)]
WINDOW = ("arrival_unit", "key", "window_start", "window_end")
HISTORY = ("correction", "retracted_by")
CAUSE = "day 2 of the source's reader was landed again; it's \"mended\""

Rows = dict[tuple[Any, ...], tuple[Any, ...]]


def by_window(rows: DataFrame) -> Rows:
    """The values of each final window, as text that distinguishes bits."""
    values = [name for name in rows.columns if name not in WINDOW]
    found = rows.collect()
    found_by_window = {
        tuple(row[name] for name in WINDOW): tuple(repr(row[name]) for name in values)
        for row in found
    }
    assert len(found_by_window) == len(found)
    return found_by_window


def sorted_rows(rows: DataFrame) -> list[tuple[str, ...]]:
    return sorted(tuple(repr(value) for value in row) for row in rows.collect())


def values_of(struct: Row | None) -> tuple[str, ...] | None:
    return None if struct is None else tuple(repr(value) for value in struct)


def listed(spark: SparkSession, project: Project, number: int) -> dict[tuple[Any, ...], Any]:
    """The rows of a correction in the table `corrections`, by window."""
    rows = project.windows.corrections.read(spark).where(F.col("correction") == number).collect()
    found = {
        tuple(row[name] for name in WINDOW): (row.change, values_of(row.old), values_of(row.new))
        for row in rows
    }
    assert len(found) == len(rows)
    return found


def what_differs(before: Rows, after: Rows) -> dict[tuple[Any, ...], Any]:
    """The expected rows, compared in Python from the state before and after."""
    found = {}
    for window_key in before.keys() | after.keys():
        old, new = before.get(window_key), after.get(window_key)
        if old != new:
            what = "added" if old is None else "retracted" if new is None else "changed"
            found[window_key] = (what, old, new)
    return found


def from_the_start(project: Project, spark: SparkSession, folder: Path) -> Project:
    """A fresh project of the same raw records and definition."""
    fresh = project.copy(folder, derived=False)
    fresh.compute_unchecked(spark)
    return fresh


def assert_same_results(project: Project, fresh: Project, spark: SparkSession) -> None:
    for name in ("keyed_windows", "late_records", "failed_windows", "final_windows", "episodes"):
        assert project.rows(name) == fresh.rows(name), name
    stand = standing(project.windows.alerts.read(spark)).drop(*HISTORY)
    assert sorted_rows(stand) == sorted_rows(fresh.windows.alerts.read(spark).drop(*HISTORY))


def feed(spark: SparkSession, table: Table, after_version: int) -> DataFrame:
    return (
        spark.read.format("delta")
        .option("readChangeFeed", "true")
        .option("startingVersion", after_version + 1)
        .load(table.location)
    )


def mend_day_2(project: Project) -> None:
    """Rejected records get their landing; flights of one hour are later, others are gone."""
    file = project.folder / "data" / "flights" / day(2).isoformat() / "flights.jsonl"
    corrected = []
    for line in file.read_text().splitlines():
        record = json.loads(line)
        if record["landed_at"] is None:
            hour = min(int(record["departed_at"][11:13]) + 1, 23)
            record["landed_at"] = f"{record['departed_at'][:11]}{hour:02}:59:00Z"
        if record["origin"] == "EWR" and "T15:" in record["departed_at"]:
            record["dep_delay"] += 300.0
        if record["origin"] == "LGA" and "T17:" in record["departed_at"]:
            continue
        corrected.append(json.dumps(record))
    file.write_text("\n".join(corrected) + "\n")


@pytest.fixture(scope="module")
def relanded(
    full_run: Project, tmp_path_factory: pytest.TempPathFactory, spark: SparkSession
) -> Project:
    """Everything is published; then day 2 was landed again with corrections, and ingested."""
    project = full_run.copy(tmp_path_factory.mktemp("mended"), derived=True)
    mend_day_2(project)
    # Sorted in ranges, as large files are; the other days' files were sorted by a task each (A1).
    with noted_ranges() as ranges:
        raw = RawEventsJob(project.source, project.settings, SMALL_RANGES)
        assert run_job(raw, spark, [day(2)]).published
    (range_count,) = ranges
    assert range_count > 1
    return project


def run_correction(project: Project, **config: str) -> dg.ExecuteInProcessResult:
    """A real Dagster run of the pipeline's correction job."""
    job = build_definitions(project.settings).resolve_job_def("flights_correction")
    with dg.DagsterInstance.ephemeral() as instance:
        return job.execute_in_process(
            instance=instance,
            run_config=config,
            raise_on_error=False,
        )


def test_a_mended_raw_day_becomes_a_correction(
    relanded: Project, tmp_path: Path, spark: SparkSession
) -> None:
    own = relanded.windows
    assert {row.arrival_unit for row in relanded.source.rejected_records.read(spark).collect()} == {
        day(1), day(3),
    }  # fmt: skip
    before = by_window(own.final_windows.read(spark))
    alerts_before = own.alerts.read(spark)
    raised_before = alerts_before.collect()
    versions = {table.name: table.version(spark) for table in (own.final_windows, own.alerts)}

    result = run_correction(relanded, **{"from": day(2).isoformat(), "cause": CAUSE})
    assert result.success

    # The same as a pipeline that had the corrected day from the start (rule H1).
    assert_same_results(relanded, from_the_start(relanded, spark, tmp_path / "again"), spark)
    after = by_window(own.final_windows.read(spark))
    expected = what_differs(before, after)
    assert {what for what, _, _ in expected.values()} == {"changed", "retracted", "added"}
    assert listed(spark, relanded, 1) == expected
    causes = own.corrections.read(spark).select("correction", "cause").distinct().collect()
    assert [tuple(row) for row in causes] == [(1, CAUSE)]

    # Alerts are retracted, never deleted (rules E1, E5).
    columns = [name for name in alerts_before.columns if name not in HISTORY]
    alerts = own.alerts.read(spark)
    unchanged = alerts.where("correction IS NULL")
    assert sorted_rows(unchanged.select(columns)) == sorted(
        tuple(repr(row[name]) for name in columns) for row in raised_before
    )
    gone = set(sorted_rows(alerts.where("retracted_by = 1").select(columns)))
    new = set(sorted_rows(alerts.where("correction = 1").select(columns)))
    stand = set(sorted_rows(standing(alerts).select(columns)))
    assert gone
    assert new
    assert not gone & stand
    assert new <= stand
    assert alerts.where("correction = retracted_by").isEmpty()

    # A reader of the change data feed sees each old and new row, and no other.
    final_feed = feed(spark, own.final_windows, versions[own.final_windows.name])
    of_type = {
        change: by_window(
            final_feed.where(F.col("_change_type") == change).drop(
                "_change_type", "_commit_version", "_commit_timestamp"
            )
        )
        for change in ("update_preimage", "update_postimage", "delete", "insert")
    }
    assert of_type["update_preimage"] | of_type["delete"] == {
        window_key: old for window_key, (_, old, _) in expected.items() if old
    }
    assert of_type["update_postimage"] | of_type["insert"] == {
        window_key: new for window_key, (_, _, new) in expected.items() if new
    }
    alerts_feed = feed(spark, own.alerts, versions[own.alerts.name])
    changes = {row["_change_type"]: row["count"] for row in counts(alerts_feed, "_change_type")}
    assert changes == {
        "update_preimage": len(gone), "update_postimage": len(gone), "insert": len(new),
    }  # fmt: skip

    # Dagster shows number, cause and counts with each day that was corrected.
    made = [
        event.step_materialization_data.materialization
        for event in result.all_events
        if event.is_step_materialization
    ]
    of_table = [one for one in made if one.asset_key.path[-1] == "corrections"]
    assert {one.partition for one in of_table} == {
        arrival_unit.isoformat() for arrival_unit, *_ in expected
    }
    assert {one.metadata["cause"].value for one in of_table} == {CAUSE}
    shown = sum(
        int(str(one.metadata[f"windows_{what}"].value))
        for one in of_table
        for what in ("changed", "retracted", "added", "moved_here", "moved_away")
        if f"windows_{what}" in one.metadata
    )
    assert shown == len(expected)

    # Corrected windows pass every check; windows that are changed without a correction fail.
    _, final, alerts_job = window_jobs(relanded.source, "hourly", relanded.settings)
    assert failed(alerts_job, spark) == set()
    corrected = next(
        window_key for window_key, (what, _, _) in expected.items() if what == "changed"
    )
    delta = DeltaTable.forPath(spark, own.final_windows.location)
    version = own.final_windows.version(spark)
    delta.update(
        (F.col("key") == corrected[1]) & (F.col("window_end") == F.lit(corrected[3])),
        {"avg_dep_delay": F.lit(0.5)},
    )
    found = failed(final, spark)
    delta.restoreToVersion(version)
    assert found == {"final_is_closed", "final_never_changed"}


def failed(job: Job, spark: SparkSession) -> set[str]:
    results = check_published(job, spark, ALL_DAYS)
    return {result.check.name for result in results if not result.passed}


def counts(rows: DataFrame, column: str) -> list[Row]:
    return rows.groupBy(column).count().collect()


@pytest.mark.long
def test_a_raised_grace_counts_late_records_and_a_killed_correction_goes_on(
    full_run: Project,
    longer_grace: Project,
    tmp_path: Path,
    spark: SparkSession,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    project = full_run.copy(tmp_path / "grace", derived=True)
    project.declare(grace=LONGER_GRACE)
    of_pipeline = tables_of(project.pipeline, project.settings.warehouse, grace_may_differ=True)
    own = of_pipeline.of("hourly")
    before = by_window(own.final_windows.read(spark))
    late_before = own.late_records.read(spark).count()
    versions = (own.final_windows.version(spark), own.alerts.version(spark))
    correction = Correction(1, day(1), day(3), CAUSE, *versions)
    keyed, final, _ = correction_jobs(of_pipeline, "hourly", project.settings, correction)
    assert isinstance(final, FinalWindowsJob)

    # Killed before final_windows; then between corrections and final_windows; then after both.
    mark_begun(spark, own.corrections, correction)
    write_unchecked(keyed, spark, ALL_DAYS)
    assert by_window(own.final_windows.read(spark)) == before
    stage = final.stage(spark, ALL_DAYS, final.arrived(spark))
    final.list_corrections(stage.tables["corrections"])
    assert by_window(own.final_windows.read(spark)) == before
    expected = listed(spark, project, 1)
    assert expected
    assert unfinished_correction(spark, own.corrections) == correction
    ordinary = KeyedWindowsJob(
        tables_of(full_run.pipeline, project.settings.warehouse), "hourly", project.settings
    )
    with pytest.raises(CorrectionUnfinishedError) as refused:
        run_job(ordinary, spark, [day(1)])
    assert "correct flights --windows hourly --from 2013-01-01 --to 2013-01-03" in str(
        refused.value
    )
    final.change_final_windows(spark, ALL_DAYS, stage.tables["final_windows"])
    version = own.final_windows.version(spark)

    # Another correction is refused; the same correction resumes, and reports what it did.
    with pytest.raises(CorrectionUnfinishedError):
        correct(
            spark,
            tables_of(project.pipeline, project.settings.warehouse, grace_may_differ=True),
            "hourly",
            project.settings,
            day(1),
            None,
            "another",
        )
    project.write_settings()
    monkeypatch.chdir(project.folder)
    status, said = call(
        capfd, monkeypatch, "correct", "flights", "--from", "2013-01-01", "--cause", CAUSE
    )
    assert status == 0, said
    assert "as the grace was changed" in said
    assert "correction 1 is published" in said

    assert own.final_windows.version(spark) <= version + 1  # only the definition was set
    assert listed(spark, project, 1) == expected
    assert expected == what_differs(before, by_window(own.final_windows.read(spark)))
    assert unfinished_correction(spark, own.corrections) is None
    assert own.late_records.read(spark).count() < late_before
    assert_same_results(project, longer_grace, spark)
    # The tables follow the new grace, and the same command finds nothing to correct.
    for table in project.windows.written:
        table.require(spark)


@pytest.mark.parametrize(
    ("first", "last", "cause", "said"),
    [
        (
            day(2),
            day(1),
            CAUSE,
            "from 2013-01-02 to 2013-01-01: flights/hourly/final_windows must have",
        ),
        (day(2), day(9), CAUSE, "published days from 2013-01-01 to 2013-01-03"),
        (date(2012, 12, 31), None, CAUSE, "from 2012-12-31"),
        (day(2), None, " ", "cause: must say why"),
    ],
)
def test_a_correction_that_is_impossible_is_refused_before_it_begins(
    full_run: Project, spark: SparkSession, first: date, last: date | None, cause: str, said: str
) -> None:
    with pytest.raises(ValueError, match=said):
        correct(
            spark,
            tables_of(full_run.pipeline, full_run.settings.warehouse, grace_may_differ=True),
            "hourly",
            full_run.settings,
            first,
            last,
            cause,
        )
    assert unfinished_correction(spark, full_run.windows.corrections) is None
