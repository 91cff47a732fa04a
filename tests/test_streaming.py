"""A stream gives what one run gives, whatever the cut and wherever it was killed (rule H1)."""

from __future__ import annotations

import json
import os
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from datetime import date
from itertools import count
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
import yaml
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from definitions import build_definitions
from engine_runs import instant, sample, texts
from firing_runs import merged_in
from kafka_broker import KafkaBroker, Record
from oracle import Record as OracleRecord
from oracle import SlidingDefinition, final_windows, late_records
from oracle_firings import Policy, firings
from pipeline_runs import DAYS, SHORT_GRACE, Project, day, failed_checks
from strategies import Arrivals, arrivals
from windows_pipeline.config import Pipeline, load_pipeline
from windows_pipeline.jobs import Job, RawEventsJob, check_published
from windows_pipeline.jobs import correct as jobs_correct
from windows_pipeline.jobs.chain import window_jobs
from windows_pipeline.jobs.correct import correct
from windows_pipeline.jobs.correction_marker import (
    Correction,
    CorrectionUnfinishedError,
    mark_begun,
    mark_needless,
    unfinished_correction,
)
from windows_pipeline.jobs.job import run_job
from windows_pipeline.jobs.unfinished_batch import BatchUnfinishedError
from windows_pipeline.settings import Settings
from windows_pipeline.sources.kafka_errors import KafkaDataLostError
from windows_pipeline.streaming import BatchResult, StreamBehindError, run_stream
from windows_pipeline.tables.catalog import source_tables, window_tables
from windows_pipeline.tables.delta import Table

PIECES = 2
SAME = ("late_records", "final_windows", "alerts")
KILLS = [
    ("raw_events", "after"),
    ("arrival_log", "after"),
    ("final_windows", "after"),
    ("alerts", "before"),
    ("early_warnings", "before"),
]
LOGGED = KILLS[1:3]
"""Those after which the log has the micro-batch, and its tables lack some."""
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
HOPS = {
    "kind": "hopping",
    "size": "10 ms",
    "advance": "5 ms",
    "grace": "8 ms",
    "trigger": {"early_every": "3 ms"},
    "aggregates": {"total": "sum(whole)"},
    "alerts": {"busy": {"when": "record_count >= 2", "severity": "record_count"}},
}
HOPS_POLICY = Policy(size=10, advance=5, lateness=8, interval=3)
"""The same of `HOPS`."""


class KilledError(Exception):
    """Stands for the end of the process."""


@pytest.fixture
def killed_at(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str, str], None]]:
    """Makes the next append to a table the last thing that happens."""
    append = Table.append
    waiting: list[tuple[str, str]] = []

    def until_killed(self: Table, rows: DataFrame, batch: int) -> None:
        name = self.name.rsplit("/", 1)[1]
        if (name, "before") in waiting:
            waiting.clear()
            raise KilledError
        append(self, rows, batch)
        if (name, "after") in waiting:
            waiting.clear()
            raise KilledError

    monkeypatch.setattr(Table, "append", until_killed)
    yield lambda table, when: waiting.append((table, when))
    assert not waiting


def landed_at(line: str) -> str:
    return json.loads(line).get("landed_at") or ""


