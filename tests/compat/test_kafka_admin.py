"""Contract of the Kafka client that Spark's connector brings."""

from __future__ import annotations

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from tests.support.kafka import KafkaBroker
from windows_pipeline.compat.kafka_admin import ask_topic


def test_a_topic_s_id_and_offsets_are_those_of_the_broker(
    spark: SparkSession, broker: KafkaBroker
) -> None:
    patience_ms = "20000"
    client = {
        "bootstrap.servers": broker.servers,
        "default.api.timeout.ms": patience_ms,
        "request.timeout.ms": patience_ms,
    }
    broker.create_topic("asked", 2)
    broker.send("asked", [(0, "k", "a", 1), (0, "k", "b", 2)])
    first_id, offsets = ask_topic(spark, client, "asked")
    assert offsets == {0: (0, 2), 1: (0, 0)}
    broker.delete_records("asked", 0, 1)
    assert ask_topic(spark, client, "asked") == (first_id, {0: (1, 2), 1: (0, 0)})
    broker.delete_topic("asked")
    broker.create_topic("asked", 1)
    second_id, offsets = ask_topic(spark, client, "asked")
    assert offsets == {0: (0, 0)}
    assert second_id != first_id
    with pytest.raises(Py4JJavaError, match="UnknownTopicOrPartitionException"):
        ask_topic(spark, client, "none")
