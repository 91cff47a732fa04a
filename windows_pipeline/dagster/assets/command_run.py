"""A run of Dagster that begins and ends with a command of the shell."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import NamedTuple
from uuid import uuid4

import dagster as dg

from windows_pipeline.compat.dagster_runs import fail_run
from windows_pipeline.dagster.assets.event_order import Event, in_order
from windows_pipeline.storage.writer_lock import holding, is_held

COMMAND, DID = "windows-pipeline/command", "windows-pipeline/did"
"""The tags of such a run: the command, and what it did."""
_NO_RETRY = {"dagster/max_retries": "0"}
_QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}


class Ended(NamedTuple):
    """How a command ended.

    Attributes:
        did: What it did, in lines.
        events: What the run stores.
        failure: Why the run fails; None if it succeeds.
    """

    did: Sequence[str]
    events: Sequence[Event]
    failure: dg.Failure | None


class CommandRun:
    """A run of the job `NAME_in_shell`, which is at work until the command's `end`.

    A thread waits in the run's only step, so that the run has the command's start and length. A
    file in the instance's folder is locked meanwhile: see `fail_killed`.
    """

    def __init__(self, instance: dg.DagsterInstance, pipeline: str, command: str) -> None:
        """Begins the run.

        Args:
            instance: The instance, whose runs leave all output alone.
            pipeline: The pipeline's name.
            command: The command.
        """
        self._instance = instance
        self._id = str(uuid4())
        self._ended: SimpleQueue[Ended] = SimpleQueue()
        self._error: Exception | None = None
        work = (_job(pipeline, command, instance, self._ended), command)
        self._thread = Thread(target=self._execute, args=work, daemon=True)
        self._thread.start()

    def end(self, ended: Ended) -> None:
        """Stores what the command did, and ends the run.

        Raises:
            RuntimeError: The run failed, and not by the command's failure.
        """
        self._ended.put(ended)
        self._thread.join()
        run = self._instance.get_run_by_id(self._id)
        has_succeeded = run is not None and run.is_success
        if self._error is not None or not (has_succeeded or ended.failure is not None):
            raise RuntimeError(
                f"run {self._id} of Dagster must end, but failed; the tables are as the command "
                "left them. The run's log in the UI has the cause"
            ) from self._error

    def _execute(self, job: dg.JobDefinition, command: str) -> None:
        try:
            lock = _lock_file(self._instance, self._id)
            with holding(lock):
                job.execute_in_process(
                    instance=self._instance,
                    run_config=_QUIET,
                    raise_on_error=False,
                    run_id=self._id,
                    tags={COMMAND: command, **_NO_RETRY},
                )
            lock.unlink()
        except Exception as error:  # noqa: BLE001  `end` raises it
            self._error = error


def fail_killed(instance: dg.DagsterInstance, pipeline: str) -> None:
    """Marks the runs of commands as failed that were killed on this machine.

    The operating system releases the lock of a process that is gone.
    """
    started = dg.RunsFilter(job_name=_job_name(pipeline), statuses=[dg.DagsterRunStatus.STARTED])
    for run in instance.get_runs(started):
        path = _lock_file(instance, run.run_id)
        if path.is_file() and not is_held(path):
            fail_run(instance, run, f"{run.tags.get(COMMAND, 'the command')} was killed")
            path.unlink(missing_ok=True)


def _job_name(pipeline: str) -> str:
    return f"{pipeline}_in_shell"


def _job(
    pipeline: str, command: str, instance: dg.DagsterInstance, came: SimpleQueue[Ended]
) -> dg.JobDefinition:
    @dg.op(name="show", out={})
    def show() -> Iterator[Event]:
        context = dg.OpExecutionContext.get()
        context.log.info(command)
        ended = came.get()
        said = "; ".join(ended.did) or (ended.failure and ended.failure.description) or "nothing"
        instance.add_run_tags(context.run_id, {DID: said})
        context.log.info("\n".join(ended.did))
        yield from in_order(instance, ended.events)
        if ended.failure is not None:
            raise ended.failure

    @dg.job(name=_job_name(pipeline), description=f"What a command did with {pipeline}.")
    def in_shell() -> None:
        show()

    return in_shell


def _lock_file(instance: dg.DagsterInstance, run_id: str) -> Path:
    return Path(instance.root_directory) / "commands" / run_id
