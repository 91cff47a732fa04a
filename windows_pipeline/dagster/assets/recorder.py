"""Records in a Dagster instance what a command of the shell did."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import dagster as dg
from pyspark.sql import SparkSession

from windows_pipeline.checks.run import CheckResult
from windows_pipeline.config import Pipeline
from windows_pipeline.dagster.assets.event_order import Event, in_order
from windows_pipeline.dagster.assets.result_events import ResultEvents
from windows_pipeline.jobs import JobResult
from windows_pipeline.jobs.correction.run import CorrectionResult
from windows_pipeline.settings import Settings
from windows_pipeline.storage.arrival_units import days_text
from windows_pipeline.streaming import BatchResult
from windows_pipeline.text.counts import counted

_COMMAND, _DID = "windows-pipeline/command", "windows-pipeline/did"
"""The tags of a run that a command records: the command, and what it did."""
_QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}


class InstanceRecorder:
    """Records the results of a pipeline's jobs in the Dagster instance.

    Checks are recorded in a run, when the command ends: of the evaluations that belong to no run,
    Dagster stores one a check and day, and refuses the next.
    """

    def __init__(
        self,
        home: Path,
        pipeline: Pipeline,
        settings: Settings,
        spark: SparkSession,
        command: str,
    ) -> None:
        """Opens the instance of a folder, which has a `dagster.yaml`.

        Args:
            home: The folder.
            pipeline: The pipeline.
            settings: Where its tables lie.
            spark: The session, to read alerts.
            command: The command whose results are recorded, as users may repeat it.
        """
        # `DagsterInstance.get` takes the folder from nowhere else.
        os.environ["DAGSTER_HOME"] = str(home.resolve())
        self._instance = dg.DagsterInstance.get()
        self._pipeline = pipeline
        self._events = ResultEvents(pipeline, settings, spark, self._instance)
        self._command = command
        self._did: list[str] = []
        self._of_jobs: list[Event] = []
        self._failure: str | None = None

    def job(self, name: str, result: JobResult) -> None:
        """Takes the result of the job whose first table has the name; `end` records it."""
        self._of_jobs += self._events.of_job(name, result)
        outcome = "published" if result.published else "NOT published"
        self._did.append(f"{name}: {outcome}, {days_text(sorted(result.days))}")

    def failed(self, reason: str) -> None:
        """Takes why the command did not do all that it was to do; the run of `end` fails by it."""
        self._failure = reason

    def end(self) -> None:
        """Records the results of all jobs, in a run of the job `NAME_in_shell`."""
        events, self._of_jobs = self._of_jobs, []
        failure, self._failure = self._failure, None
        did, self._did = self._did, []
        if not events and failure is None:
            return

        @dg.op(name="show", out={})
        def show() -> Iterator[Event]:
            dg.OpExecutionContext.get().log.info("\n".join([self._command, *did]))
            yield from in_order(self._instance, events)
            if failure is not None:
                raise dg.Failure(failure)

        @dg.job(
            name=f"{self._pipeline.name}_in_shell",
            description=f"What a command did with {self._pipeline.name}.",
        )
        def in_shell() -> None:
            show()

        # A blocking check that failed fails this run, as it failed the command.
        stored = in_shell.execute_in_process(
            instance=self._instance,
            run_config=_QUIET,
            raise_on_error=False,
            tags={_COMMAND: self._command, _DID: "; ".join(did) or failure or "nothing"},
        )
        if not stored.success and failure is None and not any(map(_blocks, events)):
            raise RuntimeError(
                f"run {stored.run_id} of Dagster must end, but failed; the tables are as the "
                "command left them. The run's log in the UI has the cause"
            )

    def correction(self, windows_name: str, result: CorrectionResult, cause: str) -> None:
        """Takes the result of a correction; `end` records it."""
        self._of_jobs += self._events.of_correction(windows_name, result, cause)
        outcome = "nothing differs from the published results"
        if not result.published:
            outcome = "the correction is NOT published"
        elif result.number is not None:
            outcome = f"correction {result.number} is published, {days_text(sorted(result.by_day))}"
        self._did.append(f"{windows_name}: {outcome}")

    def batch(self, batch: BatchResult) -> None:
        """Records at once what a micro-batch wrote."""
        for event in self._events.of_batch(batch):
            self._instance.report_runless_asset_event(event)

    def stream(
        self,
        batches: Sequence[BatchResult],
        checked: Iterable[tuple[str, Sequence[CheckResult]]],
    ) -> None:
        """Takes the results of a run of the stream; `end` records them."""
        days = sorted({day for batch in batches for day in batch.arrival_units})
        self._of_jobs += self._events.of_stream(batches)
        self._of_jobs += self._events.of_checked(checked, days)
        micro_batches = counted(len(batches), "micro-batch", "micro-batches")
        self._did.append(f"{micro_batches}, {days_text(days)}" if days else micro_batches)


def _blocks(event: Event) -> bool:
    if not isinstance(event, dg.AssetCheckEvaluation) or event.passed:
        return False
    return bool(event.blocking) and event.severity == dg.AssetCheckSeverity.ERROR


def open_recorder(
    pipeline: Pipeline, settings: Settings, spark: SparkSession, command: str
) -> InstanceRecorder | None:
    """Opens the Dagster instance of DAGSTER_HOME or, without it, of the settings.

    Returns:
        The recorder; None if there is no such instance.
    """
    named = os.environ.get("DAGSTER_HOME") or settings.dagster_home
    if named is None or not (Path(named) / "dagster.yaml").is_file():
        return None
    return InstanceRecorder(Path(named), pipeline, settings, spark, command)
