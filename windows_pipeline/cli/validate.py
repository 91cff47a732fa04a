"""`validate`: reads pipeline files and reports their mistakes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from windows_pipeline.cli.arguments import project_settings
from windows_pipeline.cli.console import CONSOLE
from windows_pipeline.cli.printed import tell


def validate(
    files: Annotated[
        list[Path] | None, typer.Argument(help="Pipeline files; all of the settings' if left out.")
    ] = None,
) -> None:
    """Reads pipeline files and says what is wrong with them.

    A source folder that does not exist yet is a warning; a file of that name is an error. Warns
    of declared columns that do not fit the newest landed records.
    """
    from windows_pipeline.config import ConfigError, folder_problem, load_files, load_folder
    from windows_pipeline.starter.declared_columns import column_warnings

    if files:
        loaded = load_files(files, _modules())
    else:
        settings = project_settings()
        loaded = load_folder(settings.pipelines, settings.modules)
    refused = loaded.all_problems
    landing = _landing() if loaded.pipelines else None
    for file, pipeline in loaded.pipelines.items():
        if landing is not None:
            problem = folder_problem(file, pipeline.source, landing)
            if problem is not None and problem.refused:
                refused.append(problem.text)
                continue
            warnings = [] if problem is None else [problem.text]
            for text in (*warnings, *column_warnings(file, pipeline.source, landing)):
                tell("warning", text)
        CONSOLE.print(f"{pipeline.name}: valid; windows: {', '.join(pipeline.windows)}")
    if refused:
        raise ConfigError(refused)


def _modules() -> tuple[Path, ...]:
    """The modules of the settings; none without settings, as `validate FILE` works without them."""
    from windows_pipeline.settings import SettingsError

    try:
        return project_settings().modules
    except SettingsError:
        return ()


def _landing() -> str | None:
    """Where relative source folders begin; None without settings, which `validate FILE` allows."""
    from windows_pipeline.settings import SettingsError

    try:
        return project_settings().landing
    except SettingsError as error:
        tell("warning", f"source.path was not looked at: {error}")
        return None
