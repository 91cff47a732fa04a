"""Digests of a table's files, which reveal a file that changed after it was written.

A table in a local folder has a list, `_file_digests`: a line for each data file, each commit and
each checkpoint of Delta's log. Both writers, Spark's Delta and delta-rs, name the files of a write
only once they have committed it, so `remember` reads the files right after the commit. If a run is
killed in between, the next write or the next check computes the missing digests.

Readers of Delta and Parquet ignore names that begin with `_`, and so does Delta's VACUUM.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import zlib
from collections.abc import Collection, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, NamedTuple
from urllib.parse import unquote

LIST_NAME = "_file_digests"
LOG_FOLDER = "_delta_log"
LAST_CHECKPOINT = f"{LOG_FOLDER}/_last_checkpoint"
"""The file that helps readers find the newest checkpoint."""
LOG_FILE = re.compile(r"(\d{20})\.(json|crc|checkpoint(?:\.[\w.-]+)?\.parquet)")
"""The name of a file of Delta's log that is written once: a commit, its summary, a checkpoint."""
_BLOCK_BYTES = 1 << 20
_TAIL_BYTES = 1 << 12
"""How many bytes at the end of a list contain its last commit."""
_READERS = 4
"""How many threads read files; they release Python's lock to read and to compute digests."""


class FileDigest(NamedTuple):
    """A file as it was right after its commit.

    Attributes:
        path: The file's path below the table's folder.
        size_bytes: Its size.
        sha256: The digest of its bytes, in hexadecimal digits.
    """

    path: str
    size_bytes: int
    sha256: str


class KnownFiles(NamedTuple):
    """The list of a table's digests.

    Attributes:
        files: The first digest of each path.
        damaged_lines: The numbers, from 1, of damaged lines. An unfinished last line, which a
            killed run leaves, is not among them.
    """

    files: dict[str, FileDigest]
    damaged_lines: list[int]


def remember(location: str) -> None:
    """Adds the digests of all files that were committed since the list's last commit.

    Args:
        location: The table's local folder.

    Raises:
        OSError: A file cannot be read, or the list cannot be written. The list is unchanged then.
    """
    folder = Path(location)
    last = _last_commit(folder / LIST_NAME)
    names = [name for name in log_files(location) if last is None or _version(name) > last]
    commits = (name for name in names if name.endswith(".json"))
    remember_files(location, names, {path for name in commits for path in _added(folder, name)})


def remember_files(location: str, log_names: Iterable[str], data_paths: Iterable[str]) -> None:
    """Adds the digests of files; files that are gone are left out.

    Args:
        location: The table's local folder.
        log_names: Names of files of Delta's log.
        data_paths: Paths of data files below the table's folder.

    Raises:
        OSError: A file cannot be read, or the list cannot be written. The list is unchanged then.
    """
    # The last line must be the newest commit: the next call continues after it.
    names = sorted(log_names, key=lambda name: (name.endswith(".json"), name))
    paths = [*sorted(data_paths), *(f"{LOG_FOLDER}/{name}" for name in names)]
    found = [digest for digest in digests(location, paths) if digest is not None]
    if found:
        with _locked(Path(location) / LIST_NAME) as file:
            _drop_unfinished_line(file)
            file.write(b"".join(map(_line, found)))


def known_files(location: str) -> KnownFiles:
    """Reads a table's list; it is empty where there is none.

    Raises:
        OSError: The list cannot be read.
    """
    path = Path(location) / LIST_NAME
    lines = path.read_bytes().split(b"\n") if path.exists() else [b""]
    files: dict[str, FileDigest] = {}
    damaged = []
    # What follows the last line end is empty, or the line that a killed run did not finish.
    for number, line in enumerate(lines[:-1], start=1):
        digest = _parsed(line)
        if digest is not None:
            files.setdefault(digest.path, digest)
        elif line:
            damaged.append(number)
    return KnownFiles(files, damaged)


