"""Compares a table's files with their digests and sizes, and checks Delta's log. No Spark."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable

from windows_pipeline.storage.files import digests as file_digests
from windows_pipeline.storage.files.damage import TableDamagedError, damage_of
from windows_pipeline.storage.files.delta_log import entries_of_files
from windows_pipeline.storage.files.digests import (
    LAST_CHECKPOINT,
    LIST_NAME,
    LOG_FOLDER,
    FileDigest,
)


class Damage(NamedTuple):
    """A file that differs from what was written.

    Attributes:
        file: Its path below the table's folder.
        what: What is wrong, in words.
    """

    file: str
    what: str


class CheckedFiles(NamedTuple):
    """What comparing a table's files found.

    Attributes:
        damages: The damaged files.
        compared: How many files have the digest that they had after their commit.
        new: The data files that had no digest; each was read, and has one now.
        live: The log's entries of the data files; None if the log cannot be read.
    """

    damages: list[Damage]
    compared: int
    new: int
    live: pa.Table | None


def check_files(location: str) -> CheckedFiles:
    """Compares the files of a table's newest version, and its log, with their digests.

    Files without a digest are read, and get one. Other files of older versions are left out: only
    time travel and the change data feed read them.

    Args:
        location: The table's local folder.

    Raises:
        OSError: A file or folder cannot be read for another reason than damage.
    """
    known = file_digests.known_files(location)
    damages = [Damage(LIST_NAME, f"line {number} is damaged") for number in known.damaged_lines]
    folder = Path(location)
    names = sorted(file_digests.log_files(location))
    damages += _log_damages(folder, names, known.files)
    live, paths = None, []
    try:
        live = _live_files(location)
        paths = [path for path in live["path"].to_pylist() if file_digests.is_below(path)]
    except TableDamagedError as error:
        damages.append(Damage(LOG_FOLDER, f"the log cannot be read: {error.cause}"))
    log_paths = [f"{LOG_FOLDER}/{name}" for name in names]
    listed = [path for path in (*paths, *log_paths) if path in known.files]
    compared = 0
    for wanted, found in zip(listed, file_digests.digests(location, listed), strict=True):
        difference = _difference(known.files[wanted], found)
        compared += difference is None
        if difference is not None:
            damages.append(Damage(wanted, difference))
    unlisted = [path for path in paths if path not in known.files]
    unreadable = [Damage(path, why) for path in unlisted if (why := _why_unreadable(folder / path))]
    damages += unreadable
    damaged = {damage.file for damage in damages}
    new_files = [path for path in unlisted if path not in damaged]
    new_log = [
        name
        for name, path in zip(names, log_paths, strict=True)
        if path not in known.files and path not in damaged
    ]
    if new_files or new_log:
        file_digests.remember_files(location, new_log, new_files)
    return CheckedFiles(damages, compared, len(new_files), live)


def _live_files(location: str) -> pa.Table:
    with damage_of(location, of_log=True):
        return entries_of_files(DeltaTable(location))


def _difference(known: FileDigest, found: FileDigest | None) -> str | None:
    if found is None:
        return "is gone"
    if found.size_bytes != known.size_bytes:
        return f"has {found.size_bytes:,} bytes, and had {known.size_bytes:,} when it was written"
    if found.sha256 != known.sha256:
        return "has other bytes than when it was written (another SHA-256)"
    return None


def _log_damages(folder: Path, names: list[str], known: dict[str, FileDigest]) -> Iterator[Damage]:
    """Missing commits, commits that are not JSON, and checkpoints that are not Parquet."""
    commits = {int(name[:20]) for name in names if name.endswith(".json")}
    checkpoints = {int(name[:20]) for name in names if name.endswith(".parquet")}
    remembered = {
        int(Path(path).name[:20])
        for path in known
        if path.startswith(LOG_FOLDER) and path.endswith(".json")
    }
    # Delta deletes expired commits, all of them before a checkpoint.
    first = min(commits, default=0)
    newest = max(commits | checkpoints | remembered, default=-1)
    if first and not any(version >= first - 1 for version in checkpoints):
        yield Damage(LOG_FOLDER, f"begins with version {first}, and has no checkpoint of it")
    for version in range(first, newest + 1):
        if version not in commits:
            yield Damage(f"{LOG_FOLDER}/{version:020}.json", "is gone")
    for name in names:
        path = f"{LOG_FOLDER}/{name}"
        # A file with a digest need not be read again.
        if path not in known and (why := _why_unreadable(folder / path)):
            yield Damage(path, why)
    yield from _last_checkpoint_damages(folder, names)


def _last_checkpoint_damages(folder: Path, names: list[str]) -> Iterator[Damage]:
    path = folder / LAST_CHECKPOINT
    if not path.exists():
        return
    try:
        version = json.loads(path.read_bytes())["version"]
        is_there = any(name.startswith(f"{version:020}.checkpoint") for name in names)
    except (ValueError, KeyError, TypeError):
        yield Damage(LAST_CHECKPOINT, "is not the JSON of a checkpoint's version")
        return
    if not is_there:
        yield Damage(LAST_CHECKPOINT, f"names version {version}, which has no checkpoint")


def _why_unreadable(path: Path) -> str | None:
    """Why a Parquet or JSON file cannot be read to its end; None if it can."""
    try:
        if path.suffix == ".parquet":
            with pq.ParquetFile(path, page_checksum_verification=True) as file:
                for _ in file.iter_batches():
                    pass
        else:
            lines = path.read_bytes().splitlines()
            for line in lines:
                json.loads(line)
            if not lines:
                return "is empty"
    except FileNotFoundError:
        return "is gone"
    except (ValueError, OSError, pa.ArrowException) as error:
        return f"cannot be read: {str(error).splitlines()[0][:200]}"
    return None
