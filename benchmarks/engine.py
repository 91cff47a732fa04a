"""What every engine does for the benchmark."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path

from benchmarks.answers import Answer
from benchmarks.workload import Workload


class Engine(ABC):
    """One engine in a process of its own, with several ways to compute windows."""

    @abstractmethod
    def load(self, folder: Path, workload: Workload) -> None:
        """Takes a folder of Parquet files and the work to do on it, in place of the last."""

    @abstractmethod
    def run(self, way: str) -> float:
        """Computes every window once and drops it.

        Returns:
            The seconds it took.
        """

    @abstractmethod
    def answer(self, way: str, *, left_only: bool) -> Answer:
        """Computes every distinct window, and sums up what came out.

        Args:
            way: How.
            left_only: Of sliding windows only those that end with a record.
        """

    @abstractmethod
    def close(self) -> None:
        """Ends what was started."""
