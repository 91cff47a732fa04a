"""Kafka's admin client, which Spark's Kafka connector brings: PySpark has no door to it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from pyspark.sql import SparkSession


class TopicAnswer(NamedTuple):
    """What a broker answers about a topic.

    Attributes:
        topic_id: Kafka's own; a topic deleted and made again has another one.
        offsets: Of each partition its first offset and the one after its last.
    """

    topic_id: str
    offsets: dict[int, tuple[int, int]]


def ask_topic(spark: SparkSession, client: Mapping[str, str], topic: str) -> TopicAnswer:
    """Asks the brokers for a topic's id and the offsets that it has.

    Args:
        spark: A classic session with the Kafka connector.
        client: The client's options, by Kafka's names.
        topic: The topic's name.

    Raises:
        Py4JJavaError: No broker answers, or there is no such topic.
    """
    java: Any = spark.sparkContext._jvm  # noqa: SLF001
    kafka: Any = java.org.apache.kafka
    admin = kafka.clients.admin.AdminClient.create(dict(client))
    try:
        described = admin.describeTopics([topic]).allTopicNames().get().get(topic)
        numbers = [one.partition() for one in described.partitions()]
        first, end = (
            _offsets(admin, kafka, topic, numbers, spec)
            for spec in (
                kafka.clients.admin.OffsetSpec.earliest(),
                kafka.clients.admin.OffsetSpec.latest(),
            )
        )
    finally:
        admin.close()
    offsets = {number: (first[number], end[number]) for number in numbers}
    return TopicAnswer(str(described.topicId().toString()), offsets)


def _offsets(admin: Any, kafka: Any, topic: str, numbers: list[int], spec: Any) -> dict[int, int]:
    asked = {number: kafka.common.TopicPartition(topic, number) for number in numbers}
    answered = admin.listOffsets(dict.fromkeys(asked.values(), spec))
    return {
        number: int(answered.partitionResult(partition).get().offset())
        for number, partition in asked.items()
    }
