"""Compares landed files with what they were when their day was ingested."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import date
from typing import NamedTuple

from windows_pipeline.sources.landing import FileState

KnownFiles = Mapping[tuple[date, str], tuple[int | None, int | None]]
"""Size in bytes and time of writing in ms of each ingested file, by day and name."""


class ChangedFile(NamedTuple):
    """A landed file that has changed since its day was ingested.

    Attributes:
        day: The day.
        name: The file's name.
        change: How the file differs, in words.
    """

    day: date
    name: str
    change: str


def file_changes(known: KnownFiles, files: Iterable[FileState]) -> list[ChangedFile]:
    """The files that were added, deleted or changed, by day and name.

    Args:
        known: The files as they were when they were ingested.
        files: The files as they are.
    """
    found = {(file.day, file.name): file for file in files}
    return [
        ChangedFile(*file, change)
        for file in sorted(found.keys() | known.keys())
        if (change := _difference(known.get(file), found.get(file)))
    ]


def _difference(known: tuple[int | None, int | None] | None, found: FileState | None) -> str | None:
    if known is None:
        return "came later"
    if found is None:
        return "is gone"
    size_bytes, written_ms = known
    if size_bytes is not None and found.size_bytes != size_bytes:
        return f"has {found.size_bytes:,} bytes, and had {size_bytes:,}"
    return None if found.written_ms == written_ms else "was written again"
