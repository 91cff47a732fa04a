"""The id and the offsets that a Kafka topic has now, as its brokers answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import SparkSession

from windows_pipeline.compat.kafka_admin import ask_topic
from windows_pipeline.sources.kafka.topic import KafkaTopic
from windows_pipeline.text.problems import RefusedError

_FIX = (
    "Records that are gone can't be read any more. Send them to the topic again; or accept the "
    "loss and start over with the records that are there, in a pipeline of another name, which has "
    "a checkpoint and tables of its own"
)


class KafkaDataLostError(RefusedError):
    """Records that the stream has not read are gone; the message says which, and the fix."""


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
        NoConnectorError: The session lacks the connector.
        Py4JJavaError: No broker answers, or it has no such topic.
    """
    return TopicState(*ask_topic(spark, topic.client, topic.topic))


def require_same_topic(state: TopicState, topic: KafkaTopic, topic_id: str) -> None:
    """Refuses a topic that was deleted and created again since a stream began.

    Spark notices that only while the new topic has fewer records than the stream has read.

    Args:
        state: The topic as Kafka has it now.
        topic: The topic that the stream reads.
        topic_id: The topic's id when the stream began.

    Raises:
        KafkaDataLostError: The topic has another id now.
    """
    if state.topic_id != topic_id:
        raise KafkaDataLostError(
            f"topic {topic.topic} at {topic.servers}: the stream began with the topic of id "
            f"{topic_id}, which was deleted; the topic of id {state.topic_id} has "
            f"{state.described()}. {_FIX}"
        )
