"""Topics of a real broker: each offset is read once, and lost records are errors."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

from tests.support.kafka import KafkaBroker, Record
from windows_pipeline.faults.explain import explained
from windows_pipeline.settings import DELTA_PACKAGE, KAFKA_PACKAGE, Settings, load_settings
from windows_pipeline.sources.kafka.state import KafkaDataLostError, require_same_topic, topic_state
from windows_pipeline.sources.kafka.topic import KafkaTopic, read_topic

ROOT = Path(__file__).parents[2]
Row = tuple[str, int, str | None]
"""Source partition, offset, text."""


def numbered(partition: int, first: int, last: int) -> list[Record]:
    """Records whose text is their partition and offset."""
    return [(partition, "k", f"{partition}:{one}", one) for one in range(first, last + 1)]


def rows(partition: int, first: int, last: int) -> set[Row]:
    return {(str(partition), one, f"{partition}:{one}") for one in range(first, last + 1)}


class TopicStream:
    """Runs of one stream with one checkpoint."""

    def __init__(self, spark: SparkSession, topic: KafkaTopic, folder: Path) -> None:
        self._spark = spark
        self._topic = topic
        self._folder = folder

    def run(self) -> list[set[Row]]:
        """Reads the records that are there; returns the rows of each micro-batch."""
        batches: list[set[Row]] = []

        def take(batch: DataFrame, _number: int) -> None:
            read = batch.select("source_partition", "offset", "original").collect()
            batches.append({tuple(row) for row in read})
            assert len(read) == len(batches[-1])

        writer = read_topic(self._spark, self._topic).writeStream.foreachBatch(take)
        writer = writer.option("checkpointLocation", str(self._folder))
        query = writer.trigger(availableNow=True).start()
        query.awaitTermination()
        return batches


def said_of(error: BaseException) -> str:
    """What a command says of an error of Kafka."""
    fault = explained(error)
    assert fault is not None
    return str(fault)


@pytest.fixture
def stream(spark: SparkSession, broker: KafkaBroker, tmp_path: Path) -> Callable[..., TopicStream]:
    def make(name: str, batch: int | None = None, patience_ms: int = 20_000) -> TopicStream:
        options = {"default.api.timeout.ms": str(patience_ms)}
        topic = KafkaTopic(broker.servers, name, max_records_per_batch=batch, options=options)
        return TopicStream(spark, topic, tmp_path / name)

    return make


def test_each_offset_is_read_once_whatever_the_runs_and_restarts(
    broker: KafkaBroker, stream: Callable[..., TopicStream]
) -> None:
    """Rule A1: offsets order a partition's records; the partitions have offsets of their own."""
    broker.create_topic("once", 2)
    broker.send("once", numbered(0, 0, 2) + numbered(1, 0, 1))
    one = stream("once", batch=3)
    first = one.run()
    assert max(map(len, first)) <= 3
    assert sum(map(len, first)) == 5
    assert set.union(*first) == rows(0, 0, 2) | rows(1, 0, 1)
    broker.send("once", numbered(0, 3, 3))
    broker.stop()
    began = time.monotonic()
    with pytest.raises(StreamingQueryException) as raised:
        stream("once", patience_ms=1500).run()
    assert time.monotonic() - began < 10
    assert said_of(raised.value).startswith("Kafka must answer")
    broker.start()
    assert one.run() == [rows(0, 3, 3)]
    assert one.run() == []


