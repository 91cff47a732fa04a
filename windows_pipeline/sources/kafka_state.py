"""The id and the offsets that a Kafka topic has now, read through Spark's own Kafka client."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession

from windows_pipeline.sources.kafka import KafkaTopic


@dataclass(frozen=True)
class TopicState:
    """A topic as its broker has it.

    Attributes:
        topic_id: Kafka's id of the topic; a topic deleted and created again gets another id.
        offsets: By partition, the first offset and the offset after the last.
    """

    topic_id: str
    offsets: Mapping[int, tuple[int, int]]

    def described(self) -> str:
        """The offsets of each partition, as text."""
        return ", ".join(
            f"{first} to {end - 1} of partition {partition}"
            if end > first
            else f"none of partition {partition} (the next is {end})"
            for partition, (first, end) in sorted(self.offsets.items())
        )


def topic_state(spark: SparkSession, topic: KafkaTopic) -> TopicState:
    """Asks Kafka for a topic's id and offsets.

    Args:
        spark: A classic session with the Kafka connector.
        topic: The topic.

    Raises:
        Py4JJavaError: No broker answers, or it has no such topic; see `kafka_errors.explained`.
    """
    java = spark.sparkContext._jvm  # noqa: SLF001 - there is no other way to Kafka's client
    kafka: Any = java.org.apache.kafka  # type: ignore[union-attr]
    admin = kafka.clients.admin.AdminClient.create(dict(topic.client))
    try:
        described = admin.describeTopics([topic.topic]).allTopicNames().get().get(topic.topic)
        numbers = [partition.partition() for partition in described.partitions()]
        first, end = (
            _offsets(admin, kafka, topic.topic, numbers, spec)
            for spec in (
                kafka.clients.admin.OffsetSpec.earliest(),
                kafka.clients.admin.OffsetSpec.latest(),
            )
        )
    finally:
        admin.close()
    offsets = {number: (first[number], end[number]) for number in numbers}
    return TopicState(str(described.topicId().toString()), offsets)


def _offsets(admin: Any, kafka: Any, topic: str, numbers: list[int], spec: Any) -> dict[int, int]:
    asked = {number: kafka.common.TopicPartition(topic, number) for number in numbers}
    answered = admin.listOffsets(dict.fromkeys(asked.values(), spec))
    return {
        number: int(answered.partitionResult(partition).get().offset())
        for number, partition in asked.items()
    }
