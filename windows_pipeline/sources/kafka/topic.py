"""Kafka topics: their records as they arrived, each partition in the order of its offsets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, get_args

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from windows_pipeline.text.references import resolved

_Start = Literal["earliest", "latest"]
_API_TIMEOUT = "default.api.timeout.ms"
_REQUEST_TIMEOUT_MS = 30_000
"""Kafka's own default."""
_CLIENT = {
    # Records of an aborted transaction must not count.
    "isolation.level": "read_committed",
    _API_TIMEOUT: "60000",
}


@dataclass(frozen=True)
class KafkaTopic:
    """A topic and how it is read.

    Attributes:
        servers: The addresses of the cluster, as `host:port,host:port`.
        topic: The topic's name.
        starting: Where a stream without a checkpoint begins.
        max_records_per_batch: How many records a micro-batch may have, over all partitions; None
            for all records that are there.
        options: Options of Kafka's client, such as `security.protocol`, `sasl.jaas.config` and
            `default.api.timeout.ms` (how long a broker may be silent; 60000 by default). They may
            be secret, so this object's text leaves them out.
    """

    servers: str
    topic: str
    starting: _Start = "earliest"
    max_records_per_batch: int | None = None
    options: Mapping[str, str] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        """Checks the fields, which Spark would check later or not at all.

        Raises:
            ValueError: A field is wrong; the message names the field, its value and the fix.
        """
        for name in ("servers", "topic"):
            if not getattr(self, name).strip():
                raise ValueError(f"{name}: must name the {name} to read, but is empty; name it")
        if self.starting not in get_args(_Start):
            raise ValueError(
                f"starting: must be earliest or latest, not {self.starting!r}; use one of these"
            )
        if self.max_records_per_batch is not None and self.max_records_per_batch < 1:
            raise ValueError(
                f"max_records_per_batch: must be 1 or more, not {self.max_records_per_batch}; "
                "write such a number, or leave it out"
            )

    @property
    def client(self) -> dict[str, str]:
        """The complete configuration of Kafka's client, with the values of environment variables.

        Raises:
            ConfigError: A text refers to a variable that is not set.
            ValueError: The API's timeout is not a whole number.
        """
        declared = {**_CLIENT, **self.options, "bootstrap.servers": self.servers}
        client = {name: resolved(text) for name, text in declared.items()}
        if not client[_API_TIMEOUT].isdecimal():
            raise ValueError(
                f"options: {_API_TIMEOUT} must be a whole number of milliseconds, such as 60000; "
                "correct it (the value is not shown)"
            )
        # Kafka requires that a request's timeout is at most that of the whole call.
        request_ms = min(_REQUEST_TIMEOUT_MS, int(client[_API_TIMEOUT]))
        return {"request.timeout.ms": str(request_ms), **client}


def read_topic(spark: SparkSession, topic: KafkaTopic) -> DataFrame:
    """Reads a topic as a stream. Spark must have its Kafka connector: see docs/kafka.md.

    A stream with a checkpoint reads each offset once, over all its runs (rule A1). The stream
    fails if offsets are missing.

    Args:
        spark: A session, in time zone UTC.
        topic: The topic to read.

    Returns:
        A streaming frame, one row per record, in order of offset within a partition:
        `source_partition` (string: Kafka's partition number), `offset` (bigint: Kafka's),
        `original` (string: the record's value, bytes that are no UTF-8 as U+FFFD; null as Kafka has
        it), `arrived_at` (timestamp: Kafka's, in whole milliseconds; by the topic's setting the
        producer's or the broker's), `key` (string: Kafka's key, like `original`) and `headers`
        (array of structs of `key`, a string, and `value`, binary; null if there are none).
    """
    reader = spark.readStream.format("kafka").option("failOnDataLoss", "true")
    reader = reader.option("includeHeaders", "true")
    # Kafka's client retries until its timeout, so a retry by Spark would only wait twice as long.
    reader = reader.option("fetchOffset.numRetries", "1")
    reader = reader.option("kafkaConsumer.pollTimeoutMs", topic.client[_API_TIMEOUT])
    for name, value in topic.client.items():
        reader = reader.option(f"kafka.{name}", value)
    reader = reader.option("subscribe", topic.topic).option("startingOffsets", topic.starting)
    if topic.max_records_per_batch is not None:
        reader = reader.option("maxOffsetsPerTrigger", topic.max_records_per_batch)
    return reader.load().select(
        F.col("partition").cast("string").alias("source_partition"),
        "offset",
        F.make_valid_utf8(F.col("value").cast("string")).alias("original"),
        F.col("timestamp").alias("arrived_at"),
        F.make_valid_utf8(F.col("key").cast("string")).alias("key"),
        "headers",
    )
