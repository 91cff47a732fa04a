"""The id and the offsets that a Kafka topic has now, as its brokers answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import SparkSession

from windows_pipeline.compat.kafka_admin import ask_topic
from windows_pipeline.sources.kafka.topic import KafkaTopic


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
        Py4JJavaError: No broker answers, or it has no such topic; see `errors.explained`.
    """
    answer = ask_topic(spark, topic.client, topic.topic)
    return TopicState(answer.topic_id, answer.offsets)
