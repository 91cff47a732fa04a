"""What a Kafka topic is and has right now, asked through Spark's own Kafka client."""

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
        topic_id: Kafka's own; a topic deleted and made again has another one.
        offsets: Of each partition its first offset and the one after its last.
    """

    topic_id: str
    offsets: Mapping[int, tuple[int, int]]

    def told(self) -> str:
        """The offsets that are there, in words."""
        return ", ".join(
            f"{first} to {end - 1} of partition {partition}"
            if end > first
            else f"none of partition {partition} (the next is {end})"
            for partition, (first, end) in sorted(self.offsets.items())
        )


def topic_state(spark: SparkSession, topic: KafkaTopic) -> TopicState:
    """Asks for the topic's id and the offsets that it has.

    Args:
        spark: A classic session with the Kafka connector.
        topic: What to look at.

    Raises:
        Py4JJavaError: No broker answers, or it has no such topic: `kafka_errors.told`.
    """
    java = spark.sparkContext._jvm  # noqa: SLF001 - there is no other way to Kafka's client
    kafka: Any = java.org.apache.kafka  # type: ignore[union-attr]
    admin = kafka.clients.admin.AdminClient.create(dict(topic.client))
    try:
        described = admin.describeTopics([topic.topic]).allTopicNames().get().get(topic.topic)
        numbers = [one.partition() for one in described.partitions()]
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
