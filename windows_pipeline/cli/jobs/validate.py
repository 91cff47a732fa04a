"""`validate`: reads pipeline files and reports their mistakes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from windows_pipeline.cli.arguments import project_settings
from windows_pipeline.cli.terminal.console import CONSOLE
from windows_pipeline.cli.terminal.printed import say
from windows_pipeline.text.problems import listed, nearest


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

    if files:
        loaded = load_files(map(_file_of, files), _modules())
    else:
        settings = project_settings()
        loaded = load_folder(settings.pipelines, settings.modules)
    refused = loaded.all_problems
    landing = _landing() if loaded.pipelines else None
    for file, pipeline in loaded.pipelines.items():
        if landing is not None:
            try:
                problem = folder_problem(file, pipeline.source, landing)
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


def _file_of(given: Path) -> Path:
    """The file of a pipeline that is given by its name; a path is itself.

    Raises:
        ConfigError: It is neither a file nor a pipeline's name.
    """
    from windows_pipeline.config import ConfigError, load_folder
    from windows_pipeline.settings import NoSettingsError

    if given.exists() or given.name != str(given) or given.suffix:
        return given
    try:
        settings = project_settings()
    except NoSettingsError:
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


def _modules() -> tuple[Path, ...]:
    """The modules of the settings; none without settings, as `validate FILE` works without them.

    Raises:
        SettingsError: The settings have mistakes.
    """
    from windows_pipeline.settings import NoSettingsError

    try:
        return project_settings().modules
    except NoSettingsError:
        return ()


def _landing() -> str | None:
    """Where relative source folders begin; None without settings, which `validate FILE` allows."""
    from windows_pipeline.settings import NoSettingsError

    try:
        return project_settings().landing
    except NoSettingsError as error:
        say("warning", f"source.path was not looked at: {error}")
        return None
