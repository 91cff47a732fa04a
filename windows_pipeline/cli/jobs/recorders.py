"""Records in other services what a command does: in Dagster, if it is installed.

An entry point of the group `windows_pipeline.recorders` is a class that takes the pipeline's
tables, the settings and the command, so that commands need not import Dagster. Its method `begin`
is called once the command has work to do, and `end` with the Spark session and the fields of
`Done` by name. The entry point's name is that of the package it needs, without which it is left
out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, partial
from importlib.metadata import EntryPoint, entry_points
from typing import Any

import typer
from pyspark.sql import SparkSession

from windows_pipeline.checks.run import CheckResult
from windows_pipeline.cli.failures import failure_text
from windows_pipeline.cli.session import command_text
from windows_pipeline.cli.terminal.printed import say
from windows_pipeline.jobs import JobResult
from windows_pipeline.jobs.correction.run import CorrectionResult
from windows_pipeline.settings import Settings
from windows_pipeline.storage.tables import PipelineTables
from windows_pipeline.streaming import BatchResult


@dataclass
class Done:
    """What a command did.

    Attributes:
        jobs: The name of each job's first table, and the job's result.
        corrections: The definition of each correction, its result and its cause.
        batches: The micro-batches of a stream.
        checked: The checks of the days that the micro-batches changed, by the name of the table;
            None of a stream that goes on.
        failure: Why the command did only a part of its work; None if it did all.
    """

    jobs: list[tuple[str, JobResult]] = field(default_factory=list)
    corrections: list[tuple[str, CorrectionResult, str]] = field(default_factory=list)
    batches: list[BatchResult] = field(default_factory=list)
    checked: Sequence[tuple[str, Sequence[CheckResult]]] | None = None
    failure: str | None = None


class Recording(Done):
    """What a command did so far, and the services that show it."""

    def __init__(self, tables: PipelineTables, settings: Settings, command: str) -> None:
        """Takes what each service gets at the beginning."""
        super().__init__()
        self._of = (tables, settings, command)
        self._recorders: dict[str, Any] | None = None

    def begin(self) -> None:
        """Says that the command has work to do, so that it shows while it is at work."""
        for name, recorder in self._made().items():
            _or_warn(name, recorder.begin)

    def end(self, spark: SparkSession) -> None:
        """Records what the command did; a command without work shows nowhere."""
        done = {name: getattr(self, name) for name in Done.__dataclass_fields__}
        if self._recorders is None and done == vars(Done()):
            return
        for name, recorder in self._made().items():
            _or_warn(name, partial(recorder.end, spark, **done))

    def _made(self) -> dict[str, Any]:
        """The recorders, which are made when the first of them is needed."""
        if self._recorders is None:
            self._recorders = {}
            for point in _points():
                made = _or_warn(point.name, partial(self._loaded, point))
                if made is not None:
                    self._recorders[point.name] = made
        return self._recorders

    def _loaded(self, point: EntryPoint) -> Any:
        return point.load()(*self._of)


@contextmanager
def recording(
    context: typer.Context, tables: PipelineTables, settings: Settings, spark: SparkSession
) -> Iterator[Recording]:
    """Records at the end of the block what the block notes, and the error that ends it.

    If a service fails, the command only warns, because the tables hold the results.
    """
    done = Recording(tables, settings, command_text(context))
    try:
        yield done
    except typer.Exit:
        raise
    except KeyboardInterrupt:
        done.failure = "interrupted"
        raise
    except Exception as error:
        done.failure = failure_text(error)
        raise
    finally:
        done.end(spark)


@cache
def _points() -> tuple[EntryPoint, ...]:
    """The entry points, looked for once: a stream that goes on records each micro-batch."""
    return tuple(entry_points(group="windows_pipeline.recorders"))


def _or_warn(name: str, step: Callable[[], Any]) -> Any:
    """Calls a service, the package of a name; warns if it fails, unless the package is missing."""
    try:
        return step()
    except Exception as error:  # noqa: BLE001  of a service that is not this command's
        if not (isinstance(error, ModuleNotFoundError) and error.name == name):
            cause = (str(error).strip().splitlines() or [type(error).__name__])[0]
            say(
                "warning",
                f"{name} does not show this run's results, which are in the tables: {cause}",
            )
        return None
