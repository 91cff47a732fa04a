"""A stream of a topic has each record once, and reports lost records (rules A1 to A6)."""

from __future__ import annotations

from copy import deepcopy
from decimal import Decimal
from pathlib import Path

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tests.support.firing_cases import merged_in
from tests.support.idle_cases import drawn_case
from tests.support.kafka import KafkaBroker, Record
from tests.support.oracle.firings import Policy, firings
from tests.support.oracle.windows import SlidingDefinition, final_windows, late_records
from tests.support.spark_cases import texts
from tests.support.stored_rows import named_rows
from tests.support.strategies import Arrivals
from tests.support.streams import (
    HOPS,
    SLIDING,
    KilledError,
    as_json,
    declared_pipeline,
    rows_of,
    run_until_killed,
    sliding_fields,
)
from windows_pipeline.arrival.log import read_log
from windows_pipeline.checks.run import validate
from windows_pipeline.config import Pipeline
from windows_pipeline.faults.explain import explained
from windows_pipeline.jobs import Job, RawEventsJob
from windows_pipeline.jobs.days.chain import window_jobs
from windows_pipeline.jobs.job import run_job
from windows_pipeline.settings import Settings
from windows_pipeline.sources.kafka.state import KafkaDataLostError
from windows_pipeline.storage.tables import tables_of
from windows_pipeline.streaming import BatchResult, run_stream
from windows_pipeline.streaming.followed_topic import SeveralPartitionsError

HOPS_POLICY = Policy(size=10, advance=5, lateness=8, interval=3)
"""The same of `HOPS`."""


def oracle_firings_of(case: Arrivals, policy: Policy) -> list[str]:
    """Rules A1, A4, E2: of the merge of the partitions, a micro-batch being an arrival unit."""
    merged = [record for _, record in merged_in(*case)]
    wanted = []
    for one in firings([(record.key, record.event_time) for record in merged], policy):
        assert one.after is not None
        after = merged[one.after]
        cause = "RECORD" if one.cause == "record" else "STREAM_TIME"
        position = (one.stream_time, str(after.source_partition), after.offset)
        held = (len(one.records), one.is_final)
        wanted.append((*one[:3], one.id, one.reason, cause, *position, *held))
    return texts(wanted)


def reported_of(spark: SparkSession, job: Job) -> list[str]:
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
        **sliding_fields(definition),
        "partial_results": False,
        "trigger": {"early_every": "2 records", "late": True, "final": True},
        "alerts": deepcopy(HOPS["alerts"]),  # YAML would have an alias of it
    }
    policy = Policy(
        difference=definition.time_difference,
        lateness=definition.grace,
        every_n=2,
        first_start=definition.first_window_start,
        emit_empty=definition.emit_empty,
        final=True,
    )
    broker.create_topic("numbers", 2)
    source = {
        "format": "kafka",
        "kafka": {"servers": broker.servers, "topic": "numbers"},
        "idle_after": f"{definition.idle_after} ms",
        "max_ahead": "40000 days",
    }
    pipeline, own = declared_pipeline(tmp_path, settings, source, window, hops=HOPS)

    def send(arrival_unit: int) -> None:
        records: list[Record] = [
            (one.source_partition, None, as_json(one.key, one.event_time, one.values["whole"]), 0)
            for one in case.records
            if one.arrival_unit == arrival_unit
        ]
        broker.send("numbers", records)

    def goes_on(result: BatchResult) -> None:
        if result.batch == case.arrival_units - 1:
            raise KilledError
        send(result.batch + 1)

    send(0)
    for kill in (("raw_events", "after"), ("firings", "before")):
        run_until_killed(spark, tables_of(pipeline, own.warehouse), own, *kill)
    run_stream(spark, tables_of(pipeline, own.warehouse), own)
    # The other arrival units come while it runs; it is killed before Spark notes the last
    # micro-batch.
    send(1)
    with pytest.raises(KilledError):
        run_stream(
            spark, tables_of(pipeline, own.warehouse), own, every="0 seconds", on_batch=goes_on
        )
    run_stream(spark, tables_of(pipeline, own.warehouse), own)

    tables = tables_of(pipeline, own.warehouse).of("sums")
    found = tables.final_windows.read(spark).select(
        "key",
        *(F.unix_millis(name) for name in ("window_start", "window_end")),
        *(F.unix_millis(name) for name in ("first_event_time", "last_event_time")),
        "record_count",
        "total",
    )
    expected = final_windows(
        case.records, case.arrival_units, definition, {"total": ("sum", "whole")}
    )
    assert expected
    assert sorted(map(repr, map(tuple, found.collect()))) == sorted(
        repr((*row[1:7], row.values["total"])) for row in expected
    )
    late = tables.late_records.read(spark).select("source_partition", "offset", "reason")
    listed = late_records(case.records, case.arrival_units, definition)
    assert listed
    assert sorted(map(tuple, late.collect())) == sorted(
        (str(row.record.source_partition), row.record.offset, row.reason) for row in listed
    )
    require_right_running_maxima(spark, RawEventsJob(tables_of(pipeline, own.warehouse), own))
    for name, asked in (("hops", HOPS_POLICY), ("sums", policy)):
        job = window_jobs(tables_of(pipeline, own.warehouse), name, own)[-1]
        assert reported_of(spark, job) == oracle_firings_of(case, asked)
        streamed = rows_of(job)
        # Some of the drawn cases raise no warning.
        assert streamed[0]
        log = job.arrived(spark)
        assert run_job(job, spark, sorted({row.arrival_unit for row in log})).published
        assert rows_of(job) == streamed


