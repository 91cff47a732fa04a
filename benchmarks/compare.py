"""Several ways to do one work, in turns: first their answers, then their times."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from statistics import median
from types import TracebackType
from typing import Self

from benchmarks.answers import require_same
from benchmarks.data import CACHE
from benchmarks.engine_process import EngineFailedError, EngineProcess, Resources, Run
from benchmarks.process_tree import machine_busy_s
from benchmarks.ways import OURS, Way
from benchmarks.workload import MAX_RECORDS_IN_MEMORY, Kind, Workload

Report = Callable[[str], None]

_SLOW_S = 20.0
_QUIET_CORES = 0.2
_MORE_TURNS = 1
_WARM_RUNS = 8
_WARM_S = 20.0
"""The runs or seconds after which a way is warm: only by then has the JVM compiled hot code."""


@dataclass
class Measured:
    """What a way took.

    Attributes:
        way: The way.
        runs: Its runs once it was warm.
        wanted: How many runs count: those that others disturbed least.
        failure: Why there are no runs, or no more.
    """

    way: Way
    wanted: int
    runs: list[Run] = field(default_factory=list)
    failure: str = ""

    @property
    def counted(self) -> list[Run]:
        """The runs that count."""
        return sorted(self.runs, key=lambda run: run.others_cores)[: self.wanted]

    @property
    def median_s(self) -> float | None:
        """Their median; None where there are none."""
        return median(run.seconds for run in self.counted) if self.runs else None

    @property
    def is_enough(self) -> bool:
        """Whether more runs would add nothing."""
        quiet = [run for run in self.runs if run.others_cores <= _QUIET_CORES]
        slow = any(run.seconds > _SLOW_S for run in self.runs)
        return bool(self.failure) or slow or len(quiet) >= self.wanted


class Engines:
    """The engines' processes, each started when it is first asked for."""

    def __init__(self, report: Report) -> None:
        self._resources = Resources()
        self._report = report
        self._running: dict[str, EngineProcess] = {}
        self._loaded: dict[str, Workload] = {}

    def loaded(self, name: str, work: Workload) -> EngineProcess:
        """The engine with this work's records."""
        engine = self._running.get(name)
        if engine is None:
            self._report(f"starting {name}")
            engine = self._running[name] = EngineProcess(name, self._resources)
        if self._loaded.get(name) != work:
            engine.load(work.dataset.write(CACHE), work)
            self._loaded[name] = work
        return engine

    def __enter__(self) -> Self:
        """Nothing runs yet."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Ends them all."""
        self.end_all()

    def use(self, resources: Resources) -> None:
        """Starts engines with these resources from now on."""
        if resources != self._resources:
            self.end_all()
            self._resources = resources

    def end(self, name: str) -> None:
        """Ends an engine, if it runs."""
        self._loaded.pop(name, None)
        engine = self._running.pop(name, None)
        if engine is not None:
            engine.close()

    def end_all(self) -> None:
        """Ends them all."""
        for name in list(self._running):
            self.end(name)


def compare(
    work: Workload,
    ways: Sequence[Way],
    runs: int,
    engines: Engines,
    report: Report,
    patience_s: float,
) -> list[Measured]:
    """Measures the ways in turns: ours, another, the next one, ours again, and so on.

    Where the records don't fit in memory each way has a process of its own, warmed up on fewer
    records, of which the answers are compared; else answers are those of all records, the engines
    stay, and the runs that warm them up don't count. One run counts of a way that is slow.

    Args:
        work: The work.
        ways: Ours among them.
        runs: How many runs of each count.
        engines: The engines.
        report: Called with a text for each step.
        patience_s: How long a run may wait for others to leave the processors.

    Raises:
        DifferentAnswersError: Two ways answer differently.
    """
    measured = [Measured(way, runs) for way in ways]
    _check(work, measured, engines, report)
    alone = work.dataset.records > MAX_RECORDS_IN_MEMORY
    if alone:
        engines.end_all()
    for turn in range(runs + _MORE_TURNS + 1):
        for one in measured:
            if one.is_enough:
                continue
            report(f"{work.name}: {one.way.name}, run {turn}")
            try:
                if turn == 0 and not alone:
                    _warm(work, one.way, engines)
                    continue
                _wait_for_quiet(patience_s)
                run = _run_alone(work, one.way, engines) if alone else _run(work, one.way, engines)
            except EngineFailedError as error:
                one.failure = str(error)
                engines.end(one.way.engine)
                continue
            one.runs.append(run)
    return measured


def _run(work: Workload, way: Way, engines: Engines) -> Run:
    return engines.loaded(way.engine, work).run(way.name)


def _warm(work: Workload, way: Way, engines: Engines) -> None:
    """Runs a way until it is warm."""
    spent_s = 0.0
    for _ in range(_WARM_RUNS):
        spent_s += _run(work, way, engines).seconds
        if spent_s > _WARM_S:
            break


def _run_alone(work: Workload, way: Way, engines: Engines) -> Run:
    try:
        _run(work.checked(MAX_RECORDS_IN_MEMORY), way, engines)
        return _run(work, way, engines)
    finally:
        engines.end(way.engine)


def _check(work: Workload, measured: Sequence[Measured], engines: Engines, report: Report) -> None:
    """Asserts that all ways find the same windows.

    Of aggregates that no other way computes there is nothing to compare.
    """
    ours = next(one for one in measured if one.way is OURS)
    others: dict[tuple[Workload, bool], list[Measured]] = {}
    for one in measured:
        if one is not ours and one.way.has_answer:
            asked = work.checked(one.way.max_checked_records), _is_left_only(one.way, work)
            others.setdefault(asked, []).append(one)
    for (asked_of, left_only), them in others.items():
        answers = {}
        for one in (ours, *them):
            report(f"{asked_of.name}: answer of {one.way.name}")
            try:
                engine = engines.loaded(one.way.engine, asked_of)
                answers[one.way.name] = engine.answer(one.way.name, left_only=left_only)
            except EngineFailedError as error:
                one.failure = f"its answer: {error}"
                engines.end(one.way.engine)
        require_same(asked_of.name, answers)


def _is_left_only(way: Way, work: Workload) -> bool:
    return way.left_only and work.kind is Kind.SLIDING


def _wait_for_quiet(patience_s: float) -> None:
    """Waits until others use little of the machine for a second, but not for ever."""
    until = time.monotonic() + patience_s
    while time.monotonic() < until:
        busy_s = machine_busy_s()
        time.sleep(1)
        if machine_busy_s() - busy_s <= _QUIET_CORES:
            return
