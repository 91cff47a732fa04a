"""A topic that a stream follows; lost records stop the stream, and are never skipped."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from pyspark.sql import SparkSession

from windows_pipeline.sources.kafka.state import (
    KafkaDataLostError,
    TopicState,
    require_same_topic,
    topic_state,
)
from windows_pipeline.sources.kafka.topic import KafkaTopic
from windows_pipeline.streaming.log_state import BatchPart, LogState
from windows_pipeline.text.problems import RefusedError

_OF_TOPIC = " of topic "


class SeveralPartitionsError(RefusedError):
    """A topic has several partitions, and the pipeline needs one; the message says what to do."""


@dataclass(frozen=True)
class FollowedTopic:
    """A topic as it was when the stream began.

    Attributes:
        topic: The topic's address and name.
        topic_id: Kafka's id of the topic; a topic deleted and created again gets another id.
        holes_allowed: Whether some offsets may have no record.
        one_partition: Whether the topic must have a single partition.
    """

    topic: KafkaTopic
    topic_id: str
    holes_allowed: bool
    one_partition: bool

    def stream_of(self, query_id: str) -> str:
        """A stream's name in the log; it includes the topic's id."""
        return f"{query_id}{_OF_TOPIC}{self.topic_id}"

    def require_goes_on(self, spark: SparkSession, stream: str) -> None:
        """Requires that an earlier stream followed this topic, and not one of the same name.

        Args:
            spark: A classic session with the Kafka connector.
            stream: The earlier stream's name in the log.

        Raises:
            KafkaDataLostError: The topic was deleted and created again; the message names the old
                topic, and the offsets of the new one.
        """
        topic_id = stream.partition(_OF_TOPIC)[2]
        if topic_id not in ("", self.topic_id):
            require_same_topic(topic_state(spark, self.topic), self.topic, topic_id)

    def require_partitions(self, state: TopicState) -> None:
        """Requires that the topic has as many partitions as declared.

        Raises:
            SeveralPartitionsError: It has several, and must have one.
        """
        if self.one_partition and len(state.offsets) > 1:
            raise SeveralPartitionsError(
                f"topic {self.topic.topic}: must have one partition, as source.kafka.partitions "
                f"says, but has {len(state.offsets)}, which have no order of arrival in common; "
                "write partitions: several, and windows that need no such order, into a pipeline "
                "of another name, or send the records to a topic of one partition"
            )

    def require_whole(
        self, spark: SparkSession, state: LogState, parts: Iterable[BatchPart]
    ) -> None:
        """Requires that a micro-batch was read from this topic, and lacks no offset.

        Args:
            spark: A classic session with the Kafka connector.
            state: The stream before the micro-batch.
            parts: The records of the micro-batch. They have been read, so if the topic has the
                same id now, they were read from this topic.

        Raises:
            KafkaDataLostError: The topic was created again, or records are missing.
            SeveralPartitionsError: It must have one partition, and has several.
        """
        now = topic_state(spark, self.topic)
        require_same_topic(now, self.topic, self.topic_id)
        self.require_partitions(now)
        if not self.holes_allowed:
            _require_no_holes(state, parts, self.topic.topic)


def _require_no_holes(state: LogState, parts: Iterable[BatchPart], topic: str) -> None:
    """Requires that a micro-batch lacks no offset; a new partition may begin at any offset."""
    next_offsets = {
        row.source_partition: row.last_offset + 1
        for row in sorted(state.log, key=lambda row: row.last_offset or -1)
        if row.last_offset is not None
    }
    for part in parts:
        if part.first_offset is None or part.last_offset is None:
            continue
        first = min(next_offsets.get(part.source_partition, part.first_offset), part.first_offset)
        missing = part.last_offset - first + 1 - part.rows - part.rejected
        if missing > 0:
            raise KafkaDataLostError(
                f"topic {topic}, partition {part.source_partition}: records are missing, {missing} "
                f"of the offsets {first} to {part.last_offset}. If the topic is compacted or has "
                "transactions, no record is lost: write holes: allowed under kafka. Otherwise send "
                "the lost records again, and write holes: allowed, which accepts the loss"
            )