def require_right_running_maxima(spark: SparkSession, job: RawEventsJob) -> None:
    """Rule A4: those of partitions that woke, too; another decision's than their own is wrong."""
    tables = tables_of(job.pipeline, job.settings.warehouse)
    log = read_log(spark, tables.arrival_log)
    arrival_units = sorted({row.arrival_unit for row in log})

    def failed(raw: DataFrame) -> list[str]:
        rows = {
            table.short_name: table.of_arrival_units(spark, arrival_units) for table in job.tables
        }
        (batch,) = job.check_batches(spark, arrival_units, {**rows, "raw_events": raw}, log)
        return [found.check.name for found in validate([batch]) if not found.passed]

    raw = tables.raw_events.of_arrival_units(spark, arrival_units)
    assert failed(raw) == []
    last_ms = max(row.watermark_ms for row in log if row.watermark_ms is not None)
    before = raw.where(F.unix_millis("running_max") < last_ms)
    one = before.orderBy(F.desc("batch"), "source_partition", "offset").first()
    assert one is not None
    is_its = (F.col("source_partition") == one.source_partition) & (F.col("offset") == one.offset)
    later = F.when(is_its, F.timestamp_millis(F.lit(last_ms))).otherwise(F.col("running_max"))
    assert failed(raw.withColumn("running_max", later)) == ["running_max_is_stream_time"]


def numbered(first: int, last: int) -> list[Record]:
    """Records of partition 0, one a millisecond."""
    return [(0, str(ms), as_json("a", ms, 1), ms) for ms in range(first, last + 1)]


def of_topic(
    folder: Path, settings: Settings, broker: KafkaBroker, topic: str, **fields: object
) -> tuple[Pipeline, Settings]:
    """A pipeline of a topic."""
    options = {"default.api.timeout.ms": "5000"}
    kafka = {"servers": broker.servers, "topic": topic, "options": options, **fields}
    columns = {"k": "string", "ms": "bigint", "whole": "bigint", "amount": "decimal(20, 3)"}
    source = {"format": "kafka", "kafka": kafka, "max_per_batch": 3, "columns": columns}
    return declared_pipeline(folder, settings, source, SLIDING)


def accepted(spark: SparkSession, pipeline: Pipeline, own: Settings) -> list[tuple[object, ...]]:
    raw = tables_of(pipeline, own.warehouse).raw_events.read(spark)
    return sorted(map(tuple, raw.select("offset", F.unix_millis("event_time")).collect()))


ONE_ORDER: dict[str, dict[str, object]] = {
    "sums": {"kind": "session", "gap": "5 ms", "grace": "3 ms"},
    "pairs": {"kind": "count", "size": 2, "grace": "3 ms"},
    "before": {"kind": "slide_rows", "preceding": "1 row", "grace": "3 ms"},
    "ahead": {"kind": "forward", "size": "4 ms", "grace": "3 ms"},
}
"""Windows that need one order of arrival, and forward windows."""