def cut(lines: list[str], piece: int) -> list[str]:
    """A piece of lines; of one instant of arrival all are in one."""
    size = -(-len(lines) // PIECES)
    bounds = [landed_at(lines[place * size]) for place in range(1, PIECES)]
    return [line for line in lines if bisect_right(bounds, landed_at(line)) == piece]


def land_in_pieces(project: Project, flights: Path) -> None:
    """The days' files cut by arrival; every second file ends with a day and begins the next."""
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


def rows_of(spark: SparkSession, job: Job) -> list[list[str]]:
    """The rows of each of a job's tables."""
    return [texts(table.read(spark).collect()) for table in job.tables]


def test_files_in_pieces_and_killed_between_tables(
    full_run: Project,
    landed_flights: Path,
    spark: SparkSession,
    tmp_path: Path,
    killed_at: Callable[[str, str], None],
) -> None:
    """Rules E1, E2, E4, E5, H1: three days of flights in two micro-batches."""
    project = Project(tmp_path, full_run.base)
    project.declare(grace=SHORT_GRACE, partial_results=False)
    file = project.folder / "pipelines" / "flights.yaml"
    declared = yaml.safe_load(file.read_text())
    declared["source"]["max_per_batch"] = 3
    declared["windows"]["firing"] = FIRING
    file.write_text(yaml.safe_dump(declared))
    land_in_pieces(project, landed_flights)
    told: list[BatchResult] = []
    for table, when in KILLS:
        killed_at(table, when)
        with pytest.raises(KilledError):
            run_stream(spark, project.pipeline, project.settings, on_batch=told.append)
        if (table, when) in LOGGED:
            # By days the micro-batch's windows would be there before it appends them.
            job = window_jobs(project.pipeline, "hourly", project.settings)[0]
            with pytest.raises(BatchUnfinishedError, match="micro-batch 0 of its stream is not"):
                run_job(job, spark, [day(1)])
    run_stream(spark, project.pipeline, project.settings, on_batch=told.append)

    assert [(result.batch, result.units) for result in told] == [
        (0, [day(1), day(2)]),
        (1, [day(2), day(3)]),
    ]
    for table in SAME:
        assert project.rows(spark, table) == full_run.rows(spark, table), table
    raw = [
        sorted(map(repr, one.source.raw_events.read(spark).drop("batch").collect()))
        for one in (project, full_run)
    ]
    assert raw[0] == raw[1]
    jobs: list[Job] = [RawEventsJob(project.pipeline, project.settings)]
    jobs += window_jobs(project.pipeline, "hourly", project.settings)
    jobs += window_jobs(project.pipeline, "firing", project.settings)
    days = [day(number) for number in range(1, DAYS + 1)]
    failed = [
        found.check.name
        for job in jobs
        for found in check_published(job, spark, days)
        if not found.passed
    ]
    assert failed == []
    streamed = rows_of(spark, jobs[-1])
    assert all(streamed)
    assert run_job(jobs[-1], spark, days).published
    assert rows_of(spark, jobs[-1]) == streamed
    # Nothing new: nothing happens.
    told.clear()
    run_stream(spark, project.pipeline, project.settings, on_batch=told.append)
    assert told == []


def declared_pipeline(
    folder: Path,
    settings: Settings,
    source: Mapping[str, object],
    window: Mapping[str, object],
    **others: Mapping[str, object],
) -> tuple[Pipeline, Settings]:
    """A pipeline of integers by key, with sliding windows and others."""
    columns = {"k": "string", "ms": "bigint", "whole": "bigint"}
    text = {
        "name": "numbers",
        "source": {"columns": columns, "key": "k", "event_time": "ms", **source},
        "partitions": {"start": "2026-11-01"},
        "windows": {
            "sums": {"kind": "sliding", **window, "aggregates": {"total": "sum(whole)"}},
            **others,
        },
    }
    file = folder / "pipelines" / "numbers.yaml"
    file.parent.mkdir()
    file.write_text(yaml.safe_dump(text))
    places = {
        "warehouse": str(folder / "warehouse"),
        "landing": str(folder),
        "pipelines": file.parent,
    }
    return load_pipeline(file), settings.model_copy(update=places)


def drawn_case() -> Arrivals:
    """Of many: one with idle partitions that wake, with the most late records in three units.

    What is drawn depends on the modules that are loaded, so many have to do.
    """

    def fits(case: Arrivals) -> bool:
        return case.units == 3 and len({record.source_partition for record in case.records}) > 1

    def with_idle(case: Arrivals) -> Arrivals:
        idle_after = case.definition.idle_after or 2 * case.definition.time_difference + 1
        return case._replace(definition=replace(case.definition, idle_after=idle_after))

    def late_and_final(case: Arrivals) -> int:
        definition = case.definition
        late = late_records(case.records, case.units, definition)
        return len(late) * len(final_windows(case.records, case.units, definition, {}))

    cases = filter(fits, sample(arrivals(keys=("a", "b")), 400))
    return waking(max(map(with_idle, cases), key=late_and_final))


def waking(case: Arrivals) -> Arrivals:
    """Has partition 1 go far ahead of 0, which then brings what lies behind the merge."""
    far_ms = max(one.event_time for one in case.records) + (case.definition.idle_after or 0) + 1
    ahead = OracleRecord(1, 1, 0, "a", far_ms, {"whole": 1})
    behind = OracleRecord(2, 0, 0, "a", far_ms + 1, {"whole": 2})
    by_unit = sorted([*case.records, ahead, behind], key=lambda one: one.unit)
    offsets = (count(), count())
    records = [replace(one, offset=next(offsets[one.source_partition])) for one in by_unit]
    return case._replace(records=records)


def oracle_firings_of(case: Arrivals, policy: Policy) -> list[str]:
    """Rules A1, A4, E2: of the merge of the partitions, a micro-batch being a unit."""
    merged = [record for _, record in merged_in(*case)]
    wanted = []
    for one in firings([(record.key, record.event_time) for record in merged], policy):
        assert one.after is not None
        after = merged[one.after]
        cause = "RECORD" if one.cause == "record" else "STREAM_TIME"
        place = (one.stream_time, str(after.source_partition), after.offset)
        held = (len(one.records), one.is_final)
        wanted.append((*one[:3], one.id, one.reason, cause, *place, *held))
    return texts(wanted)


def told_of(spark: SparkSession, job: Job) -> list[str]:
    rows = job.tables[0].read(spark)
    times = (F.unix_millis(name) for name in ("window_start", "window_end"))
    found = rows.select(
        "key", *times, "firing_id", "reason", "cause", F.unix_millis("stream_time"),
        "fired_after_partition", "fired_after", "record_count", "is_final",
    )  # fmt: skip
    return texts(tuple(row) for row in found.collect())


def test_a_topic_of_several_partitions_is_the_oracles(
    spark: SparkSession, settings: Settings, tmp_path: Path, broker: KafkaBroker
) -> None:
    """Rules A1 to A5, B, E2: Kafka's own partitions and offsets; idle ones hold nothing back."""
    case = drawn_case()
    definition: SlidingDefinition = case.definition
    window = {
        "time_difference": f"{definition.time_difference} ms",
        "grace": f"{definition.grace} ms",
        "emit_empty": definition.emit_empty,
        "partial_results": False,
        "trigger": {"early_every": "2 records"},
        "alerts": deepcopy(HOPS["alerts"]),  # YAML would have an alias of it
    }
    policy = Policy(
        difference=definition.time_difference,
        lateness=definition.grace,
        every_n=2,
        first_start=definition.first_window_start,
        emit_empty=definition.emit_empty,
    )
    if definition.first_window_start is not None:
        window["first_window_start"] = instant(definition.first_window_start).isoformat()
    broker.create_topic("numbers", 2)
    source = {
        "format": "kafka",
        "kafka": {"servers": broker.servers, "topic": "numbers"},
        "idle_after": f"{definition.idle_after} ms",
        "max_ahead": "40000 days",
    }
    pipeline, own = declared_pipeline(tmp_path, settings, source, window, hops=HOPS)
    for unit in range(case.units):
        records: list[Record] = [
            (one.source_partition, None, _json(one.key, one.event_time, one.values["whole"]), 0)
            for one in case.records
            if one.unit == unit
        ]
        broker.send("numbers", records)
        run_stream(spark, pipeline, own)

    tables = window_tables(pipeline, "sums", own.warehouse)
    found = tables.final_windows.read(spark).select(
        "key",
        *(F.unix_millis(name) for name in ("window_start", "window_end")),
        *(F.unix_millis(name) for name in ("first_event_time", "last_event_time")),
        "record_count",
        "total",
    )
    expected = final_windows(case.records, case.units, definition, {"total": ("sum", "whole")})
    assert expected
    assert sorted(map(repr, map(tuple, found.collect()))) == sorted(
        repr((*row[1:7], row.values["total"])) for row in expected
    )
    late = tables.late_records.read(spark).select("source_partition", "offset", "reason")
    listed = late_records(case.records, case.units, definition)
    assert listed
    assert sorted(map(tuple, late.collect())) == sorted(
        (str(row.record.source_partition), row.record.offset, row.reason) for row in listed
    )
    for name, asked in (("hops", HOPS_POLICY), ("sums", policy)):
        job = window_jobs(pipeline, name, own)[-1]
        assert told_of(spark, job) == oracle_firings_of(case, asked)
        streamed = rows_of(spark, job)
        # Not every case that may be drawn warns of something.
        assert streamed[0]
        log = job.arrived(spark)
        assert run_job(job, spark, sorted({row.unit for row in log})).published
        assert rows_of(spark, job) == streamed
    # What compaction or a transaction takes away is no silence.
    broker.send("numbers", [(0, None, "no JSON", 0)])
    run_stream(spark, pipeline, own)
    rejected = source_tables(pipeline, own.warehouse).rejected_records.read(spark).collect()
    last = max(one.offset for one in case.records if one.source_partition == 0)
    assert [(row.reason, row.file) for row in rejected] == [("malformed", f"numbers-0@{last + 1}")]


def _json(key: str | None, ms: int, whole: object) -> str:
    return json.dumps({"k": key, "ms": ms, "whole": whole})


def begun_a_day_later(offsets: Path) -> date:
    """Has Spark's note of a micro-batch say that it was begun a day later; returns the day."""
    version, noted, *of_sources = offsets.read_text().splitlines()
    batch = json.loads(noted)
    batch["batchTimestampMs"] += 86_400_000
    offsets.write_text("\n".join([version, json.dumps(batch), *of_sources]))
    offsets.with_name(f".{offsets.name}.crc").unlink()
    return instant(batch["batchTimestampMs"]).date()


def test_a_correction_and_a_micro_batch_see_each_other(
    spark: SparkSession, settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rule E1: neither computes from tables that the other is about to write."""
    window = {"time_difference": "10 ms", "grace": "0 ms"}
    source = {"format": "delta", "path": "table", "max_per_batch": 1}
    pipeline, own = declared_pipeline(tmp_path, settings, source, window)
    tables = window_tables(pipeline, "sums", own.warehouse)
    table = tmp_path / "table"
    for ms in (3, 30):
        add_rows(spark, table, [("a", ms, 1)])

    def begin(result: BatchResult) -> None:
        (unit,) = result.units
        correction = Correction(1, unit, unit, "why", 0, 0)
        mark_begun(spark, tables.corrections, correction)

    def corrected() -> None:
        units = tables.keyed_windows.read(spark).select("unit").collect()
        correct(spark, pipeline, "sums", own, min(units).unit, None, "why")

    # One that began after the stream did.
    with pytest.raises(CorrectionUnfinishedError):
        run_stream(spark, pipeline, own, on_batch=begin)
    mark_needless(spark, tables.corrections)
    next_day = begun_a_day_later(Path(own.warehouse) / "numbers" / "_stream" / "offsets" / "1")
    # A micro-batch that was begun, and is not in the log.
    with pytest.raises(BatchUnfinishedError, match="micro-batch 1 "):
        corrected()
    run_stream(spark, pipeline, own)
    # Its records are of the day on which it was begun, not of the one on which it ends.
    assert [row.unit for row in tables.final_windows.read(spark).collect()] == [next_day]

    # One that came after the correction looked for such.
    def after_another(*begun: Any) -> None:
        add_rows(spark, table, [("a", 60, 1)])
        run_stream(spark, pipeline, own)
        mark_begun(*begun)

    monkeypatch.setattr(jobs_correct, "mark_begun", after_another)
    with pytest.raises(BatchUnfinishedError, match="micro-batch 2 "):
        corrected()
    assert unfinished_correction(spark, tables.corrections) is None
    monkeypatch.undo()
    corrected()
    assert tables.final_windows.read(spark).count() == 2


def add_rows(spark: SparkSession, table: Path, rows: Sequence[tuple[object, ...]]) -> None:
    frame = spark.createDataFrame(rows, "k string, ms bigint, whole bigint")
    frame.write.format("delta").mode("append").save(str(table))


def test_a_delta_table_and_a_checkpoint_that_is_gone(
    spark: SparkSession, settings: Settings, tmp_path: Path
) -> None:
    window = {"time_difference": "10 ms", "grace": "0 ms"}
    source = {"format": "delta", "path": "table"}
    quiet = {**HOPS, "alerts": {}}
    pipeline, own = declared_pipeline(tmp_path, settings, source, window, hops=quiet)
    first, second = [("a", 3, 1), ("a", 7, 2)], [("a", 30, 5), (None, 31, 0)]
    add_rows(spark, tmp_path / "table", first)
    run_stream(spark, pipeline, own)
    add_rows(spark, tmp_path / "table", second)
    # As a Dagster run, which looks at the tables with every check.
    job = build_definitions(own).resolve_job_def("numbers_all")
    with dg.DagsterInstance.ephemeral() as instance:
        ran = job.execute_in_process(instance=instance)
    assert failed_checks(ran) == set()
    (raw,) = [
        made.metadata
        for made in (
            event.step_materialization_data.materialization
            for event in ran.all_events
            if event.is_step_materialization
        )
        if made.asset_key.path[-1] == "raw_events"
    ]
    counted = [raw[name].value for name in ("micro_batches", "accepted", "rejected")]
    assert counted == [1, 1, 1]
    tables = window_tables(pipeline, "sums", own.warehouse)
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
    firings_told = window_jobs(pipeline, "hops", own)[-1].tables[0].read(spark)
    on_time = firings_told.where("reason = 'ON_TIME'").select(F.unix_millis("window_start"))
    assert sorted(row[0] for row in on_time.collect()) == [-5, 0, 5]
    (rejected,) = source_tables(pipeline, own.warehouse).rejected_records.read(spark).collect()
    assert rejected.reason == "null_key"

    # As a rebuild leaves a table that was stopped before it filled it again.
    tables.alerts.set_properties(spark, {"windows_pipeline.rebuilding": "true"})
    with pytest.raises(StreamBehindError, match="sums/alerts was emptied and not filled again"):
        run_stream(spark, pipeline, own)
    tables.alerts.mark_rebuilt(spark)

    (Path(own.warehouse) / "numbers" / "_stream").rename(tmp_path / "gone")
    with pytest.raises(StreamBehindError, match="which begins anew; put its checkpoint back"):
        run_stream(spark, pipeline, own)
    assert tables.final_windows.read(spark).count() == 3


def test_a_hole_in_a_topic_is_told(
    spark: SparkSession, settings: Settings, tmp_path: Path, broker: KafkaBroker
) -> None:
    """Rule A6: lost offsets are an error that says which, until they are allowed."""
    broker.create_topic("lost", 1)
    kafka = {"servers": broker.servers, "topic": "lost"}
    window = {"time_difference": "10 ms", "grace": "0 ms"}
    source = {"format": "kafka", "kafka": kafka}
    pipeline, own = declared_pipeline(tmp_path, settings, source, window)
    broker.send("lost", [(0, None, _json("a", ms, 1), 0) for ms in (1, 2, 3)])
    run_stream(spark, pipeline, own)
    broker.send("lost", [(0, None, _json("a", ms, 1), 0) for ms in (4, 5, 6)])
    broker.delete_records("lost", 0, 5)
    with pytest.raises(KafkaDataLostError, match="partition 0"):
        run_stream(spark, pipeline, own)
