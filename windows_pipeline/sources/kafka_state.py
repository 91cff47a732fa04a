"""What a Kafka topic is and has right now, as its brokers answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import SparkSession

from windows_pipeline.compat.kafka_admin import ask_topic
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
    answer = ask_topic(spark, topic.client, topic.topic)
    return TopicState(answer.topic_id, answer.offsets)
