"""An engine in a process of its own, so that its memory and processor time are its own."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
import traceback
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from benchmarks.answers import Answer
from benchmarks.engine import Engine
from benchmarks.process_tree import PeakMemory, machine_busy_s, processes, processor_s
from benchmarks.workload import Workload


class EngineFailedError(Exception):
    """An engine could not do its work; the message is its own, or says what it exceeded."""


@dataclass(frozen=True, slots=True)
class Resources:
    """What an engine may use.

    Attributes:
        cores: How many processors.
        memory_gib: A JVM's heap, or DuckDB's limit of memory.
        limit_gib: An engine is ended when its whole process tree takes more.
    """

    cores: int = 2
    memory_gib: int = 3
    limit_gib: float = 9.0


@dataclass(frozen=True, slots=True)
class Run:
    """One run.

    Attributes:
        seconds: How long it took.
        peak_mib: The most memory that the whole process tree was seen to take meanwhile.
        others_cores: How many processors other processes kept busy meanwhile.
    """

    seconds: float
    peak_mib: int
    others_cores: float


class EngineProcess:
    """Runs an engine elsewhere and watches it."""

    def __init__(self, name: str, resources: Resources) -> None:
        self._resources = resources
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, name, resources))
        self._process.start()
        theirs.close()
        self._over_limit = False
        self._call("start")

    def load(self, folder: Path, workload: Workload) -> None:
        """See `Engine.load`."""
        self._call("load", folder, workload)

    def answer(self, way: str, *, left_only: bool) -> Answer:
        """See `Engine.answer`.

        Raises:
            EngineFailedError: It failed, or took more memory than it may.
        """
        with self._watched():
            answer: Answer = self._call("answer", way, left_only)
        return answer

    def run(self, way: str) -> Run:
        """Runs it once; see `Engine.run`.

        Raises:
            EngineFailedError: It failed, or took more memory than it may.
        """
        pid = self._pid
        own_s, busy_s, began = processor_s(pid), machine_busy_s(), time.perf_counter()
        with self._watched() as memory:
            seconds: float = self._call("run", way)
        wall_s = time.perf_counter() - began
        others_s = (machine_busy_s() - busy_s) - (processor_s(pid) - own_s)
        return Run(seconds, memory.peak_bytes >> 20, round(max(0.0, others_s) / wall_s, 2))

    def close(self) -> None:
        """Ends the engine and whatever it started."""
        tree = processes(self._pid)
        if self._process.is_alive() and not self._over_limit:
            self._pipe.send(("close", ()))
            self._process.join(20)
        _kill(tree)
        self._process.join()

    @property
    def _pid(self) -> int:
        if self._process.pid is None:
            raise RuntimeError("the process has not started")
        return self._process.pid

    def _watched(self) -> PeakMemory:
        """Ends the engine when it takes more than it may."""
        limit_bytes = int(self._resources.limit_gib * 2**30)
        return PeakMemory(self._pid, limit_bytes, self._end_over_limit)

    def _end_over_limit(self) -> None:
        self._over_limit = True
        _kill(processes(self._pid))

    def _call(self, method: str, *arguments: object) -> Any:
        try:
            self._pipe.send((method, arguments))
            done, value = self._pipe.recv()
        except (EOFError, OSError):
            if self._over_limit:
                raise EngineFailedError(f"over {self._resources.limit_gib:g} GiB") from None
            raise EngineFailedError("the process ended") from None
        if not done:
            raise EngineFailedError(value)
        return value


def _kill(pids: list[int]) -> None:
    for pid in reversed(pids):
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue


def _serve(pipe: Connection, name: str, resources: Resources) -> None:
    """Does what the other end of the pipe asks for, until it asks to close."""
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: resources.cores])
    engine: Engine | None = None
    while True:
        try:
            method, arguments = pipe.recv()
        except EOFError:
            return
        try:
            if method == "start":
                engine = _start(name, resources)
                value: object = None
            elif engine is None:
                raise RuntimeError("not started")
            elif method == "answer":
                value = engine.answer(arguments[0], left_only=arguments[1])
            else:
                value = getattr(engine, method)(*arguments)
            pipe.send((True, value))
        except Exception as error:  # noqa: BLE001 - the caller reports whatever went wrong
            lines = traceback.format_exception_only(error)[-1].strip().splitlines()
            pipe.send((False, " ".join(lines)[:500]))
        if method == "close":
            return


def _start(name: str, resources: Resources) -> Engine:
    cores, memory_gib = resources.cores, resources.memory_gib
    match name:
        case "spark":
            from benchmarks.spark_engine import SparkEngine

            return SparkEngine(cores, memory_gib)
        case "duckdb":
            from benchmarks.duckdb_engine import DuckDBEngine

            return DuckDBEngine(cores, memory_gib)
        case "polars":
            # Polars reads this once, when it is imported.
            os.environ["POLARS_MAX_THREADS"] = str(cores)
            from benchmarks.polars_engine import PolarsEngine

            return PolarsEngine()
        case "flink":
            from benchmarks.flink_engine import FlinkEngine

            return FlinkEngine(cores, memory_gib)
        case "kafka":
            from benchmarks.kafka_engine import KafkaStreamsEngine

            return KafkaStreamsEngine(memory_gib)
        case _:
            raise ValueError(f"{name!r} is no engine")
