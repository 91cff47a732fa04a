"""Kafka Streams, by its test driver, in a JVM of its own."""

from __future__ import annotations

from pathlib import Path

from benchmarks.answers import Answer
from benchmarks.engine import Engine
from benchmarks.jvm import Program
from benchmarks.raw_columns import write_raw
from benchmarks.workload import Workload

_SOURCE = Path(__file__).parent / "java" / "KafkaWindows.java"
VERSION = "4.3.1"
_LIBRARIES = [f"org.apache.kafka:kafka-streams-test-utils:{VERSION}"]


class KafkaStreamsEngine(Engine):
    """One stream task, without a broker."""

    def __init__(self, memory_gib: int) -> None:
        self._program = Program(_SOURCE, _LIBRARIES, memory_gib)

    def load(self, folder: Path, workload: Workload) -> None:
        """Has the JVM hold the records in the order of their times."""
        self._program.ask("load", workload.length_ms, write_raw(folder))

    def run(self, way: str) -> float:
        """Puts every record."""
        return float(self._program.ask("run")[0])

    def answer(self, way: str, *, left_only: bool) -> Answer:
        """Reads its store of windows."""
        return Answer(*map(int, self._program.ask("answer")))

    def close(self) -> None:
        """Ends the JVM."""
        self._program.close()
