"""Whether a pipeline's source lies where its file says, as far as this machine can see."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from windows_pipeline.config.model import Source
from windows_pipeline.text.locations import resolve
from windows_pipeline.text.yaml_text import read_yaml


@dataclass(frozen=True, slots=True)
class Misplaced:
    """A source's path that leads to no folder.

    Attributes:
        text: The file, the line, the field, the value, what is wrong and the cure.
        refused: Whether no source can lie there; otherwise its first files may be still to land.
    """

    text: str
    refused: bool


def misplaced(file: Path, source: Source, landing: str) -> Misplaced | None:
    """What is wrong with where a source's folder is; None for what lies elsewhere than in files.

    Args:
        file: The pipeline's file, for the line.
        source: The pipeline's source, as that file has it.
        landing: What a relative path is relative to, as the settings have it.
    """
    place = None if source.path is None else resolve(source.path, landing)
    if place is None or "://" in place:
        return None
    folder = Path(place).absolute()
    try:
        told = _misplaced_folder(folder, "one folder a day" if source.is_landed else "the table")
    except OSError as error:
        told = f"is {folder}, which can't be looked at ({error.strerror}); check the path", False
    if told is None:
        return None
    text, refused = told
    line = read_yaml(file).line(("source", "path"))
    return Misplaced(f"{file}:{line}: source.path: {source.path!r} {text}", refused)


def _misplaced_folder(folder: Path, holds: str) -> tuple[str, bool] | None:
    """What is wrong with the cure, and whether no folder can be there."""
    parts = [folder, *folder.parents]
    found = next(part for part in parts if part.exists())
    if not found.is_dir():
        return f"leads to {found}, a file; write the folder that holds {holds}", True
    if found == folder:
        return None
    missing = parts[parts.index(found) - 1]
    beside = [sibling.name for sibling in found.iterdir() if sibling.is_dir()]
    near = get_close_matches(missing.name, beside, 1)
    cure = (
        f"did you mean {str(found / near[0])!r}?"
        if near
        else "correct it, or land the first files there"
    )
    return f"is {folder}, where no folder is yet; {cure}", False
