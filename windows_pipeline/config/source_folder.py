"""Looks whether the folder of a pipeline's source exists, if this machine can see it."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from windows_pipeline.config.source import Source
from windows_pipeline.text.locations import resolve
from windows_pipeline.text.yaml_text import read_yaml


@dataclass(frozen=True, slots=True)
class FolderProblem:
    """A source's path that does not lead to a folder.

    Attributes:
        text: The file, the line, the field, the value, what is wrong and the fix.
        refused: Whether no folder can ever be there; otherwise the path may be right, and the
            first files are still to land.
    """

    text: str
    refused: bool


def folder_problem(file: Path, source: Source, landing: str) -> FolderProblem | None:
    """Says what is wrong with the path of a source; None where this machine can't see it.

    Args:
        file: The pipeline's file, for the line.
        source: The pipeline's source, read from that file.
        landing: The folder or URI of the settings that relative paths start at.

    Raises:
        ConfigError: The path refers to a variable that is not set.
    """
    location = None if source.path is None else resolve(source.required_path, landing)
    if location is None or "://" in location:
        return None
    folder = Path(location).absolute()
    try:
        found = _missing_folder(folder, "one folder per day" if source.is_landed else "the table")
    except OSError as error:
        found = f"is {folder}, which cannot be read ({error.strerror}); check the path", False
    if found is None:
        return None
    text, refused = found
    line = read_yaml(file).line(("source", "path"))
    return FolderProblem(f"{file}:{line}: source.path: {source.path!r} {text}", refused)


def _missing_folder(folder: Path, content: str) -> tuple[str, bool] | None:
    """Returns what is wrong with its fix, and whether no folder can ever be there."""
    parts = [folder, *folder.parents]
    existing = next(part for part in parts if part.exists())
    if not existing.is_dir():
        return f"leads to {existing}, which is a file; write the folder that holds {content}", True
    if existing == folder:
        return None
    missing = parts[parts.index(existing) - 1]
    siblings = [sibling.name for sibling in existing.iterdir() if sibling.is_dir()]
    near = get_close_matches(missing.name, siblings, 1)
    fix = (
        f"did you mean {str(existing / near[0])!r}?"
        if near
        else "correct it, or land the first files there"
    )
    return f"is {folder}, which does not exist yet; {fix}", False
