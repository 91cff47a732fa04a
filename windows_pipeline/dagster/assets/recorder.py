"""Records in a Dagster instance what a command of the shell does."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

import dagster as dg
from pyspark.sql import SparkSession

from windows_pipeline.checks.run import CheckResult
from windows_pipeline.compat.dagster_runs import instance_of
from windows_pipeline.dagster.assets.checks import OfTable, broken, failure_of
from windows_pipeline.dagster.assets.command_run import CommandRun, Ended, fail_killed
from windows_pipeline.dagster.assets.event_order import Event
from windows_pipeline.dagster.assets.result_events import ResultEvents
from windows_pipeline.jobs import JobResult
from windows_pipeline.jobs.correction.run import CorrectionResult
from windows_pipeline.settings import Settings
from windows_pipeline.storage.arrival_units import days_text
from windows_pipeline.storage.tables import PipelineTables
from windows_pipeline.streaming import BatchResult
from windows_pipeline.text.counts import counted


class Recorder:
    """Records a command in the instance of DAGSTER_HOME, or of the settings.

    What it did are events of one run of the job `NAME_in_shell`: of evaluations that belong to no
    run, Dagster stores one a check and day, and refuses the next. Micro-batches of a stream that
    goes on belong to no run. Without an instance nothing is recorded.
    """

    def __init__(self, tables: PipelineTables, settings: Settings, command: str) -> None:
        """Takes the command.

        Args:
            tables: The tables of the pipeline.
            settings: How its jobs run, and the instance's folder.
            command: The command, as users may repeat it.
        """
        self._tables = tables
        self._settings = settings
        self._command = command
        named = os.environ.get("DAGSTER_HOME") or settings.dagster_home
        is_there = named is not None and (Path(named) / "dagster.yaml").is_file()
        self._instance = _instance(str(Path(str(named)).resolve())) if is_there else None
        self._run: CommandRun | None = None

    def begin(self) -> None:
        """Begins the command's run, and ends those of commands that were killed."""
        if self._instance is not None and self._run is None:
            name = self._tables.pipeline.name
            fail_killed(self._instance, name)
            self._run = CommandRun(self._instance, name, self._command)

    def end(
        self,
        spark: SparkSession,
        *,
        jobs: Sequence[tuple[str, JobResult]],
        corrections: Sequence[tuple[str, CorrectionResult, str]],
        batches: Sequence[BatchResult],
        checked: Sequence[tuple[str, Sequence[CheckResult]]] | None,
        failure: str | None,
    ) -> None:
        """Records the results of the command, and ends its run.

        Args:
            spark: The session, to read alerts.
            jobs: The name of each job's first table, and the job's result.
            corrections: The definition of each correction, its result and its cause.
            batches: The micro-batches of a stream.
            checked: The checks of the days that they changed; None of a stream that goes on.
            failure: Why the command did only a part of its work; the run fails by it, and by each
                rule that does not hold.

        Raises:
            RuntimeError: The run failed, and not for what it records.
        """
        if self._instance is None:
            return
        of = ResultEvents(self._tables, self._settings, spark, self._instance)
        if checked is None and batches:
            for event in (event for batch in batches for event in of.of_batch(batch)):
                self._instance.report_runless_asset_event(event)
            return
        self.begin()
        if self._run is None:
            return
        try:
            ended = _ended(of, jobs, corrections, batches, checked, failure)
        except Exception:  # else the run would be at work as long as the process
            self._run.end(Ended([], [], dg.Failure("what the command did can't be shown")))
            raise
        self._run.end(ended)


def _ended(
    of: ResultEvents,
    jobs: Sequence[tuple[str, JobResult]],
    corrections: Sequence[tuple[str, CorrectionResult, str]],
    batches: Sequence[BatchResult],
    checked: Sequence[tuple[str, Sequence[CheckResult]]] | None,
    failure: str | None,
) -> Ended:
    """What a command did: in lines, as events, and why its run fails."""
    events: list[Event] = []
    did: list[str] = []
    rules: list[OfTable] = []
    for name, result in jobs:
        events += of.of_job(name, result)
        outcome = "published" if result.published else "NOT published"
        did.append(f"{name}: {outcome}, {days_text(sorted(result.days))}")
        rules += [(name, found) for found in result.checks]
    for name, corrected, cause in corrections:
        events += of.of_correction(name, corrected, cause)
        did.append(f"{name}: {_outcome(corrected)}")
        rules += [(table, one) for table, of_job in corrected.results for one in of_job.checks]
    if checked is not None:
        days = sorted({day for batch in batches for day in batch.arrival_units})
        evaluated = [*of.of_checked(checked, days)]
        events += [*of.of_stream(batches, evaluated), *evaluated]
        micro_batches = counted(len(batches), "micro-batch", "micro-batches")
        did.append(f"{micro_batches}, {days_text(days)}")
        rules += [(name, found) for name, results in checked for found in results]
    wrong = None if failure is None else dg.Failure(failure)
    if wrong is None and (failed := broken(rules)):
        wrong = failure_of(failed)
    return Ended(did, events, wrong)


@lru_cache(maxsize=1)
def _instance(home: str) -> dg.DagsterInstance:
    """The instance of a folder, opened once: a stream that goes on records each micro-batch."""
    return instance_of(home)


def _outcome(corrected: CorrectionResult) -> str:
    if not corrected.published:
        return "the correction is NOT published"
    if corrected.number is None:
        return "nothing differs from the published results"
    days = days_text(sorted(corrected.by_day))
    return f"correction {corrected.number} is published, {days}"
