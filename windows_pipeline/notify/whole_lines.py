"""Files of JSON lines that only grow: a line is there as a whole and on disk, or not at all.

A full disk or a killed command leaves a torn line at the end. Readers pass over it, and the next
writer cuts it, so that no line is written after it in the same line.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import stat
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

_BLOCK = 65_536
_TRIES, _BETWEEN_TRIES_S = 50, 0.1
"""How long to wait for another writer, which holds the file for one line."""


class LinesFile:
    """An open file that no other process writes."""

    def __init__(self, descriptor: int) -> None:
        """Takes the file, and cuts the torn line of a killed command."""
        self._descriptor = descriptor
        _cut_torn_end(descriptor)

    def read(self) -> Iterator[dict[str, Any]]:
        """The lines that are JSON objects."""
        with os.fdopen(os.dup(self._descriptor), "rb") as file:
            file.seek(0)
            return json_objects(file.read())

    def append(self, lines: Iterable[Mapping[str, Any]]) -> None:
        """Adds lines; they are on disk on return.

        Raises:
            OSError: The file cannot be written. It is as it was, without a torn line.
        """
        end = os.fstat(self._descriptor).st_size
        left = b"".join(json_line(line) + b"\n" for line in lines)
        try:
            while left:
                left = left[os.write(self._descriptor, left) :]
            os.fsync(self._descriptor)
        except OSError:
            os.ftruncate(self._descriptor, end)
            raise


@contextmanager
def alone(path: str | Path, tries: int = 1) -> Iterator[LinesFile]:
    """Opens a file to append to it, and keeps others that do so from it within the block.

    Args:
        path: The file, which is created if there is none.
        tries: How often to try where another process has the file.

    Raises:
        BlockingIOError: Another process has the file.
        OSError: The file cannot be written, or is a link or no regular file.
    """
    # A pipe without a reader, in the file's place, would block the command.
    flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    descriptor = os.open(path, flags, 0o666)  # the umask decides
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "it is no regular file")
        _lock(descriptor, tries)
        yield LinesFile(descriptor)
    finally:
        os.close(descriptor)


def append(path: str | Path, line: Mapping[str, Any]) -> None:
    """Appends a line to a file that several processes may write; it is on disk on return.

    Raises:
        OSError: The file cannot be written. It is as it was, without a torn line.
    """
    with alone(path, _TRIES) as file:
        file.append([line])


def json_line(content: Mapping[str, Any]) -> bytes:
    """A JSON object in a line, without the line's end."""
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
    return text.encode(errors="backslashreplace")


def json_objects(content: bytes) -> Iterator[dict[str, Any]]:
    """The lines of a file's content that are JSON objects; none of a torn line at the end."""
    for line in content.split(b"\n")[:-1]:
        try:
            found = json.loads(line)
        except ValueError:
            continue
        if isinstance(found, dict):
            yield found


def _lock(descriptor: int, tries: int) -> None:
    """Keeps other writers out until the file is closed."""
    for _ in range(tries):
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(_BETWEEN_TRIES_S)
        else:
            return
    raise BlockingIOError(errno.EAGAIN, "another process holds it")


def _cut_torn_end(descriptor: int) -> None:
    """Cuts what follows the last line end."""
    size = end = os.fstat(descriptor).st_size
    while end:
        begin = max(0, end - _BLOCK)
        found = os.pread(descriptor, end - begin, begin).rfind(b"\n")
        if found >= 0:
            end = begin + found + 1
            break
        end = begin
    if end < size:
        os.ftruncate(descriptor, end)
