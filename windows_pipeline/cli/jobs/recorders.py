"""Records in other services what a command did: in Dagster, if it is installed.

An entry point of the group `windows_pipeline.recorders` makes a recorder, so that commands need not
import Dagster. Its name is that of the package it needs, without which it is left out. It is a
function of pipeline, settings, Spark session and the command as users may repeat it. It returns a
`Recorder`, or None if there is no service to record in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from importlib.metadata import entry_points
from typing import Protocol

import typer
from pyspark.sql import SparkSession

from windows_pipeline.checks.run import CheckResult
from windows_pipeline.cli.failures import failure_text
from windows_pipeline.cli.session import command_text
from windows_pipeline.cli.terminal.printed import say
from windows_pipeline.config import Pipeline
from windows_pipeline.jobs import JobResult
from windows_pipeline.jobs.correction.run import CorrectionResult
from windows_pipeline.settings import Settings
from windows_pipeline.streaming import BatchResult

_GROUP = "windows_pipeline.recorders"


class Recorder(Protocol):
    """Takes the results of a run's jobs."""

    def job(self, name: str, result: JobResult) -> None:
        """Takes the result of the job whose first table has the name."""
        ...

    def failed(self, reason: str) -> None:
        """Takes the reason why the command did only a part of its work."""
        ...

    def end(self) -> None:
        """Ends the record: no further job or correction follows."""
        ...

    def correction(self, windows_name: str, result: CorrectionResult, cause: str) -> None:
        """Takes the result of a correction of a window definition."""
        ...

    def batch(self, batch: BatchResult) -> None:
        """Takes a micro-batch of a stream that goes on."""
        ...

    def stream(
        self,
        batches: Sequence[BatchResult],
        checked: Iterable[tuple[str, Sequence[CheckResult]]],
    ) -> None:
        """Takes the micro-batches of a run of the stream, and the checks of the days."""
        ...


Send = Callable[[Callable[[Recorder], None]], None]
"""Sends something to every recorder of a command."""


@contextmanager
def recording(
    context: typer.Context, pipeline: Pipeline, settings: Settings, spark: SparkSession
) -> Iterator[Send]:
    """Opens the recorders of a command once it has something to send, and ends them with the block.

    An error that ends the command is recorded, too. If a recorder fails, the command only warns,
    because the tables hold the results.
    """
    command = command_text(context)
    opened: list[dict[str, Recorder]] = []

    def send(something: Callable[[Recorder], None]) -> None:
        if not opened:
            opened.append(_opened(pipeline, settings, spark, command))
        _send(opened[0], something)

    try:
        yield send
    except typer.Exit:
        raise
    except Exception as error:
        reason = failure_text(error)
        send(lambda recorder: recorder.failed(reason))
        raise
    finally:
        for recorders in opened:
            _send(recorders, lambda recorder: recorder.end())


def recorded(
    results: Iterable[tuple[str, JobResult]], send: Send
) -> Iterator[tuple[str, JobResult]]:
    """Records each job's result, and passes it on."""
    for name, result in results:
        send(partial(_take_job, name, result))
        yield name, result


def _take_job(name: str, result: JobResult, recorder: Recorder) -> None:
    recorder.job(name, result)


def _send(recorders: dict[str, Recorder], send: Callable[[Recorder], None]) -> None:
    """Sends something to every recorder; a recorder that fails gets nothing more."""
    for kind, recorder in list(recorders.items()):
        try:
            send(recorder)
        except Exception as error:  # noqa: BLE001  of a service that is not this command's
            _warn(kind, error)
            del recorders[kind]


def _opened(
    pipeline: Pipeline, settings: Settings, spark: SparkSession, command: str
) -> dict[str, Recorder]:
    """The recorders that have a service to record in, by the entry point's name."""
    found = {}
    for point in entry_points(group=_GROUP):
        try:
            recorder = point.load()(pipeline, settings, spark, command)
        except Exception as error:  # noqa: BLE001  of a service that is not this command's
            if not (isinstance(error, ModuleNotFoundError) and error.name == point.name):
                _warn(point.name, error)
            continue
        if recorder is not None:
            found[point.name] = recorder
    return found


def _warn(kind: str, error: Exception) -> None:
    cause = str(error).strip().splitlines() or [type(error).__name__]
    say(
        "warning",
        f"{kind} does not show this run's results, which are in the tables: {cause[0]}",
    )
