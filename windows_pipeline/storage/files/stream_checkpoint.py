"""Checks that a stream's checkpoint is undamaged and fits the tables, and says how to fix it."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from pathlib import Path, PurePath

from windows_pipeline.storage.files.hadoop_checksums import (
    checksum_file,
    files_that_differ,
    is_unfinished,
)

PUT_BACK = (
    "put the checkpoint back as it was when the tables were written last; or delete the pipeline's "
    "folder of tables and start over"
)
"""The fix for a checkpoint whose damaged file says which records the tables have."""
RUN_AGAIN = (
    "then run the stream again: it computes at most the last micro-batch again, and the tables "
    "take no row twice"
)
"""The reason why a commit can be deleted."""
_COMMITS = "commits"


def damaged_files(folder: Path) -> dict[str, str]:
    """The damaged files of a checkpoint, by their paths below its folder, each with the reason.

    Args:
        folder: The checkpoint's local folder; without one there are none.

    Raises:
        OSError: A file cannot be read.
    """
    found = files_that_differ(folder) | dict.fromkeys(_empty_files(folder), "is empty")
    return {str(file.relative_to(folder)): found[file] for file in sorted(found)}


def is_commit(file: str) -> bool:
    """Whether a file of a checkpoint only says that a micro-batch ended."""
    return PurePath(file).parts[0] == _COMMITS


def way_out(folder: str, files: Sequence[str]) -> str:
    """The fix for damaged files of a checkpoint with the least loss.

    Commits are deleted with their checksum files, as Hadoop writes no file beside an old one.

    Args:
        folder: The checkpoint's local folder.
        files: The files' paths below it.
    """
    if not all(is_commit(file) for file in files):
        return PUT_BACK
    commits = [Path(folder) / file for file in files]
    paths = [str(path) for commit in commits for path in (commit, checksum_file(commit))]
    whose = "it and its checksum file" if len(files) == 1 else "them and their checksum files"
    return f"delete {whose} ({shlex.join(['rm', '-f', *paths])}), {RUN_AGAIN}"


def lacking(checkpoint: str, last: int, is_there: Callable[[str], bool]) -> str | None:
    """What a checkpoint lacks for a stream to resume; None if it lacks nothing.

    Args:
        checkpoint: The checkpoint's folder.
        last: The newest micro-batch in the arrival log.
        is_there: Whether a file exists.
    """
    offsets = f"{checkpoint}/offsets/{last}"
    has_metadata, has_offsets = is_there(f"{checkpoint}/metadata"), is_there(offsets)
    if has_offsets:
        return None if has_metadata else f"{checkpoint}/metadata is missing"
    if has_metadata:
        return (
            f"its tables end with micro-batch {last}, which its checkpoint must have: {offsets} "
            "is missing"
        )
    return (
        f"its tables end with micro-batch {last} of a stream, and {checkpoint} holds no checkpoint "
        "of that stream"
    )


def _empty_files(folder: Path) -> list[Path]:
    return [
        file
        for file in folder.rglob("*")
        if not file.name.endswith(".crc") and not is_unfinished(file) and _is_empty(file)
    ]


def _is_empty(file: Path) -> bool:
    try:
        return file.is_file() and file.stat().st_size == 0
    except FileNotFoundError:  # a stream that runs deletes old files
        return False
