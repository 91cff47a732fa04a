"""A real Kafka broker: one node of Apache Kafka on loopback, in a JVM of its own."""

from __future__ import annotations

import base64
import socket
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path

from confluent_kafka import OFFSET_BEGINNING, Consumer, Message, TopicPartition

from benchmarks.jvm import Program

_SOURCE = Path(__file__).parent / "java" / "KafkaBroker.java"
_LIBRARIES = ["org.apache.kafka:kafka_2.13:4.3.1"]
_QUICK_TO_START = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]

_PATIENCE_S = 20

Record = tuple[int, str | None, str | None, int]
"""Partition, key, value, timestamp in milliseconds since 1970."""


class KafkaBroker:
    """A broker that is also its own controller (KRaft), on 127.0.0.1 at free ports.

    Stopped and started again it has the same ports and data.

    Attributes:
        servers: Where clients find it, as `host:port`.
        login_servers: Where clients find it that log in, by SASL's PLAIN without encryption: as
            `writer`, who may do all, or `guest`, who may do nothing; the password is `right`.
    """

    def __init__(self, folder: Path) -> None:
        """Fetches Kafka unless it is there, and starts the broker.

        Args:
            folder: An empty one, for its data.

        Raises:
            RuntimeError: Kafka can't be fetched, or does not start.
        """
        broker_port, controller_port, login_port = _free_ports(3)
        self.servers = f"127.0.0.1:{broker_port}"
        self.login_servers = f"127.0.0.1:{login_port}"
        arguments = (str(folder), str(broker_port), str(controller_port), str(login_port))
        self._program = Program(_SOURCE, _LIBRARIES, 1, *arguments, options=_QUICK_TO_START)
        self.start()

    def start(self) -> None:
        """Starts a stopped broker, and waits until it answers."""
        self._ask("start")

    def stop(self) -> None:
        """Stops the broker as an operator does."""
        self._ask("stop")

    def restart(self) -> None:
        """Stops and starts the broker."""
        self.stop()
        self.start()

    def create_topic(self, name: str, partitions: int, **config: str) -> None:
        """Makes a topic; a setting's dots are underscores here: `cleanup_policy="compact"`."""
        settings = [f"{key.replace('_', '.')}={value}" for key, value in config.items()]
        self._ask("create", name, partitions, *settings)

    def delete_topic(self, name: str) -> None:
        """Deletes a topic with its records."""
        self._ask("delete", name)

    def send(self, topic: str, records: Iterable[Record]) -> None:
        """Sends records in this order, and waits until the broker has them."""
        words = [
            word
            for partition, key, value, timestamp_ms in records
            for word in (partition, _word(key), _word(value), timestamp_ms)
        ]
        self._ask("send", topic, *words)

    def delete_records(self, topic: str, partition: int, before_offset: int) -> None:
        """Deletes the records before an offset, as retention does."""
        self._ask("delete_records", topic, partition, before_offset)

    def await_compaction(self, topic: str, partition: int) -> None:
        """Waits until compaction has removed a record."""
        self._ask("await_compaction", topic, partition)

    def close(self) -> None:
        """Ends the broker; its data stay in the folder."""
        self._program.close()

    def _ask(self, *words: object) -> None:
        outcome, *why = self._program.ask(*words)
        if outcome != "done":
            raise RuntimeError(f"Kafka could not {words[0]}: {' '.join(why)}")


def messages_of(servers: str, topic: str) -> list[Message]:
    """The messages of a topic, by partition and offset, as a client in Python reads them."""
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": "tests",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "fetch.wait.max.ms": 10,
        }
    )
    found: list[Message] = []
    try:
        partitions = consumer.list_topics(topic, _PATIENCE_S).topics[topic].partitions
        left = len(partitions)
        consumer.assign([TopicPartition(topic, one, OFFSET_BEGINNING) for one in partitions])
        while left and (message := consumer.poll(_PATIENCE_S)) is not None:
            if message.error() is None:
                found.append(message)
            else:
                left -= 1
    finally:
        consumer.close()
    if left:
        raise RuntimeError(f"Kafka could not read {topic} to its end")
    return sorted(found, key=lambda one: (one.partition() or 0, one.offset() or 0))


def _word(text: str | None) -> str:
    """Null as `-`; a text's base64 behind a letter, so that an empty one is a word, too."""
    return "-" if text is None else f"b{base64.b64encode(text.encode()).decode()}"


def _free_ports(count: int) -> list[int]:
    """Ports that nobody listens on: held all at once, so that they differ."""
    with ExitStack() as held:
        sockets = [held.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]
