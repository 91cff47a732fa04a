"""A stream ends in the rows of a run by days, however it is cut and killed (rule H1)."""

from __future__ import annotations

import json
import os
import shutil
import time
from bisect import bisect_right
from copy import deepcopy
from datetime import UTC, datetime
from pathlib import Path
from typing import ClassVar

import dagster as dg
import pytest
import yaml
from deltalake import DeltaTable
from pyspark.errors import StreamingQueryException
from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as F

from definitions import build_definitions
from tests.support.pipelines import DAYS, SHORT_GRACE, Project, day, failed_checks
from tests.support.small_ranges import SMALL_RANGES, noted_ranges
from tests.support.stored_rows import stored_rows
from tests.support.streams import (
    HOPS,
    SLIDING,
    KilledError,
    add_rows,
    as_json,
    declared_pipeline,
    rows_of,
    run_until_killed,
)
from windows_pipeline.arrival.log import read_log
from windows_pipeline.config import Pipeline
from windows_pipeline.faults.explain import explained
from windows_pipeline.jobs import Job, RawEventsJob, check_published
from windows_pipeline.jobs.days.chain import rebuild, window_jobs
from windows_pipeline.jobs.job import run_job
from windows_pipeline.jobs.raw_events import FedByStreamError
from windows_pipeline.jobs.unfinished_batch import BatchUnfinishedError
from windows_pipeline.settings import Settings
from windows_pipeline.sources.tuning import IngestTuning
from windows_pipeline.storage.table import Table
from windows_pipeline.storage.tables import tables_of
from windows_pipeline.streaming import (
    BatchResult,
    StreamBehindError,
    prepared_stream,
    run_stream,
)

PIECES = 2
SAME = ("late_records", "final_windows", "alerts")
KILLS = [("arrival_log", "after"), ("early_warnings", "before")]
FIRING = {
    "kind": "hopping",
    "size": "1 hour",
    "advance": "30 minutes",
    "grace": SHORT_GRACE,
    "trigger": {"early_every": "15 minutes"},
    "aggregates": {"mean": "avg(dep_delay)"},
    "alerts": {"busy": {"when": "record_count >= 12", "severity": "record_count"}},
}
"""Windows that fire before they close."""


def landed_at(line: str) -> str:
    return json.loads(line).get("landed_at") or ""