def test_a_record_has_kafkas_own_key_text_and_time(
    spark: SparkSession, broker: KafkaBroker, tmp_path: Path
) -> None:
    """Rule A6: a record without text or key is read, so that it can be rejected."""
    broker.create_topic("columns", 3)
    broker.send(
        "columns", [(2, "a", '{"é": 1}', 1_357_034_400_123), (0, None, None, 5), (1, "", "", 0)]
    )
    records = read_topic(spark, KafkaTopic(broker.servers, "columns")).writeStream
    records = records.format("memory").queryName("topic_columns").trigger(availableNow=True)
    records.option("checkpointLocation", str(tmp_path)).start().awaitTermination()
    batch = spark.table("topic_columns")
    assert batch.dtypes == [
        ("source_partition", "string"),
        ("offset", "bigint"),
        ("original", "string"),
        ("arrived_at", "timestamp"),
        ("key", "string"),
        ("headers", "array<struct<key:string,value:binary>>"),
    ]
    read = sorted(tuple(row) for row in batch.drop("headers").collect())
    arrived = [datetime.fromtimestamp(ms / 1000, UTC) for ms in (5, 0, 1_357_034_400_123)]
    assert [row[3].astimezone(UTC) for row in read] == arrived
    assert [row[:3] + row[4:] for row in read] == [
        ("0", 0, None, None),
        ("1", 0, "", ""),
        ("2", 0, '{"é": 1}', "a"),
    ]


def test_records_that_expired_before_they_were_read_are_an_error(
    broker: KafkaBroker, stream: Callable[..., TopicStream]
) -> None:
    """Rule A5: nothing is silently dropped."""
    broker.create_topic("expiry", 2)
    broker.send("expiry", numbered(0, 0, 4) + numbered(1, 0, 0))
    one = stream("expiry")
    one.run()
    broker.delete_records("expiry", 0, 3)
    broker.send("expiry", numbered(0, 5, 5))
    assert one.run() == [rows(0, 5, 5)]
    broker.send("expiry", numbered(0, 6, 9))
    broker.delete_records("expiry", 0, 8)
    with pytest.raises(StreamingQueryException) as raised:
        one.run()
    assert "Could not read records in offset [6, 10) for topic partition expiry-0" in said_of(
        raised.value
    )


def test_a_topic_that_is_created_again_is_an_error(
    spark: SparkSession, broker: KafkaBroker, stream: Callable[..., TopicStream]
) -> None:
    topic = KafkaTopic(broker.servers, "again")
    broker.create_topic("again", 1)
    broker.send("again", numbered(0, 0, 3))
    one = stream("again")
    one.run()
    began = topic_state(spark, topic)
    assert began.offsets == {0: (0, 4)}
    require_same_topic(began, topic, began.topic_id)
    broker.delete_topic("again")
    with pytest.raises(StreamingQueryException) as gone:
        one.run()
    assert said_of(gone.value).startswith("Kafka must answer, and have the topic")
    broker.create_topic("again", 1)
    broker.send("again", numbered(0, 0, 1))
    with pytest.raises(StreamingQueryException) as lost:
        one.run()
    assert "again-0 offset was changed from 4 to 2" in said_of(lost.value)
    broker.send("again", numbered(0, 2, 9))
    with pytest.raises(
        KafkaDataLostError, match=f"id {began.topic_id}, which was deleted"
    ) as raised:
        require_same_topic(topic_state(spark, topic), topic, began.topic_id)
    assert "has 0 to 9 of partition 0" in str(raised.value)


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"servers": " "}, "servers: must name the servers"),
        ({"topic": ""}, "topic: must name the topic"),
        ({"starting": "first"}, "starting: must be earliest or latest, not 'first'"),
        ({"max_records_per_batch": 0}, "max_records_per_batch: must be 1 or more, not 0"),
    ],
)
def test_a_wrong_topic_names_the_field(fields: dict[str, object], named: str) -> None:
    with pytest.raises(ValueError, match=named):
        KafkaTopic(**{"servers": "a:1", "topic": "t", **fields})  # type: ignore[arg-type]


def test_the_clients_options_are_in_no_text() -> None:
    topic = KafkaTopic("a:1", "t", options={"sasl.jaas.config": "a secret"})
    assert "secret" not in repr(topic)
    assert topic.client["sasl.jaas.config"] == "a secret"


def test_spark_loads_the_connector_only_where_settings_name_it(settings: Settings) -> None:
    packages = "spark.jars.packages"
    assert settings.spark_conf()[packages] == f"{DELTA_PACKAGE},{KAFKA_PACKAGE}"
    assert load_settings(ROOT).spark_conf()[packages] == DELTA_PACKAGE
