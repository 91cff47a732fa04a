"""`validate`: reads pipeline files and reports their mistakes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from windows_pipeline.cli.arguments import project_settings
from windows_pipeline.cli.terminal.console import CONSOLE
from windows_pipeline.cli.terminal.printed import say
from windows_pipeline.text.problems import listed, nearest

if TYPE_CHECKING:
    from windows_pipeline.settings import Settings


def validate(
    files: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[PIPELINE|FILE]...",
            help="Pipelines, or files of some; all of the settings' folder if left out.",
        ),
    ] = None,
) -> None:
    """Reads pipeline files and says what is wrong with them.

    Warns of a source folder that does not exist yet.
    """
    from windows_pipeline.config import ConfigError, folder_problem, load_files, load_folder

    settings = _settings(is_needed=not files)
    if settings is not None and not files:
        loaded = load_folder(settings.pipelines, settings.modules)
    else:
        modules = () if settings is None else settings.modules
        loaded = load_files((_file_of(given, settings) for given in files or ()), modules)
    refused = loaded.all_problems
    for file, pipeline in loaded.pipelines.items():
        if settings is not None:
            try:
                problem = folder_problem(file, pipeline.source, settings.landing)
            except ConfigError as error:  # its path refers to a variable that is not set
                refused += error.problems
                continue
            if problem is not None and problem.refused:
                refused.append(problem.text)
                continue
            if problem is not None:
                say("warning", problem.text)
        CONSOLE.print(f"{pipeline.name}: valid; windows: {', '.join(pipeline.windows)}")
    if refused:
        raise ConfigError(refused)


def _settings(*, is_needed: bool) -> Settings | None:
    """The settings; None with a warning where there are none, and `validate FILE` needs none.

    Raises:
        NoSettingsError: There are none, and they are needed.
        SettingsError: The settings have mistakes.
    """
    from windows_pipeline.settings import NoSettingsError

    try:
        return project_settings()
    except NoSettingsError as error:
        if is_needed:
            raise
        say("warning", f"source.path was not looked at: {error}")
        return None


def _file_of(given: Path, settings: Settings | None) -> Path:
    """The file of a pipeline that is given by its name; a path is itself, as without settings.

    Raises:
        ConfigError: It is neither a file nor a pipeline's name.
    """
    from windows_pipeline.config import ConfigError, load_folder

    if settings is None or given.exists() or given.name != str(given) or given.suffix:
        return given
    loaded = load_folder(settings.pipelines, settings.modules)
    by_name = {pipeline.name: file for file, pipeline in loaded.pipelines.items()}
    # The name in a file that has mistakes may not be known; most files have the pipeline's name.
    of_files = {file.stem: file for file in (*loaded.pipelines, *loaded.problems)}
    name = str(given)
    file = by_name.get(name) or of_files.get(name)
    if file is None:
        known = sorted({*by_name, *of_files})
        fix = nearest(name, known, f"use one of {listed(known)}")
        raise ConfigError(
            [f"{name}: is neither a file nor a pipeline in {settings.pipelines}; {fix}"]
        )
    return file
