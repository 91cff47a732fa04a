"""Arguments that several commands share, and how their values are read."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from windows_pipeline.cli.terminal.printed import say

if TYPE_CHECKING:  # read when a command needs them, so that `--help` answers at once
    from windows_pipeline.config import Pipeline
    from windows_pipeline.settings import Settings

_MS = timedelta(milliseconds=1)
_PRECISIONS = {
    r"\d\d:\d\d:\d\d[.,]\d": _MS,
    r"\d\d:\d\d:\d\d": timedelta(seconds=1),
    r"\d\d:\d\d": timedelta(minutes=1),
    r"[ T]\d\d": timedelta(hours=1),
}
_DAY = timedelta(days=1)

PipelineName = Annotated[str, typer.Argument(metavar="PIPELINE", help="A pipeline's name.")]
WindowsName = Annotated[
    str | None, typer.Option("--windows", help="A window definition; the only one if left out.")
]
FirstDay = Annotated[
    str | None, typer.Option("--from", metavar="DAY", help="The first arrival day.")
]
LastDay = Annotated[str | None, typer.Option("--to", metavar="DAY", help="The last arrival day.")]


def project_settings() -> Settings:
    """The settings of the working directory."""
    from windows_pipeline.settings import load_settings

    return load_settings(Path.cwd())


def declared(name: str) -> tuple[Settings, Pipeline]:
    """The settings and the pipeline of a name; warns of pipeline files that have mistakes.

    Raises:
        ConfigError: No pipeline has the name, and some files have mistakes.
        ValueError: No pipeline has the name.
    """
    from windows_pipeline.config import ConfigError, load_folder

    settings = project_settings()
    loaded = load_folder(settings.pipelines, settings.modules)
    pipelines = {pipeline.name: pipeline for pipeline in loaded.pipelines.values()}
    if name not in pipelines:
        fix = f"use one of {', '.join(pipelines)}" if pipelines else "declare one there"
        missing = f"PIPELINE: {name!r} is not in {settings.pipelines}; {fix}"
        if loaded.problems:
            raise ConfigError([f"{missing}, or correct these files:", *loaded.all_problems])
        raise ValueError(missing)
    for file in loaded.problems:
        say(
            "warning",
            f"{file}: is left out, as it has mistakes; to see them: windows-pipeline validate",
        )
    return settings, pipelines[name]


def with_tables(name: str) -> tuple[Settings, Pipeline]:
    """The settings and the pipeline of a name, as `declared`, where the pipeline has tables.

    A warehouse that is not mounted is found before Spark starts, and nothing is written there.

    Raises:
        ConfigError: No pipeline has the name, and some files have mistakes.
        NoTableError: A local warehouse has no table of the pipeline.
        ValueError: No pipeline has the name.
    """
    from windows_pipeline.query.tables.local import NoTableError
    from windows_pipeline.storage.catalog import specs_of
    from windows_pipeline.storage.files.damage import LOG_FOLDER

    settings, pipeline = declared(name)
    tables = specs_of(pipeline, settings.warehouse)
    folders = [table.location for table in tables.written]
    is_local = settings.warehouse.startswith("/")
    if is_local and not any(Path(folder, LOG_FOLDER).is_dir() for folder in folders):
        raise NoTableError(tables.arrival_log)
    return settings, pipeline


def parsed_day(option: str, text: str) -> date:
    """The day that an option names.

    Raises:
        typer.BadParameter: The text is not a day.
    """
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise typer.BadParameter(f"{option}: {text!r} is no day; write it as 2013-03-08") from None


def parsed_days(first: str | None, last: str | None) -> tuple[date | None, date | None]:
    """The days of `--from` and `--to`.

    Raises:
        typer.BadParameter: A text is not a day, or the last day is before the first.
    """
    from_day = None if first is None else parsed_day("--from", first)
    to_day = None if last is None else parsed_day("--to", last)
    if from_day and to_day and to_day < from_day:
        raise typer.BadParameter(
            f"--to {to_day} must not be before --from {from_day}; swap them, or leave one out"
        )
    return from_day, to_day


def parsed_instant(option: str, text: str) -> datetime:
    """The instant that an option names; without a zone it is UTC, as commands print times.

    Raises:
        typer.BadParameter: The text is no time.
    """
    try:
        instant = datetime.fromisoformat(text)
    except ValueError:
        raise typer.BadParameter(
            f"{option}: {text!r} is no time; write it as '2013-03-08 21:15:00'"
        ) from None
    return instant if instant.tzinfo is not None else instant.replace(tzinfo=UTC)


def parsed_span(option: str, text: str) -> tuple[datetime, datetime]:
    """The first and the last millisecond of a time that is written as exactly as it is known.

    `2013-03-08 21:15` is the whole minute.

    Raises:
        typer.BadParameter: The text is no time.
    """
    first = parsed_instant(option, text)
    found = (precision for form, precision in _PRECISIONS.items() if re.search(form, text))
    return first, first + next(found, _DAY) - _MS


def chosen_windows(pipeline: Pipeline, name: str | None) -> str:
    """The name of a window definition; a pipeline's only definition needs no name.

    Raises:
        ValueError: The pipeline has no such definition, or several and the name is missing.
    """
    known = list(pipeline.windows)
    if name is None and len(known) == 1:
        return known[0]
    if name not in known:
        found = "is missing" if name is None else f"{pipeline.name} has no windows {name!r}"
        raise ValueError(f"--windows: {found}; use one of {', '.join(known)}")
    return name


def every_windows(pipeline: Pipeline, name: str | None) -> list[str]:
    """The name of a window definition as a list; all definitions if the name is missing.

    Raises:
        ValueError: The pipeline has no such definition.
    """
    return list(pipeline.windows) if name is None else [chosen_windows(pipeline, name)]
