"""Records in other services what a command did: in Dagster, if it is installed.

An entry point of the group `windows_pipeline.recorders` is a function that takes the pipeline, the
settings, the Spark session and the fields of `Done` by name, so that commands need not import
Dagster. Its name is that of the package it needs, without which it is left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import EntryPoint, entry_points

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


@dataclass
class Done:
    """What a command did.

    Attributes:
        command: The command, as users may repeat it.
        jobs: The name of each job's first table, and the job's result.
        corrections: The definition of each correction, its result and its cause.
        batches: The micro-batches of a stream.
        checked: The checks of the days that the micro-batches changed, by the name of the table;
            None of a stream that goes on.
        failure: Why the command did only a part of its work; None if it did all.
    """

    command: str
    jobs: list[tuple[str, JobResult]] = field(default_factory=list)
    corrections: list[tuple[str, CorrectionResult, str]] = field(default_factory=list)
    batches: list[BatchResult] = field(default_factory=list)
    checked: Sequence[tuple[str, Sequence[CheckResult]]] | None = None
    failure: str | None = None


@contextmanager
def recording(
    context: typer.Context, pipeline: Pipeline, settings: Settings, spark: SparkSession
) -> Iterator[Done]:
    """Records at the end of the block what the block notes, and the error that ends it.

    If a service fails, the command only warns, because the tables hold the results.
    """
    done = Done(command_text(context))
    try:
        yield done
    except typer.Exit:
        raise
    except Exception as error:
        done.failure = failure_text(error)
        raise
    finally:
        if done != Done(done.command):
            _record(pipeline, settings, spark, done)


@cache
def _recorders() -> tuple[EntryPoint, ...]:
    """The entry points, looked for once: a stream that goes on records each micro-batch."""
    return tuple(entry_points(group="windows_pipeline.recorders"))


def _record(pipeline: Pipeline, settings: Settings, spark: SparkSession, done: Done) -> None:
    for point in _recorders():
        try:
            point.load()(pipeline, settings, spark, **vars(done))
        except Exception as error:  # noqa: BLE001  of a service that is not this command's
            if isinstance(error, ModuleNotFoundError) and error.name == point.name:
                continue
            cause = (str(error).strip().splitlines() or [type(error).__name__])[0]
            say(
                "warning",
                f"{point.name} does not show this run's results, which are in the tables: {cause}",
            )