def test_a_topic_of_one_partition_has_sessions_and_windows_of_rows(
    spark: SparkSession, settings: Settings, tmp_path: Path, broker: KafkaBroker
) -> None:
    """Rules A1, B7, D1, D3, F5: each final window with the times of its records, in any cuts."""
    broker.create_topic("single", 1)
    kafka = {"servers": broker.servers, "topic": "single", "partitions": "one"}
    source = {"format": "kafka", "kafka": kafka, "max_per_batch": 3, "max_ahead": "40000 days"}
    visits, pairs, before, ahead = (
        {**of, "aggregates": {"times": "collect_list(whole)"}} for of in ONE_ORDER.values()
    )
    pipeline, own = declared_pipeline(
        tmp_path, settings, source, visits, pairs=pairs, before=before, ahead=ahead
    )
    arrived = [10, 14, 12, 30, 33, 20, 50, 49, 47, 70]  # 20 is late: stream time is 33
    broker.send("single", [(0, None, as_json("a", ms, ms), 0) for ms in arrived])
    run_stream(spark, tables_of(pipeline, own.warehouse), own)
    found = {
        name: sorted(
            tuple(row["times"])
            for row in named_rows(
                tables_of(pipeline, own.warehouse).of(name).final_windows, ["times"]
            )
        )
        for name in ONE_ORDER
    }
    assert found == {
        "sums": [(10, 12, 14), (30, 33), (47, 49, 50)],
        "pairs": [(10, 14), (12, 30), (33, 50), (49, 47)],
        "before": [(10,), (10, 12), (12, 14), (14, 30), (30, 33), (33, 47), (47, 49), (49, 50)],
        "ahead": [(10, 12, 14), (12, 14), (14,), (30, 33), (33,), (47, 49, 50), (49, 50), (50,)],
    }
    with pytest.raises(SeveralPartitionsError, match="must have one partition"):
        _follow_two(spark, settings, tmp_path / "two", broker)


def _follow_two(spark: SparkSession, settings: Settings, folder: Path, broker: KafkaBroker) -> None:
    broker.create_topic("two", 2)
    kafka = {"servers": broker.servers, "topic": "two", "partitions": "one"}
    folder.mkdir()
    pipeline, own = declared_pipeline(
        folder, settings, {"format": "kafka", "kafka": kafka}, ONE_ORDER["sums"]
    )
    run_stream(spark, tables_of(pipeline, own.warehouse), own)


@pytest.mark.long
def test_a_stopped_broker_and_expired_offsets_are_errors(
    spark: SparkSession, settings: Settings, tmp_path: Path, broker: KafkaBroker
) -> None:
    """Rules A1, A6: the stream resumes; lost records are an error, broken records are rejected."""
    broker.create_topic("lost", 1)
    pipeline, own = of_topic(tmp_path, settings, broker, "lost")
    broker.send("lost", [*numbered(1, 2), (0, None, "no JSON", 0)])
    run_stream(spark, tables_of(pipeline, own.warehouse), own)
    # No double has these digits (rule G2).
    amount = Decimal("12345678901234567.890")
    broker.send("lost", [(0, None, f'{{"k": "a", "ms": 4, "whole": 1, "amount": {amount}}}', 0)])
    broker.stop()
    with pytest.raises(Py4JJavaError) as stopped:
        run_stream(spark, tables_of(pipeline, own.warehouse), own)
    assert "topic lost" in str(explained(stopped.value))
    broker.start()
    run_stream(spark, tables_of(pipeline, own.warehouse), own)
    assert accepted(spark, pipeline, own) == [(0, 1), (1, 2), (3, 4)]
    tables = tables_of(pipeline, own.warehouse)
    assert {row["amount"] for row in named_rows(tables.raw_events)} == {None, amount}
    rejected = tables.rejected_records.read(spark).collect()
    assert [(row.reason, row.file) for row in rejected] == [("malformed", "lost-0@2")]

    broker.send("lost", numbered(5, 7))
    broker.delete_records("lost", 0, 6)
    with pytest.raises(Exception, match="Some data may have been lost") as expired:
        run_stream(spark, tables_of(pipeline, own.warehouse), own)
    assert "Could not read records in offset [4, 7)" in str(explained(expired.value))


