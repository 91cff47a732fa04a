"""A call of the command line: its progress, its log, and the Spark session that it may start."""

from __future__ import annotations

import logging
import os
import shlex
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import typer

from windows_pipeline.cli.terminal.console import CONSOLE, ERRORS
from windows_pipeline.cli.terminal.log_file import FOLDER, LogFile
from windows_pipeline.cli.terminal.printed import say
from windows_pipeline.cli.terminal.progress import Status
from windows_pipeline.text.references import without_values

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from windows_pipeline.config import Windows
    from windows_pipeline.query.records.definition_rows import RowFilter
    from windows_pipeline.settings import Settings

StartSession = Callable[["Settings"], "SparkSession"]
"""Starts the Spark session that the settings describe. `main` passes it as the context's object."""


@dataclass
class Invocation:
    """A call of the command line.

    Attributes:
        start: Starts the Spark session; None for the library's own function.
        command: The command's name, once it is known.
        is_verbose: Whether the user asked for more output.
    """

    start: StartSession | None = None
    command: str = "windows-pipeline"
    is_verbose: bool = False
    _log: LogFile | None = field(default=None, init=False)

    @property
    def log(self) -> LogFile:
        """The call's log, in the folder of the settings file."""
        if self._log is None:
            self._log = LogFile(_logs(), self.command)
        return self._log


def invocation(context: typer.Context) -> Invocation:
    """The call that a command's context belongs to."""
    return cast("Invocation", context.obj)


def command_text(context: typer.Context) -> str:
    """The call as users may repeat it: the command's name, its arguments and its options.

    The values of variables that settings and pipelines refer to are taken out, as in all output.
    """
    words = ["windows-pipeline", str(context.info_name)]
    for parameter in context.command.params:
        value = context.params.get(str(parameter.name))
        if value is None or value is False or parameter.name == "verbose":
            continue
        if parameter.param_type_name == "option":
            words.append(parameter.opts[0])
        if value is not True:
            words.append(str(value))
    return without_values(shlex.join(words))


def begin(context: typer.Context, text: str) -> Status:
    """Shows on a terminal what a command does, and keeps what libraries print out of its output.

    Both end with the command. Call it once the arguments are known to be right, and before imports
    that take long.

    Args:
        context: The command's context.
        text: The first step.

    Returns:
        The status, to name the next steps.
    """
    call = invocation(context)
    _capture(call, context.with_resource)
    lines = ERRORS if call.is_verbose else None
    return context.with_resource(Status(CONSOLE, text, lines))


def _capture(call: Invocation, enter: Callable[[AbstractContextManager[None]], None]) -> None:
    try:
        enter(call.log.captured())
    except OSError as error:
        say("warning", f"no log is written, and messages of Spark follow: {error}")


@contextmanager
def reading(
    context: typer.Context, settings: Settings, windows: Windows, text: str
) -> Iterator[RowFilter | None]:
    """Shows what a command reads; evaluates a definition's filter, which needs Spark.

    Yields:
        What evaluates the filter, by a session that its first call starts; None without a filter.
    """
    with ExitStack() as stack:
        if windows.where is None:
            stack.enter_context(Status(CONSOLE, text))
            yield None
            return
        _capture(invocation(context), stack.enter_context)
        status = stack.enter_context(Status(CONSOLE, text))

        def passing(*args: Any) -> list[bool]:
            from windows_pipeline.query.records.spark_filter import spark_filter

            status.update(f"{text}; Spark evaluates the filter")
            return spark_filter(session(context, settings))(*args)

        yield passing


def session(context: typer.Context, settings: Settings) -> SparkSession:
    """Starts a Spark session whose messages do not mix with the command's output."""
    from pyspark.sql import SparkSession
    from pyspark.sql.utils import is_remote

    call = invocation(context)
    is_running = SparkSession.getActiveSession() is not None
    if call.start is None:
        from windows_pipeline.compat.spark_session import start_session

        spark = start_session(settings)
    else:
        spark = call.start(settings)
    if not is_remote() and (is_running or not call.log.is_open):
        # The JVM prints to the terminal. `main` prints one line for an error; Spark logs it all.
        spark.sparkContext.setLogLevel("FATAL")
        logging.getLogger("py4j").setLevel(logging.CRITICAL)
    return spark


def _logs() -> Path:
    """The folder of logs."""
    from windows_pipeline.settings import SETTINGS_VARIABLE

    settings = Path.cwd() / "settings.yaml"
    return Path(os.environ.get(SETTINGS_VARIABLE, settings)).absolute().parent / FOLDER
