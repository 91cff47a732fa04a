"""Records commands that failed, so that the pipeline's targets are notified of the failures."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import typer

from windows_pipeline.cli.arguments import project_settings
from windows_pipeline.cli.terminal.console import ERRORS
from windows_pipeline.cli.terminal.printed import say

if TYPE_CHECKING:  # importing them takes seconds
    from windows_pipeline.checks.run import CheckResult
    from windows_pipeline.jobs import JobResult

_NOTED = frozenset({"run", "stream", "correct", "rebuild", "check", "maintain"})
"""The commands that a scheduler may run, whose output then nobody reads."""
_OF_USERS = (0, 2)
"""The exit statuses that nobody is notified of: done, and wrong arguments, files or tables."""


class FailedExit(typer.Exit):
    """Ends a command that has printed what failed.

    Attributes:
        reason: What failed, as the notification says it.
    """

    def __init__(self, code: int, reason: str) -> None:
        """Takes the exit status and the reason."""
        super().__init__(code)
        self.reason = reason


def failed_rules(results: Iterable[tuple[str, CheckResult]]) -> list[str]:
    """Names the rules that fail, warnings aside, with their days: a text for each table.

    Args:
        results: Results of checks, each with the name of the table.
    """
    from windows_pipeline.storage.arrival_units import days_text

    by_table: dict[str, list[str]] = {}
    for table, found in results:
        if not found.passed and not found.check.is_warning:
            days = sorted(found.failing_by_arrival_unit)
            on = f" on {days_text(days)}" if days else ""
            by_table.setdefault(table, []).append(f"{found.check.name} failed{on}")
    return [f"{table}: {', '.join(texts)}" for table, texts in by_table.items()]


def rules_of_jobs(results: Iterable[tuple[str, JobResult]]) -> Iterator[tuple[str, CheckResult]]:
    """The results of jobs' checks, each with the name of the job's first table."""
    return ((name, found) for name, result in results for found in result.checks)


def end_failed(reasons: Sequence[str]) -> None:
    """Ends the command with status 1 if there is a reason.

    Args:
        reasons: What failed or is left to do, without values of records.

    Raises:
        FailedExit: There is a reason.
    """
    if reasons:
        raise FailedExit(1, "; ".join(dict.fromkeys(reasons)))


@contextmanager
def noting_failures(command: str, arguments: Mapping[str, Any]) -> Iterator[None]:
    """Records a failure of a pipeline's command that nobody sees, and passes the failure on.

    Whoever reads the errors on a terminal knows of them, and exit status 2 is a mistake of whoever
    gave the command, or changed a file: of these nobody is notified.

    Args:
        command: The command's name.
        arguments: Its arguments.
    """
    try:
        yield
    except typer.Exit as end:
        text = "a check failed, or something is left to do: see its output"
        reason = end.reason if isinstance(end, FailedExit) else text
        _note(command, arguments, end.exit_code, reason)
        raise
    except typer.BadParameter:
        raise
    except Exception as error:
        from windows_pipeline.faults.explain import fault_of

        _note(command, arguments, fault_of(error).status, failure_text(error))
        raise


def failure_text(error: Exception) -> str:
    """What failed, in one line, as notifications and services say it."""
    from windows_pipeline.faults.explain import fault_of

    return " ".join(str(fault_of(error)).split())


def _note(command: str, arguments: Mapping[str, Any], status: int, text: str) -> None:
    if command not in _NOTED or status in _OF_USERS or ERRORS.file.isatty():
        return
    from windows_pipeline.config import ConfigError, load_folder
    from windows_pipeline.notify import note_failure
    from windows_pipeline.settings import SettingsError

    try:
        settings = project_settings()
        loaded = load_folder(settings.pipelines, settings.modules)
        for pipeline in loaded.pipelines.values():
            if pipeline.name == arguments.get("pipeline"):
                note_failure(pipeline, settings.warehouse, f"windows-pipeline {command}", text)
    except (ConfigError, SettingsError):
        return  # the command's own error says so
    except OSError as error:
        say("warning", f"nobody will be notified that this failed: {error}")