def forget_deleted(location: str, needed: Collection[str]) -> None:
    """Drops the lines of files that Delta has deleted, and damaged lines.

    Args:
        location: The table's local folder.
        needed: The paths of the data files of the newest version; their lines stay, as do those of
            the commits since the oldest that is there.

    Raises:
        OSError: The list cannot be read or replaced.
    """
    folder = Path(location)
    path = folder / LIST_NAME
    if not path.exists():
        return
    oldest = min(map(_version, log_files(location)), default=0)
    with _locked(path):
        stay = [
            known
            for known in known_files(location).files.values()
            if known.path in needed
            or (folder / known.path).exists()
            or (known.path.endswith(".json") and _version(Path(known.path).name) >= oldest)
        ]
        new = path.with_name(f"{LIST_NAME}.new")
        new.write_bytes(b"".join(map(_line, stay)))
        new.replace(path)


def digests(location: str, paths: Iterable[str]) -> Iterator[FileDigest | None]:
    """Computes digests of files, in their order; None where there is no file.

    Raises:
        OSError: A file cannot be read.
    """
    folder, wanted = Path(location), list(paths)
    if len(wanted) <= _READERS:  # starting threads takes longer than a few small files
        yield from (_digest(folder, path) for path in wanted)
        return
    with ThreadPoolExecutor(_READERS) as readers:
        yield from readers.map(lambda path: _digest(folder, path), wanted)


def _digest(folder: Path, path: str) -> FileDigest | None:
    digest, size_bytes = hashlib.sha256(), 0
    try:
        with (folder / path).open("rb") as file:
            while block := file.read(_BLOCK_BYTES):
                digest.update(block)
                size_bytes += len(block)
    except (FileNotFoundError, IsADirectoryError):
        return None
    return FileDigest(path, size_bytes, digest.hexdigest())


def _line(digest: FileDigest) -> bytes:
    """A line of the list, which begins with a checksum of its rest."""
    rest = f"{digest.sha256} {digest.size_bytes} {json.dumps(digest.path)}".encode()
    return b"%08x %s\n" % (zlib.crc32(rest), rest)


def _parsed(line: bytes) -> FileDigest | None:
    """The digest that a line holds; None if the line is damaged."""
    checksum, _, rest = line.partition(b" ")
    if checksum != b"%08x" % zlib.crc32(rest):
        return None
    sha256, size_bytes, path = rest.decode().split(" ", 2)
    return FileDigest(json.loads(path), int(size_bytes), sha256)


def _last_commit(path: Path) -> int | None:
    """The version of the last commit in a list; None if the list's end has none."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - _TAIL_BYTES))
            lines = file.read().split(b"\n")[:-1]
    except FileNotFoundError:
        return None
    parsed = filter(None, map(_parsed, lines))
    log_names = (Path(one.path).name for one in parsed if one.path.startswith(LOG_FOLDER))
    versions = [_version(name) for name in log_names if name.endswith(".json")]
    return max(versions, default=None)


def log_files(location: str) -> list[str]:
    """The names of the files of Delta's log that are written once.

    Raises:
        OSError: The folder of the log cannot be read.
    """
    with os.scandir(Path(location) / LOG_FOLDER) as entries:
        return [entry.name for entry in entries if LOG_FILE.fullmatch(entry.name)]


def _version(name: str) -> int:
    return int(name.split(".", 1)[0])


def _added(folder: Path, commit: str) -> Iterator[str]:
    """The paths of the data files that a commit adds; none if its text is damaged."""
    try:
        for line in (folder / LOG_FOLDER / commit).read_bytes().splitlines():
            if line.startswith(b'{"add"'):
                path = unquote(json.loads(line)["add"]["path"])
                if is_below(path):
                    yield path
    except (ValueError, KeyError, TypeError, FileNotFoundError):
        return


def is_below(path: str) -> bool:
    """Whether a path in Delta's log leads to a file below the table's folder."""
    parts = Path(path).parts
    return not path.startswith("/") and ".." not in parts and "://" not in path


def _drop_unfinished_line(file: BinaryIO) -> None:
    """Cuts off what a killed run left after the last line end."""
    file.seek(0)
    file.truncate(file.read().rfind(b"\n") + 1)


@contextmanager
def _locked(path: Path) -> Iterator[BinaryIO]:
    """Opens a list to append to it, while no other process does."""
    while True:
        with path.open("a+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            # `forget_deleted` may have replaced the list meanwhile.
            if path.exists() and os.path.samestat(os.fstat(file.fileno()), path.stat()):
                yield file
                return
