"""Finds a pipeline and its windows by their names, in the folder of a project."""

from __future__ import annotations

from pathlib import Path

from windows_pipeline.config import Pipeline, load_folder
from windows_pipeline.settings import load_settings


def declared_pipeline(name: str, project: str | Path) -> tuple[Pipeline, str]:
    """Finds a pipeline by its name; returns it with the folder of all tables.

    Args:
        name: The pipeline's name.
        project: The folder with settings.yaml.

    Raises:
        SettingsError: settings.yaml is not as it must be.
        ValueError: There is no such pipeline.
    """
    settings = load_settings(Path(project).absolute())
    loaded = load_folder(settings.pipelines, settings.modules).pipelines.values()
    pipelines = {found.name: found for found in loaded}
    if name not in pipelines:
        raise ValueError(
            f"pipeline: {name!r} must be declared in {settings.pipelines} without a mistake; "
            f"found: {', '.join(pipelines) or 'none'}. To see mistakes: windows-pipeline validate"
        )
    return pipelines[name], settings.warehouse


def declared_windows(
    pipeline: str, windows_name: str | None, project: str | Path
) -> tuple[Pipeline, str, str]:
    """Finds a window definition by its name; returns pipeline, name and the folder of all tables.

    Args:
        pipeline: The pipeline's name.
        windows_name: The definition's name; None for a pipeline's only one.
        project: The folder with settings.yaml.

    Raises:
        SettingsError: settings.yaml is not as it must be.
        ValueError: There is no such pipeline, or it has several definitions and none is named.
    """
    found, warehouse = declared_pipeline(pipeline, project)
    if windows_name is None:
        if len(found.windows) > 1:
            raise ValueError(
                f"windows_name: must name windows, as {pipeline} has several; use one of "
                f"{', '.join(found.windows)}"
            )
        (windows_name,) = found.windows
    return found, windows_name, warehouse
