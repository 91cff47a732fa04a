"""`validate`: reads pipeline files and reports their mistakes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from windows_pipeline.cli.arguments import project_settings
from windows_pipeline.cli.console import CONSOLE
from windows_pipeline.cli.printed import tell

if TYPE_CHECKING:  # read when the command runs, so that `--help` answers at once
    from windows_pipeline.config import FolderProblem, Pipeline


def validate(
    files: Annotated[
        list[Path] | None, typer.Argument(help="Pipeline files; all of the settings' if left out.")
    ] = None,
) -> None:
    """Reads pipeline files and says what is wrong with them.

    A source folder that does not exist yet is a warning; a file of that name is an error. Warns
    of declared columns that do not fit the newest landed records.
    """
    from windows_pipeline.config import ConfigError, load_files, load_folder

    if files:
        loaded = load_files(files, _modules())
    else:
        settings = project_settings()
        loaded = load_folder(settings.pipelines, settings.modules)
    if loaded.problems:
        for pipeline in loaded.pipelines.values():
            _print_valid(pipeline)
        raise ConfigError(loaded.all_problems)
    pipelines = loaded.pipelines
    found = _misplaced(pipelines)
    refused = [problem.text for problem in found if problem.refused]
    if refused:
        raise ConfigError(refused)
    for problem in found:
        tell("warning", problem.text)
    for text in _unfit_columns(pipelines):
        tell("warning", text)
    for pipeline in pipelines.values():
        _print_valid(pipeline)


def _print_valid(pipeline: Pipeline) -> None:
    CONSOLE.print(f"{pipeline.name}: valid; windows: {', '.join(pipeline.windows)}")


def _modules() -> tuple[Path, ...]:
    """The modules of the settings; none without settings, as `validate FILE` works without them."""
    from windows_pipeline.settings import SettingsError

    try:
        return project_settings().modules
    except SettingsError:
        return ()


def _misplaced(pipelines: Mapping[Path, Pipeline]) -> list[FolderProblem]:
    """What is wrong with the source folders, by pipeline file."""
    from windows_pipeline.config import FolderProblem, folder_problem
    from windows_pipeline.settings import SettingsError

    try:
        landing = project_settings().landing
    except SettingsError as error:
        # `validate FILE` works without settings; relative paths can't be resolved then.
        return [FolderProblem(f"source.path was not looked at: {error}", refused=False)]
    found = [folder_problem(file, pipeline.source, landing) for file, pipeline in pipelines.items()]
    return [problem for problem in found if problem is not None]


def _unfit_columns(pipelines: Mapping[Path, Pipeline]) -> list[str]:
    """What is wrong with the declared columns, in the newest landed records."""
    from windows_pipeline.settings import SettingsError
    from windows_pipeline.starter.declared_columns import column_warnings

    try:
        landing = project_settings().landing
    except SettingsError:
        return []
    return [
        text
        for file, pipeline in pipelines.items()
        for text in column_warnings(file, pipeline.source, landing)
    ]
