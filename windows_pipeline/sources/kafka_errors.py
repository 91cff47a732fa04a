"""What went wrong with a topic, told with its place and the cure."""

from __future__ import annotations

import re

from pyspark.sql import SparkSession

from windows_pipeline.sources.kafka import KafkaTopic
from windows_pipeline.sources.kafka_state import TopicState, topic_state

_CURE = (
    "What is gone can't be read any more. Bring it back into the topic; or accept the loss and "
    "begin anew with what is there: a checkpoint and tables of their own, as a pipeline of another "
    "name has. Have the topic keep its records longer than the longest pause between two runs."
)
_LOST = "Some data may have been lost because they are not available in Kafka any more"
_UNREAD = re.compile(
    r"Could not read records in offset \[(\d+), (\d+)\) for topic partition \S+-(\d+)"
)
_CHANGED = re.compile(r"Partition \S+-(\d+) offset was changed from (\d+) to (\d+)")
_RESET = re.compile(r"Starting offset for \S+-(\d+) was (\d+) but consumer reset to (\d+)")
_DELETED = re.compile(r"Partitions Set\(([^)]*)\) have been deleted")
_ADDED = re.compile(r"Added partition \S+-(\d+) starts from (\d+) instead of 0")
_REASON = re.compile(r"Reason:\s*(.+)")
_NO_TOPIC = "UnknownTopicOrPartitionException"
_SILENT = re.compile(
    r"org\.apache\.kafka\.common\.errors\.(?:TimeoutException|DisconnectException)"
    r"|Cannot fetch record for offset \d+ in \d+ milliseconds"
)
_NO_CLIENT = re.compile(r"Failed to create new KafkaAdminClient|Failed to construct kafka consumer")


class KafkaSourceError(Exception):
    """A topic can't be read; the message says which, why and the cure."""


class KafkaDataLostError(KafkaSourceError):
    """Offsets that the stream has not read are gone."""


class KafkaUnavailableError(KafkaSourceError):
    """No broker answers, it has no such topic, or the client can't begin."""


def told(error: Exception, spark: SparkSession, topic: KafkaTopic) -> Exception:
    """Translates what a query over a topic ended with.

    Args:
        error: A StreamingQueryException, or what a batch's action raised.
        spark: The session; where data are lost, Kafka is asked through it what it still has.
        topic: What was read.

    Returns:
        A KafkaDataLostError or KafkaUnavailableError to raise from the error; the error itself
        where it tells of something else.
    """
    text = str(error)
    name = f"topic {topic.topic} at {topic.servers}"
    if _LOST in text:
        return KafkaDataLostError(f"{name}: {_lost(text, spark, topic)}. {_CURE}")
    if _NO_TOPIC in text:
        return KafkaUnavailableError(
            f"{name}: there is no such topic. Create it, or correct the name; if it was deleted, "
            "what had not been read is lost"
        )
    if _SILENT.search(text):
        return KafkaUnavailableError(
            f"{name}: no answer within {topic.client['default.api.timeout.ms']} ms: no broker runs "
            "there, or the topic was deleted while it was read. Start the broker, or correct "
            "servers and security options; then run again, and reading goes on where it stopped"
        )
    if _NO_CLIENT.search(text):
        return KafkaUnavailableError(
            f"{name}: Kafka's client could not begin. Correct the host names in servers, and the "
            "options; Spark's log has Kafka's own reason"
        )
    return error


def require_same_topic(state: TopicState, topic: KafkaTopic, topic_id: str) -> None:
    """Refuses a topic that was deleted and made again since a stream began.

    Spark sees that only while the new topic has fewer records than the stream has read.

    Args:
        state: What Kafka has now.
        topic: What is read.
        topic_id: The topic's id when the stream began.

    Raises:
        KafkaDataLostError: It is another one by now.
    """
    if state.topic_id != topic_id:
        raise KafkaDataLostError(
            f"topic {topic.topic} at {topic.servers}: the stream began with the topic of id "
            f"{topic_id}, which was deleted; the one of id {state.topic_id} has {state.told()}. "
            f"{_CURE}"
        )


def _lost(text: str, spark: SparkSession, topic: KafkaTopic) -> str:
    """What was asked for, and what is there."""
    if found := _UNREAD.search(text):
        start, end, partition = map(int, found.groups())
        what = f"partition {partition}: offsets {start} to {end - 1} were asked for"
    elif found := (_CHANGED.search(text) or _RESET.search(text)):
        partition, asked, reset = map(int, found.groups())
        what = (
            f"partition {partition}: offsets from {asked} on were asked for, Kafka's client came "
            f"to {reset}: records expired, or the topic was deleted and made again"
        )
    elif found := _DELETED.search(text):
        numbers = [one.rsplit("-", 1)[1] for one in found[1].split(", ")]
        what = f"partitions {', '.join(sorted(numbers, key=int))} were deleted"
    elif found := _ADDED.search(text):
        what = (
            f"new partition {found[1]}: offsets from 0 on were asked for, it begins at {found[2]}"
        )
    else:
        reason = _REASON.search(text)
        what = reason[1].strip() if reason else "offsets are gone"
    return f"{what}; Kafka has {_there(spark, topic)}"


def _there(spark: SparkSession, topic: KafkaTopic) -> str:
    try:
        return topic_state(spark, topic).told()
    except Exception as error:  # noqa: BLE001 - the loss is what matters, whatever keeps this
        return f"not answered what it has ({type(error).__name__})"
