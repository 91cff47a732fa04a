"""Kafka's admin client from Spark's Kafka connector: PySpark has no public access to it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from py4j.java_gateway import JavaPackage
from pyspark.sql import SparkSession

from windows_pipeline.settings import KAFKA_PACKAGE
from windows_pipeline.text.problems import RefusedError


class NoConnectorError(RefusedError):
    """Spark has no connector for Kafka; the message says how to add it."""


def ask_topic(
    spark: SparkSession, client: Mapping[str, str], topic: str
) -> tuple[str, dict[int, tuple[int, int]]]:
    """Asks the brokers for a topic's id and its partitions' offsets.

    Args:
        spark: A classic session with the Kafka connector.
        client: The client's options, by their names in Kafka.
        topic: The topic's name.

    Returns:
        The id that Kafka assigns, a new one for a topic that was deleted and created again; and by
        partition its first offset, and the offset after its last record.

    Raises:
        NoConnectorError: The session lacks the connector.
        Py4JJavaError: No broker answers, or the topic does not exist.
    """
    java: Any = spark.sparkContext._jvm  # noqa: SLF001
    kafka: Any = java.org.apache.kafka
    if isinstance(kafka.clients.admin.AdminClient, JavaPackage):  # py4j's answer for no such class
        raise NoConnectorError(
            f"topic {topic}: Spark must have its connector for Kafka, but has none. Add it to "
            f'settings.yaml, as in packages: ["{KAFKA_PACKAGE}"]; Spark downloads it at its next '
            "start"
        )
    admin = kafka.clients.admin.AdminClient.create(dict(client))
    try:
        described = admin.describeTopics([topic]).allTopicNames().get().get(topic)
        numbers = [partition.partition() for partition in described.partitions()]
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
    return str(described.topicId().toString()), offsets


def _offsets(admin: Any, kafka: Any, topic: str, numbers: list[int], spec: Any) -> dict[int, int]:
    partitions = {number: kafka.common.TopicPartition(topic, number) for number in numbers}
    listed = admin.listOffsets(dict.fromkeys(partitions.values(), spec))
    return {
        number: int(listed.partitionResult(partition).get().offset())
        for number, partition in partitions.items()
    }
