"""Memory and processor time of a process and everything below it, from Linux' /proc."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self

_PROC = Path("/proc")
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_IDLE_FIELDS = (3, 4)  # idle, iowait


def processes(pid: int) -> list[int]:
    """The process and all that descend from it."""
    found = [pid]
    for one in found:
        for children in (_PROC / str(one)).glob("task/*/children"):
            found.extend(int(child) for child in _text(children).split())
    return found


def resident_bytes(pid: int) -> int:
    """The resident memory of the tree; pages that processes share count in each."""
    sizes = (_text(_PROC / str(one) / "statm").split() for one in processes(pid))
    return sum(int(size[1]) * _PAGE_BYTES for size in sizes if size)


def processor_s(pid: int) -> float:
    """Processor time of the tree, with that of processes below it that have ended."""
    ticks = 0
    for one in processes(pid):
        # The name before the last parenthesis may hold anything.
        fields = _text(_PROC / str(one) / "stat").rpartition(")")[2].split()
        ticks += sum(int(field) for field in fields[11:15])
    return ticks / _TICKS_PER_S


def machine_busy_s() -> float:
    """Processor time that the whole machine has spent since it started."""
    numbers = [int(field) for field in _text(_PROC / "stat").splitlines()[0].split()[1:9]]
    return sum(n for index, n in enumerate(numbers) if index not in _IDLE_FIELDS) / _TICKS_PER_S


class PeakMemory:
    """Samples a tree's memory while a with block runs.

    Attributes:
        peak_bytes: The most that was seen.
    """

    def __init__(self, pid: int, limit_bytes: int, on_limit: Callable[[], None]) -> None:
        """Begins nothing yet.

        Args:
            pid: The tree's root.
            limit_bytes: What the tree may take.
            on_limit: Called once if it takes more.
        """
        self.peak_bytes = 0
        self._pid = pid
        self._limit_bytes = limit_bytes
        self._on_limit = on_limit
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)

    def __enter__(self) -> Self:
        """Starts to sample."""
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stops."""
        self._done.set()
        self._thread.join()

    def _sample(self) -> None:
        while True:
            self.peak_bytes = max(self.peak_bytes, resident_bytes(self._pid))
            if self.peak_bytes > self._limit_bytes:
                self._on_limit()
                return
            if self._done.wait(0.1):
                return


def _text(path: Path) -> str:
    """The file's text; nothing of a process that has ended meanwhile."""
    try:
        return path.read_text()
    except (FileNotFoundError, ProcessLookupError):
        return ""
