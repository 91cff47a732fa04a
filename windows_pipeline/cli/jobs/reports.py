"""Reports what a command did to other services: to Dagster, if it is installed.

A report is an entry point of the group `windows_pipeline.reports`, so that commands need not import
Dagster: a function of pipeline, settings and Spark session. It returns a `Report`, or None if there
is no service to report to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from importlib.metadata import entry_points
from typing import Protocol

from pyspark.sql import SparkSession

from windows_pipeline.checks.run import CheckResult
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


def reported(
    results: Iterable[tuple[str, JobResult]],
    pipeline: Pipeline,
    settings: Settings,
    spark: SparkSession,
) -> Iterator[tuple[str, JobResult]]:
    """Reports each job's result, and passes it on.

    If a report fails, the command only warns, because the tables hold the results.
    """
    reports: dict[str, Report] | None = None
    try:
        for name, result in results:
            if reports is None:
                reports = _opened(pipeline, settings, spark)
            _send(reports, partial(_take_job, name, result))
            yield name, result
    finally:
        _send(reports or {}, lambda report: report.end())


def report_failed(pipeline: Pipeline, settings: Settings, spark: SparkSession, reason: str) -> None:
    """Reports that a command did only a part of its work."""
    report(pipeline, settings, spark, lambda opened: opened.failed(reason))


def _take_job(name: str, result: JobResult, report: Report) -> None:
    report.job(name, result)


def report(
    pipeline: Pipeline,
    settings: Settings,
    spark: SparkSession,
    send: Callable[[Report], None],
) -> None:
    """Sends one result to every report, and ends it; a report that fails is a warning."""
    reports = _opened(pipeline, settings, spark)
    _send(reports, send)
    _send(reports, lambda opened: opened.end())


def _send(reports: dict[str, Report], send: Callable[[Report], None]) -> None:
    """Sends something to every report; a report that fails gets nothing more."""
    for kind, report in list(reports.items()):
        try:
            send(report)
        except Exception as error:  # noqa: BLE001  of a service that is not this command's
            _warn(kind, error)
            del reports[kind]


def _opened(pipeline: Pipeline, settings: Settings, spark: SparkSession) -> dict[str, Report]:
    """The reports that have somewhere to report to, by the entry point's name."""
    found = {}
    for point in entry_points(group=_GROUP):
        try:
            report = point.load()(pipeline, settings, spark)
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