def cut(lines: list[str], piece: int) -> list[str]:
    """A piece of lines; lines of the same arrival time are in the same piece."""
    size = -(-len(lines) // PIECES)
    bounds = [landed_at(lines[index * size]) for index in range(1, PIECES)]
    return [line for line in lines if bisect_right(bounds, landed_at(line)) == piece]


def land_in_pieces(project: Project, flights: Path) -> None:
    """Lands each day's lines in pieces, by time of arrival."""
    written_at = 1_000_000_000
    for number in range(1, DAYS + 1):
        folder = flights / day(number).isoformat()
        lines = [line for file in folder.iterdir() for line in file.read_text().splitlines()]
        lines.sort(key=landed_at)
        target = project.folder / "data" / "flights" / folder.name
        target.mkdir(parents=True)
        for piece in range(PIECES):
            file = target / f"{piece}.jsonl"
            file.write_text("\n".join(cut(lines, piece)) + "\n")
            os.utime(file, (written_at, written_at))  # what was written first is read first
            written_at += 1


def test_a_stream_of_files_that_is_killed_between_tables_equals_a_run(
    full_run: Project,
    landed_flights: Path,
    spark: SparkSession,
    tmp_path: Path,
) -> None:
    """Rules A1, E1, E2, E4, E5, H1: three days of flights in two micro-batches.

    Each is sorted in ranges, as large files are, and checked in stretches.
    """
    project = Project(tmp_path, full_run.base)
    project.declare(grace=SHORT_GRACE, partial_results=False)
    file = project.folder / "pipelines" / "flights.yaml"
    declared = yaml.safe_load(file.read_text())
    declared["source"]["max_per_batch"] = 3
    declared["windows"]["firing"] = FIRING
    file.write_text(yaml.safe_dump(declared))
    land_in_pieces(project, landed_flights)
    results: list[BatchResult] = []

    def end(_result: BatchResult) -> None:
        raise KilledError

    of_pipeline = (spark, project.source, project.settings)
    with noted_ranges() as ranges:
        for table, when in KILLS:
            run_until_killed(
                *of_pipeline, table, when, on_batch=results.append, tuning=SMALL_RANGES
            )
            if table == "arrival_log":
                # A run by days would compute the windows that the micro-batch appends later.
                job = window_jobs(project.source, "hourly", project.settings)[0]
                with pytest.raises(BatchUnfinishedError, match="micro-batch 0 of its stream must"):
                    run_job(job, spark, [day(1)])
        # All tables have the micro-batch, and Spark has not noted so.
        with pytest.raises(KilledError):
            run_stream(*of_pipeline, on_batch=end, tuning=SMALL_RANGES)
        run_stream(*of_pipeline, on_batch=results.append, tuning=SMALL_RANGES)

    assert [(result.batch, result.arrival_units) for result in results] == [
        (0, [day(1), day(2)]),
        (1, [day(2), day(3)]),
    ]
    assert min(ranges) > 1
    for table in SAME:
        assert project.rows(table) == full_run.rows(table), table
    raw = [
        sorted(map(repr, stored_rows(run.source.raw_events, "batch")))
        for run in (project, full_run)
    ]
    assert raw[0] == raw[1]
    # The checks of these jobs cover the tables that were not compared with the full run's.
    hourly, *_ = window_jobs(project.source, "hourly", project.settings)
    *_, firing = window_jobs(project.source, "firing", project.settings)
    checked = IngestTuning(records_per_task=100, checked_rows_per_stretch=50)
    raw_events = RawEventsJob(project.source, project.settings, checked)
    jobs: list[Job] = [raw_events, hourly, firing]
    days = [day(number) for number in range(1, DAYS + 1)]
    failed = [
        found.check.name
        for job in jobs
        for found in check_published(job, spark, days)
        if not found.passed
    ]
    assert failed == []
    streamed = rows_of(firing)
    assert all(streamed)
    assert run_job(firing, spark, days).published
    assert rows_of(firing) == streamed
    # Without new files no micro-batch runs.
    results.clear()
    run_stream(*of_pipeline, on_batch=results.append)
    assert results == []


def run_in_dagster(own: Settings) -> dg.ExecuteInProcessResult:
    job = build_definitions(own).resolve_job_def("numbers_stream")
    with dg.DagsterInstance.ephemeral() as instance:
        return job.execute_in_process(instance=instance)


def assert_checked(own: Settings, ran: dg.ExecuteInProcessResult) -> None:
    """Requires that every check ran, and no day failed."""
    wanted = build_definitions(own).resolve_asset_graph().asset_check_keys
    found = ran.get_asset_check_evaluations()
    assert {one.asset_check_key for one in found if one.partition is None} == wanted
    assert all(one.passed for one in found)


def the_source_is_checked_in_dagster(own: Settings) -> None:
    """As by the button of its page, for days and without; only the stream writes the table."""
    check = dg.AssetCheckKey(dg.AssetKey(["numbers", "raw_events"]), "rules")
    every_asset = build_definitions(own).resolve_implicit_global_asset_job_def()
    job = every_asset.get_subset(asset_selection=set(), asset_check_selection={check})
    with dg.DagsterInstance.ephemeral() as instance:
        (every,) = job.execute_in_process(instance=instance).get_asset_check_evaluations()
        newest = str(every.description).split("; ")[1].partition(":")[0]
        of_newest = job.execute_in_process(
            instance=instance, partition_key=newest
        ).get_asset_check_evaluations()
    found = [(one.check_name, one.partition, one.passed) for one in (every, *of_newest)]
    assert found == [("rules", day, True) for day in (None, newest, None)]


def days_are_computed_again_in_dagster(
    spark: SparkSession, pipeline: Pipeline, own: Settings
) -> None:
    """Rule H1: the assets' own job, of a day that a stream brought, gives the same results."""
    before = final_rows(spark, pipeline, own)
    log = read_log(spark, tables_of(pipeline, own.warehouse).arrival_log)
    day = max(row.arrival_unit for row in log).isoformat()
    job = build_definitions(own).resolve_job_def("numbers_all")
    with dg.DagsterInstance.ephemeral() as instance:
        ran = job.execute_in_process(instance=instance, partition_key=day)
    assert ran.success
    made = {event.asset_key for event in ran.get_asset_materialization_events()}
    assert dg.AssetKey(["numbers", "sums", "final_windows"]) in made
    assert dg.AssetKey(["numbers", "raw_events"]) not in made
    assert failed_checks(ran) == set()
    assert final_rows(spark, pipeline, own) == before


def final_rows(spark: SparkSession, pipeline: Pipeline, own: Settings) -> list[Row]:
    """The final windows of all definitions, in order."""
    tables = (tables_of(pipeline, own.warehouse).of(name) for name in pipeline.windows)
    rows = (row for each in tables for row in each.final_windows.read(spark).collect())
    return sorted(rows, key=repr)


@pytest.mark.long
def test_a_delta_table_is_followed_and_a_lost_checkpoint_is_refused(
    spark: SparkSession, settings: Settings, tmp_path: Path
) -> None:
    source = {"format": "delta", "path": "table"}
    quiet = {**HOPS, "alerts": {}}
    # No record came for years.
    start = "2019-11-01"
    pipeline, own = declared_pipeline(tmp_path, settings, source, SLIDING, start, hops=quiet)
    first, second = [("a", 3, 1), ("a", 7, 2)], [("a", 30, 5), (None, 31, 0)]
    add_rows(tmp_path / "table", first)
    run_stream(spark, tables_of(pipeline, own.warehouse), own)
    add_rows(tmp_path / "table", second)
    # In Dagster, which runs every check.
    ran = run_in_dagster(own)
    assert_checked(own, ran)
    made = {
        "/".join(event.asset_key.path[1:]): event.step_materialization_data.materialization.metadata
        for event in ran.all_events
        if event.is_step_materialization and event.asset_key is not None
    }
    raw = made["raw_events"]
    assert "data:image/svg+xml" in str(raw["lateness"].value)
    for name in ("sums", "hops"):
        assert "data:image/svg+xml" in str(made[f"{name}/final_windows"]["records_a_window"].value)
        assert made[f"{name}/alerts"]["plot"].value
    counted = [raw[name].value for name in ("micro_batches", "accepted", "rejected")]
    assert counted == [1, 1, 1]
    tables = tables_of(pipeline, own.warehouse).of("sums")
    found = tables.keyed_windows.read(spark).select(
        "batch", F.unix_millis("window_end"), "total", "closed"
    )
    assert sorted(map(tuple, found.collect())) == [
        (0, 3, 1, True),
        (0, 7, 3, False),
        (0, 14, 2, False),
        (1, 7, 3, True),
        (1, 14, 2, True),
        (1, 30, 5, False),
    ]
    assert tables.final_windows.read(spark).count() == 3
    hop_firings = (
        window_jobs(tables_of(pipeline, own.warehouse), "hops", own)[-1].tables[0].read(spark)
    )
    on_time = hop_firings.where("reason = 'ON_TIME'").select(F.unix_millis("window_start"))
    assert sorted(row[0] for row in on_time.collect()) == [-5, 0, 5]
    (rejected,) = tables_of(pipeline, own.warehouse).rejected_records.read(spark).collect()
    assert rejected.reason == "null_key"
    assert json.loads(rejected.original) == {"k": None, "ms": 31, "whole": 0}

    # A run without new records passes all checks, too.
    assert_checked(own, run_in_dagster(own))
    days_are_computed_again_in_dagster(spark, pipeline, own)
    the_source_is_checked_in_dagster(own)

    DeltaTable(tmp_path / "table").delete("ms = 3")
    with pytest.raises(StreamingQueryException) as stopped:
        run_stream(spark, tables_of(pipeline, own.warehouse), own)
    assert "keeps its columns and its rows" in str(explained(stopped.value))

    # A rebuild that was stopped after it replaced a table.
    tables.alerts.set_properties(spark, {"windows_pipeline.rebuilding": "replaced"})
    with pytest.raises(StreamBehindError, match="sums/alerts lacks what came before"):
        run_stream(spark, tables_of(pipeline, own.warehouse), own)
    tables.alerts.mark_rebuilt(spark)

    (Path(own.warehouse) / "numbers" / "_stream").rename(tmp_path / "gone")
    with pytest.raises(
        StreamBehindError, match="holds no checkpoint of that stream; put the checkpoint back"
    ):
        run_stream(spark, tables_of(pipeline, own.warehouse), own)
    assert tables.final_windows.read(spark).count() == 3


@pytest.mark.long
def test_a_new_definition_is_filled_before_the_stream_goes_on(
    spark: SparkSession, settings: Settings, tmp_path: Path
) -> None:
    """Rules A5, H1: no record is silently in no window of it, nor in any table again."""
    source = {"format": "delta", "path": "table"}
    add_rows(tmp_path / "table", [("a", 3, 1), ("a", 30, 5)])
    pipeline, own = declared_pipeline(tmp_path, settings, source, SLIDING)
    run_stream(spark, tables_of(pipeline, own.warehouse), own)
    later = {**SLIDING, "time_difference": "27 ms", "aggregates": {"total": "sum(whole)"}}
    pipeline, own = declared_pipeline(tmp_path, settings, source, SLIDING, later=later)
    # Rows that are added later come later, within a micro-batch, too.
    add_rows(tmp_path / "table", [("a", 60, 2)])
    add_rows(tmp_path / "table", [("a", 40, 7)])
    for _ in range(2):
        with pytest.raises(StreamBehindError, match="numbers/later/keyed_windows lacks what came"):
            run_stream(spark, tables_of(pipeline, own.warehouse), own)
    filled = [
        name
        for name, result in rebuild(spark, tables_of(pipeline, own.warehouse), own)
        if result.published
    ]
    assert filled == [
        f"numbers/later/{step}" for step in ("keyed_windows", "final_windows", "alerts")
    ]
    # After a rebuild of all later steps, the stream waits for no table.
    assert all(
        result.published
        for _, result in rebuild(spark, tables_of(pipeline, own.warehouse), own, "final_windows")
    )
    run_stream(spark, tables_of(pipeline, own.warehouse), own)
    for name, ends in (("later", [3, 30, 31]), ("sums", [3, 30])):
        final = tables_of(pipeline, own.warehouse).of(name).final_windows.read(spark)
        assert sorted(row[0] for row in final.select(F.unix_millis("window_end")).collect()) == ends
    late = tables_of(pipeline, own.warehouse).of("sums").late_records.read(spark)
    assert [row[0] for row in late.select(F.unix_millis("event_time")).collect()] == [40]

    def rebuilding(_result: BatchResult) -> None:
        tables_of(pipeline, own.warehouse).of("sums").final_windows.mark_rebuilding(spark)
        add_rows(tmp_path / "table", [("a", 91, 2)])

    # If a rebuild begins while the stream runs, the next micro-batch is refused.
    add_rows(tmp_path / "table", [("a", 90, 2)])
    with pytest.raises(StreamBehindError, match="sums/final_windows lacks what came before"):
        run_stream(
            spark, tables_of(pipeline, own.warehouse), own, every="0 seconds", on_batch=rebuilding
        )

    # The rebuild was stopped before it replaced a table, so the micro-batch comes first.
    with pytest.raises(BatchUnfinishedError, match="micro-batch 3 "):
        next(rebuild(spark, tables_of(pipeline, own.warehouse), own))
    run_stream(spark, tables_of(pipeline, own.warehouse), own)
    a_rebuild_and_a_micro_batch_see_each_other(spark, pipeline, own)
    # No table is added while a micro-batch is unfinished.
    add_rows(tmp_path / "table", [("a", 140, 2)])
    run_until_killed(spark, tables_of(pipeline, own.warehouse), own, "raw_events", "after")
    newer, _ = declared_pipeline(
        tmp_path, settings, source, SLIDING, later=later, newer=deepcopy(later)
    )
    with pytest.raises(StreamBehindError, match=r"numbers/newer/\w+ is new, .* micro-batch 5 "):
        run_stream(spark, tables_of(newer, own.warehouse), own)
    run_stream(spark, tables_of(pipeline, own.warehouse), own)
    for table in tables_of(pipeline, own.warehouse).written:
        shutil.rmtree(table.location)
    add_rows(tmp_path / "table", [("a", 92, 2)])
    with pytest.raises(StreamBehindError, match="have no micro-batch, the checkpoint ends with 5"):
        run_stream(spark, tables_of(pipeline, own.warehouse), own)


def a_rebuild_and_a_micro_batch_see_each_other(
    spark: SparkSession, pipeline: Pipeline, own: Settings
) -> None:
    """Rules E1, H1: a micro-batch that a rebuild has refused comes after the rebuild."""
    stream = prepared_stream(
        spark, tables_of(pipeline, own.warehouse), own
    )  # before the rebuild begins

    def comes_meanwhile(said: str) -> None:
        if "later/final_windows" in said:
            add_rows(Path(own.landing) / "table", [("a", 130, 2)])
        with pytest.raises(StreamBehindError, match="lacks what came"):
            stream.run()

    assert all(
        result.published
        for _, result in rebuild(
            spark, tables_of(pipeline, own.warehouse), own, "final_windows", comes_meanwhile
        )
    )
    results: list[BatchResult] = []
    run_stream(spark, tables_of(pipeline, own.warehouse), own, on_batch=results.append)
    assert [(result.batch, result.accepted) for result in results] == [(4, 1)]


def land(folder: Path, file: str, *records: tuple[str, int, int], written_at: int) -> None:
    """Lands records in a file with a time of writing, in seconds since 1970."""
    path = folder / "data" / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{as_json(*record)}\n" for record in records))
    os.utime(path, (written_at, written_at))


def transactions(table: Table) -> list[tuple[str, int]]:
    """The application and version of each transaction in a table's Delta log."""
    log = sorted((Path(table.location) / "_delta_log").glob("*.json"))
    actions = (json.loads(line) for file in log for line in file.read_text().splitlines())
    return [(one["txn"]["appId"], one["txn"]["version"]) for one in actions if "txn" in one]


def checks_know_from_the_log_that_a_stream_fills_it(
    spark: SparkSession, pipeline: Pipeline, own: Settings
) -> None:
    """Rule A6: checks count no folder's records if the log has a stream, whatever the YAML says."""
    shutil.rmtree(Path(own.landing) / "data" / "2026-11-01")
    by_hand = pipeline.source.model_copy(update={"stream": False})
    job = RawEventsJob(
        tables_of(pipeline.model_copy(update={"source": by_hand}), own.warehouse), own
    )
    arrival_units = [datetime(2026, 11, number, tzinfo=UTC).date() for number in (1, 2, 3)]
    judged = check_published(job, spark, arrival_units)
    # No record has a value in column `later`.
    broken = [one for one in judged if not one.passed]
    assert {one.check.name for one in broken} == {"columns_have_values"}


class NotingSettings(Settings):
    """Settings that note for how many records a configuration was asked."""

    asked: ClassVar[list[int]] = []

    def conf_for(self, records: int) -> dict[str, str]:
        self.asked.append(records)
        return super().conf_for(records)


def test_landed_files_are_followed_and_no_day_is_ingested_by_a_run(
    spark: SparkSession, settings: Settings, tmp_path: Path
) -> None:
    """Rules A1, E1: in the order in which files were written, whatever their names and days."""
    source = {"format": "jsonl", "path": "data", "stream": True}
    # No column's name is reserved but those with the prefix.
    columns = {"k": "string", "ms": "bigint", "whole": "bigint", "later": "string"}
    pipeline, own = declared_pipeline(tmp_path, settings, {**source, "columns": columns}, SLIDING)
    noting = NotingSettings.model_validate(own.model_dump())
    NotingSettings.asked.clear()
    results: list[BatchResult] = []
    (tmp_path / "data").mkdir()
    assert run_in_dagster(own).success  # nothing is there yet
    now = 1_000_000_000
    land(tmp_path, "2026-11-02/a.jsonl", ("a", 3, 1), written_at=now)
    land(tmp_path, "2026-10-31/outside.jsonl", ("a", 5, 1), written_at=now)
    land(tmp_path, "2026-11-31/no_such_day.jsonl", ("a", 6, 1), written_at=now)
    land(tmp_path, "2026-11-32/no_such_day.jsonl", ("a", 6, 1), written_at=now)
    land(tmp_path, "incoming/no_day.jsonl", ("a", 6, 1), written_at=now)
    land(tmp_path, "2926-11-02/far_ahead.jsonl", ("a", 6, 1), written_at=now)
    land(tmp_path, "2026-11-02/hour=05/deeper.jsonl", ("a", 6, 1), written_at=now)
    land(tmp_path, "2026-11-02/x/2026-11-02/deeper.jsonl", ("a", 6, 1), written_at=now)
    run_stream(spark, tables_of(pipeline, noting.warehouse), noting, on_batch=results.append)
    # A copied file keeps its time, here older than a week, Spark's default for files to skip.
    land(tmp_path, "2026-11-01/b.jsonl", ("a", 9, 2), ("a", 30, 4), written_at=now - 8 * 86_400)
    run_stream(spark, tables_of(pipeline, noting.warehouse), noting, on_batch=results.append)
    assert [(one.batch, one.accepted, one.passed_over) for one in results] == [(0, 1, 7), (1, 2, 0)]
    # Spark's settings depend on all records that are read, those of earlier micro-batches too.
    assert noting.asked == [1, 3]
    # A file of a known name is not read again.
    land(tmp_path, "2026-11-02/a.jsonl", ("a", 4, 1), written_at=now + 1)
    run_stream(spark, tables_of(pipeline, own.warehouse), own, on_batch=results.append)
    assert len(results) == 2
    # Files of a micro-batch come in order of writing, also when clocks repeat an hour.
    summer = round(datetime(2025, 10, 26, 0, 30, tzinfo=UTC).timestamp())
    land(tmp_path, "2026-11-03/b.jsonl", ("a", 100, 1), written_at=summer)
    land(tmp_path, "2026-11-03/a.jsonl", ("a", 60, 1), written_at=summer + 2_400)
    land(tmp_path, "2026-11-02/b.jsonl", ("a", 120, 1), written_at=summer + 2_401)
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("TZ", "Europe/Berlin")
        time.tzset()
        run_stream(spark, tables_of(pipeline, own.warehouse), own, on_batch=results.append)
    time.tzset()
    tables = tables_of(pipeline, own.warehouse)
    raw = tables.raw_events.read(spark).select(
        F.dayofmonth("arrival_unit"), "offset", F.unix_millis("event_time"), "batch"
    )
    assert sorted(map(tuple, raw.collect())) == [
        (2, 0, 3, 0),
        (2, 1, 9, 1),
        (2, 2, 30, 1),
        (3, 0, 100, 2),
        (3, 1, 60, 2),
        (3, 2, 120, 2),
    ]
    late = tables_of(pipeline, own.warehouse).of("sums").late_records.read(spark)
    assert [row[0] for row in late.select(F.unix_millis("event_time")).collect()] == [60]

    # Each append stores its micro-batch's number in the Delta log.
    found = {one.name: transactions(one) for one in tables_of(pipeline, own.warehouse).written}
    assert {name: of for name, of in found.items() if of} == {
        name: [(name, batch) for batch in batches]
        for name, batches in {
            "numbers/raw_events": (0, 1, 2),
            "numbers/arrival_log": (0, 1, 2),
            "numbers/sums/late_records": (2,),
            "numbers/sums/keyed_windows": (0, 1, 2),
            "numbers/sums/final_windows": (1, 2),
        }.items()
    }

    checks_know_from_the_log_that_a_stream_fills_it(spark, pipeline, own)

    with pytest.raises(FedByStreamError, match="numbers: a stream fills its tables"):
        run_job(RawEventsJob(tables_of(pipeline, own.warehouse), own), spark, [day(1)])
    with pytest.raises(ValueError, match="its source can't be read by days again"):
        next(rebuild(spark, tables_of(pipeline, own.warehouse), own, "raw_events"))
    definitions = build_definitions(own)
    assert definitions.resolve_schedule_def("numbers_stream").cron_schedule == "*/10 * * * *"
