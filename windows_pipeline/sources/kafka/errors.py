"""Errors of a Kafka topic: which topic, what is wrong, and how to fix it."""

from __future__ import annotations

import re

from pyspark.sql import SparkSession

from windows_pipeline.settings import KAFKA_PACKAGE
from windows_pipeline.sources.kafka.state import TopicState, topic_state
from windows_pipeline.sources.kafka.topic import KafkaTopic

_FIX = (
    "Records that are gone can't be read any more. Send them to the topic again; or accept the "
    "loss and start over with the records that are there, in a pipeline of another name, which has "
    "a checkpoint and tables of its own. Have the topic keep its records longer than the longest "
    "pause between two runs."
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
_NO_CONNECTOR = re.compile(
    r"'JavaPackage' object is not callable|Failed to find data source: kafka"
)
"""What py4j reports for a class that the JVM lacks, and Spark for an unknown source."""
_NO_CLIENT = re.compile(r"Failed to create new KafkaAdminClient|Failed to construct kafka consumer")


class KafkaSourceError(Exception):
    """A topic can't be read; the message names the topic, the reason and the fix."""


class KafkaDataLostError(KafkaSourceError):
    """Offsets that the stream has not read are gone."""


class KafkaUnavailableError(KafkaSourceError):
    """No broker answers, it has no such topic, or Kafka's client can't start or is missing."""


def explained(error: Exception, spark: SparkSession, topic: KafkaTopic) -> Exception:
    """Turns an error of a query over a topic into an error that names the fix.

    Args:
        error: A StreamingQueryException, or the error of a batch's action.
        spark: The session. If records are lost, it asks Kafka which offsets are left.
        topic: The topic that was read.

    Returns:
        A KafkaDataLostError or KafkaUnavailableError to raise from the error; the error itself
        if it is not about the topic.
    """
    text = str(error)
    name = f"topic {topic.topic} at {topic.servers}"
    if _LOST in text:
        return KafkaDataLostError(f"{name}: {_lost(text, spark, topic)}. {_FIX}")
    if _NO_TOPIC in text:
        return KafkaUnavailableError(
            f"{name}: there is no such topic. Create the topic, or correct its name; if it was "
            "deleted, the records that had not been read are lost"
        )
    if _NO_CONNECTOR.search(text):
        return KafkaUnavailableError(
            f"{name}: Spark has no connector for Kafka. Add it to settings.yaml, as in "
            f'packages: ["{KAFKA_PACKAGE}"]; Spark downloads it at its next start'
        )
    if _SILENT.search(text):
        return KafkaUnavailableError(
            f"{name}: no answer within {topic.api_timeout} ms: no broker runs "
            "there, or the topic was deleted while it was read. Start the broker, or correct "
            "servers and security options; then run again, and the stream resumes where it stopped"
        )
    if _NO_CLIENT.search(text):
        return KafkaUnavailableError(
            f"{name}: Kafka's client could not begin. Correct the host names in servers, and the "
            "options; Spark's log has Kafka's own reason"
        )
    return error


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


def _lost(text: str, spark: SparkSession, topic: KafkaTopic) -> str:
    """Which offsets the stream asked for, and which offsets Kafka has."""
    if found := _UNREAD.search(text):
        start, end, partition = map(int, found.groups())
        lost = f"partition {partition}: offsets {start} to {end - 1} were asked for"
    elif found := (_CHANGED.search(text) or _RESET.search(text)):
        partition, asked, reset = map(int, found.groups())
        lost = (
            f"partition {partition}: offsets from {asked} on were asked for, Kafka's client came "
            f"to {reset}: records expired, or the topic was deleted and made again"
        )
    elif found := _DELETED.search(text):
        numbers = [name.rsplit("-", 1)[1] for name in found[1].split(", ")]
        lost = f"partitions {', '.join(sorted(numbers, key=int))} were deleted"
    elif found := _ADDED.search(text):
        lost = (
            f"new partition {found[1]}: offsets from 0 on were asked for, it begins at {found[2]}"
        )
    else:
        reason = _REASON.search(text)
        lost = reason[1].strip() if reason else "offsets are gone"
    return f"{lost}; Kafka has {_available(spark, topic)}"


def _available(spark: SparkSession, topic: KafkaTopic) -> str:
    try:
        return topic_state(spark, topic).described()
    except Exception as error:  # noqa: BLE001 - the loss must be reported, with or without this
        return f"not answered what it has ({type(error).__name__})"
