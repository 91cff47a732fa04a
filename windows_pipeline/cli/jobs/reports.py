"""Reports what a command did to other services: to Dagster, if it is installed.

A report is an entry point of the group `windows_pipeline.reports`, so that commands need not import
Dagster: a function of pipeline, settings, Spark session and the command as users may repeat it. It
returns a `Report`, or None if there is no service to report to.
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
from windows_pipeline.cli.session import command_text
from windows_pipeline.cli.terminal.printed import say
from windows_pipeline.config import Pipeline
from windows_pipeline.jobs.correction.run import CorrectionResult
from windows_pipeline.jobs.job import JobResult
from windows_pipeline.settings import Settings
from windows_pipeline.streaming import BatchResult

_GROUP = "windows_pipeline.reports"


class Report(Protocol):
    """Takes the results of a run's jobs."""

    def job(self, name: str, result: JobResult) -> None:
        """Takes the result of the job whose first table has the name."""
        ...

    def failed(self, reason: str) -> None:
        """Takes the reason why the command did only a part of its work."""
        ...

    def end(self) -> None:
        """Ends the report: no further job or correction follows."""
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


Send = Callable[[Callable[[Report], None]], None]
"""Sends something to every report of a command."""


@contextmanager
def reporting(
    context: typer.Context, pipeline: Pipeline, settings: Settings, spark: SparkSession
) -> Iterator[Send]:
    """Opens the reports of a command once it has something to send, and ends them with the block.

    If a report fails, the command only warns, because the tables hold the results.
    """
    command = command_text(context)
    opened: list[dict[str, Report]] = []

    def send(something: Callable[[Report], None]) -> None:
        if not opened:
            opened.append(_opened(pipeline, settings, spark, command))
        _send(opened[0], something)

    try:
        yield send
    finally:
        for reports in opened:
            _send(reports, lambda report: report.end())


def reported(
    results: Iterable[tuple[str, JobResult]], send: Send
) -> Iterator[tuple[str, JobResult]]:
    """Reports each job's result, and passes it on."""
    for name, result in results:
        send(partial(_take_job, name, result))
        yield name, result


def _take_job(name: str, result: JobResult, report: Report) -> None:
    report.job(name, result)


def _send(reports: dict[str, Report], send: Callable[[Report], None]) -> None:
    """Sends something to every report; a report that fails gets nothing more."""
    for kind, report in list(reports.items()):
        try:
            send(report)
        except Exception as error:  # noqa: BLE001  of a service that is not this command's
            _warn(kind, error)
            del reports[kind]


def _opened(
    pipeline: Pipeline, settings: Settings, spark: SparkSession, command: str
) -> dict[str, Report]:
    """The reports that have somewhere to report to, by the entry point's name."""
    found = {}
    for point in entry_points(group=_GROUP):
        try:
            report = point.load()(pipeline, settings, spark, command)
        except Exception as error:  # noqa: BLE001  of a service that is not this command's
            _warn(point.name, error)
            continue
        if report is not None:
            found[point.name] = report
    return found


def _warn(kind: str, error: Exception) -> None:
    cause = str(error).strip().splitlines() or [type(error).__name__]
    say(
        "warning",
        f"{kind} does not show this run's results, which are in the tables: {cause[0]}",
    )
