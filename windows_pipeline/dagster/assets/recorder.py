"""Records in a Dagster instance what a command of the shell did."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from functools import lru_cache
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


def record(
    pipeline: Pipeline,
    settings: Settings,
    spark: SparkSession,
    *,
    command: str,
    jobs: Sequence[tuple[str, JobResult]],
    corrections: Sequence[tuple[str, CorrectionResult, str]],
    batches: Sequence[BatchResult],
    checked: Sequence[tuple[str, Sequence[CheckResult]]] | None,
    failure: str | None,
) -> None:
    """Records the results of a command in the instance of DAGSTER_HOME, or of the settings.

    They are events of one run of the job `NAME_in_shell`: of evaluations that belong to no run,
    Dagster stores one a check and day, and refuses the next. Micro-batches of a stream that goes on
    belong to no run. Without an instance nothing is recorded.

    Args:
        pipeline: The pipeline.
        settings: Where its tables lie.
        spark: The session, to read alerts.
        command: The command, as users may repeat it.
        jobs: The name of each job's first table, and the job's result.
        corrections: The definition of each correction, its result and its cause.
        batches: The micro-batches of a stream.
        checked: The checks of the days that they changed; None of a stream that goes on.
        failure: Why the command did only a part of its work; the run fails by it.

    Raises:
        RuntimeError: The run failed, and not for what it records.
    """
    named = os.environ.get("DAGSTER_HOME") or settings.dagster_home
    if named is None or not (Path(named) / "dagster.yaml").is_file():
        return
    instance = _instance(str(Path(named).resolve()))
    of = ResultEvents(pipeline, settings, spark, instance)
    events: list[Event] = []
    did = []
    for name, result in jobs:
        events += of.of_job(name, result)
        outcome = "published" if result.published else "NOT published"
        did.append(f"{name}: {outcome}, {days_text(sorted(result.days))}")
    for name, corrected, cause in corrections:
        events += of.of_correction(name, corrected, cause)
        did.append(f"{name}: {_outcome(corrected)}")
    if checked is None:
        for event in (event for batch in batches for event in of.of_batch(batch)):
            instance.report_runless_asset_event(event)
    else:
        days = sorted({day for batch in batches for day in batch.arrival_units})
        events += [*of.of_stream(batches), *of.of_checked(checked, days)]
        micro_batches = counted(len(batches), "micro-batch", "micro-batches")
        did.append(f"{micro_batches}, {days_text(days)}")
    if events or failure is not None:
        _store(instance, pipeline.name, command, did, events, failure)


@lru_cache(maxsize=1)
def _instance(home: str) -> dg.DagsterInstance:
    """The instance of a folder, opened once: a stream that goes on records each micro-batch."""
    # `DagsterInstance.get` takes the folder from nowhere else.
    os.environ["DAGSTER_HOME"] = home
    return dg.DagsterInstance.get()


def _outcome(corrected: CorrectionResult) -> str:
    if not corrected.published:
        return "the correction is NOT published"
    if corrected.number is None:
        return "nothing differs from the published results"
    days = days_text(sorted(corrected.by_day))
    return f"correction {corrected.number} is published, {days}"


def _store(
    instance: dg.DagsterInstance,
    pipeline: str,
    command: str,
    did: Sequence[str],
    events: Sequence[Event],
    failure: str | None,
) -> None:
    """Stores events in a run of the job `NAME_in_shell`."""

    @dg.op(name="show", out={})
    def show() -> Iterator[Event]:
        dg.OpExecutionContext.get().log.info("\n".join([command, *did]))
        yield from in_order(instance, events)
        if failure is not None:
            raise dg.Failure(failure)

    @dg.job(name=f"{pipeline}_in_shell", description=f"What a command did with {pipeline}.")
    def in_shell() -> None:
        show()

    # A blocking check that failed fails this run, as it failed the command.
    stored = in_shell.execute_in_process(
        instance=instance,
        run_config=_QUIET,
        raise_on_error=False,
        tags={_COMMAND: command, _DID: "; ".join(did) or failure or "nothing"},
    )
    if not stored.success and failure is None and not any(map(_blocks, events)):
        raise RuntimeError(
            f"run {stored.run_id} of Dagster must end, but failed; the tables are as the "
            "command left them. The run's log in the UI has the cause"
        )


def _blocks(event: Event) -> bool:
    if not isinstance(event, dg.AssetCheckEvaluation) or event.passed:
        return False
    return bool(event.blocking) and event.severity == dg.AssetCheckSeverity.ERROR