@pytest.mark.long
def test_holes_of_a_compacted_topic_are_lost_records_until_they_are_allowed(
    spark: SparkSession, settings: Settings, tmp_path: Path, broker: KafkaBroker
) -> None:
    compacted = {"cleanup_policy": "compact", "min_cleanable_dirty_ratio": "0.01"}
    broker.create_topic("holes", 1, **compacted, max_compaction_lag_ms="1", segment_ms="1000")
    sent = enumerate("abaac")
    broker.send("holes", [(0, key, as_json(key, ms, 1), 0) for ms, key in sent])
    # A record in a later segment, so that Kafka may compact those before.
    broker.send("holes", [(0, "z", as_json("z", 5, 1), 10_000)])
    broker.await_compaction("holes", 0)
    pipeline, own = of_topic(tmp_path, settings, broker, "holes")
    # Left of abaac z: b at 1, a at 3, c at 4, z at 5.
    with pytest.raises(KafkaDataLostError, match="records are missing, 1 of the offsets 2 to 5"):
        run_stream(spark, tables_of(pipeline, own.warehouse), own)
    pipeline, own = of_topic(tmp_path, settings, broker, "holes", holes="allowed")
    run_stream(spark, tables_of(pipeline, own.warehouse), own)
    assert accepted(spark, pipeline, own) == [(ms, ms) for ms in (1, 3, 4, 5)]


@pytest.mark.long
def test_a_topic_that_is_created_again_is_reported_while_it_is_read_and_after(
    spark: SparkSession, settings: Settings, tmp_path: Path, broker: KafkaBroker
) -> None:
    """Rule A1: the new topic's records reuse offsets; none counts as an old record."""
    pipeline, own = of_topic(tmp_path, settings, broker, "renewed")
    broker.create_topic("renewed", 1)
    broker.send("renewed", numbered(0, 5))

    def made_again(_result: BatchResult) -> None:
        broker.delete_topic("renewed")
        broker.create_topic("renewed", 1)
        broker.send("renewed", numbered(100, 109))

    with pytest.raises(KafkaDataLostError, match=r"was deleted; .* has 0 to 9 of partition 0"):
        run_stream(spark, tables_of(pipeline, own.warehouse), own, on_batch=made_again)
    with pytest.raises(KafkaDataLostError, match="which was deleted"):
        run_stream(spark, tables_of(pipeline, own.warehouse), own)
    assert accepted(spark, pipeline, own) == [(0, 0), (1, 1), (2, 2)]


@pytest.mark.long
@pytest.mark.smoke
def test_columns_in_the_long_form_of_a_topic(
    spark: SparkSession, settings: Settings, tmp_path: Path, broker: KafkaBroker
) -> None:
    """Rule A6: a field within a field, and a derived key; Kafka gets the values of references."""
    broker.create_topic("nested", 1)
    columns = {
        "card": {"type": "bigint", "from": "$.card.number"},
        "k": {"type": "string", "as": "concat('card-', cast(card as string))"},
        "ms": "timestamp_ms",
        "whole": {"type": "bigint", "as": "card * 900000000000000000"},
    }
    servers = {"servers": "${env:WP_TEST_SERVERS}", "topic": "${env:WP_TEST_TOPIC}"}
    options = {"options": {"security.protocol": "${env:WP_TEST_PROTOCOL}"}}
    source = {"format": "kafka", "kafka": servers | options, "columns": columns}
    values = [
        '{"card": {"number": 1}, "ms": 1}',
        '{"card": {"number": 70}, "ms": 2}',
        '{"card": {}, "ms": 3}',
        '{"card": 4, "ms": 4}',
    ]
    sent: list[Record] = [(0, None, value, 0) for value in values]
    broker.send("nested", sent)
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("WP_TEST_SERVERS", broker.servers)
        patched.setenv("WP_TEST_TOPIC", "nested")
        patched.setenv("WP_TEST_PROTOCOL", "PLAINTEXT")
        pipeline, own = declared_pipeline(tmp_path, settings, source, SLIDING)
        run_stream(spark, tables_of(pipeline, own.warehouse), own)
    tables = tables_of(pipeline, own.warehouse)
    (row,) = named_rows(tables.raw_events)
    assert (row["key"], row["card"], row["whole"]) == ("card-1", 1, 900_000_000_000_000_000)
    reasons = sorted(row["reason"] for row in named_rows(tables.rejected_records))
    assert reasons == ["failed_expression: whole", "null_key", "null_key"]
