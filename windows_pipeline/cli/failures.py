"""Records commands that failed, so that the pipeline's targets are notified of the failures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import typer

from windows_pipeline.cli.arguments import project_settings
from windows_pipeline.cli.terminal.printed import say

_NOTED = frozenset({"run", "stream", "correct", "rebuild", "check", "maintain"})
"""The commands that a scheduler may run, whose output then nobody reads."""


class FailedExit(typer.Exit):
    """Ends a command that has printed what failed.

    Attributes:
        reason: What failed, as the notification says it.
    """

    def __init__(self, code: int, reason: str) -> None:
        """Takes the exit status and the reason."""
        super().__init__(code)
        self.reason = reason


@contextmanager
def noting_failures(command: str, arguments: Mapping[str, Any]) -> Iterator[None]:
    """Records any failure of a pipeline's command, and passes the failure on.

    Args:
        command: The command's name.
        arguments: Its arguments.
    """
    try:
        yield
    except typer.Exit as end:
        if end.exit_code:
            text = "a check failed, or something is left to do: see its output"
            _note(command, arguments, end.reason if isinstance(end, FailedExit) else text)
        raise
    except Exception as error:
        _note(command, arguments, _text(error))
        raise


def _text(error: Exception) -> str:
    from windows_pipeline.faults.chain import innermost
    from windows_pipeline.faults.explain import explained

    fault = explained(error)
    return " ".join((innermost(error) if fault is None else str(fault)).split())


def _note(command: str, arguments: Mapping[str, Any], text: str) -> None:
    if command not in _NOTED:
        return
    from windows_pipeline.config import ConfigError, load_folder
    from windows_pipeline.notify.deliver import note_failure
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
