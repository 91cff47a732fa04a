"""A topic that a stream follows: what was lost of it is said, never passed over."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from pyspark.sql import SparkSession

from windows_pipeline.sources.kafka import KafkaTopic
from windows_pipeline.sources.kafka_errors import KafkaDataLostError, require_same_topic
from windows_pipeline.sources.kafka_state import topic_state
from windows_pipeline.streaming.standing import Part, Standing

_OF_TOPIC = " of topic "


@dataclass(frozen=True)
class FollowedTopic:
    """A topic as it was when the stream began.

    Attributes:
        topic: Where it is.
        topic_id: Kafka's own; a topic deleted and made again has another one.
        holes_allowed: Whether offsets may be without a record.
    """

    topic: KafkaTopic
    topic_id: str
    holes_allowed: bool

    def stream_of(self, query_id: str) -> str:
        """A stream's name in the log: of a topic that was made again it is another one."""
        return f"{query_id}{_OF_TOPIC}{self.topic_id}"

    def require_goes_on(self, spark: SparkSession, stream: str) -> None:
        """Refuses to go on after a stream of a topic that was deleted and made again.

        Args:
            spark: A classic session with the Kafka connector.
            stream: That stream's name in the log.

        Raises:
            KafkaDataLostError: Says which topic it was, and what the new one has.
        """
        topic_id = stream.partition(_OF_TOPIC)[2]
        if topic_id not in ("", self.topic_id):
            require_same_topic(topic_state(spark, self.topic), self.topic, topic_id)

    def require_whole(self, spark: SparkSession, standing: Standing, parts: Iterable[Part]) -> None:
        """Refuses a micro-batch of another topic, or one that lacks offsets.

        Args:
            spark: A classic session with the Kafka connector.
            standing: What came before.
            parts: What the micro-batch brought: read by now, so a topic that is still the same
                is the one that it was read from.

        Raises:
            KafkaDataLostError: Says what is lost.
        """
        require_same_topic(topic_state(spark, self.topic), self.topic, self.topic_id)
        if not self.holes_allowed:
            _require_no_holes(standing, parts, self.topic.topic)


def _require_no_holes(standing: Standing, parts: Iterable[Part], topic: str) -> None:
    """Refuses a micro-batch that lacks offsets; a partition that is new begins with any."""
    next_offsets = {
        row.source_partition: row.last_offset + 1
        for row in sorted(standing.log, key=lambda row: row.last_offset or -1)
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
                "transactions, that is no loss: write holes: allowed under kafka. Else accept the "
                "loss by the same, and send the lost records again"
            )
