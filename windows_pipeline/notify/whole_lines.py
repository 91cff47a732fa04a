"""Files of JSON lines that only grow: a line is there as a whole and on disk, or not at all.

A full disk or a killed command leaves a torn line at the end. Readers pass over it, and the next
writer cuts it, so that no line is written after it in the same line.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_BLOCK = 65_536
_TRIES, _BETWEEN_TRIES_S = 50, 0.1
"""How long to wait for another writer, which holds the file for one line."""


@contextmanager
def opened(path: str | Path) -> Iterator[int]:
    """Opens a file to append to it, and creates it if there is none.

    Raises:
        OSError: The file cannot be written, or is a link or no regular file.
    """
    # A pipe without a reader, in the file's place, would block the command.
    flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    descriptor = os.open(path, flags, 0o666)  # the umask decides
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "it is no regular file")
        yield descriptor
    finally:
        os.close(descriptor)


def append(path: str | Path, content: bytes) -> None:
    """Appends a line to a file that several processes may write.

    Args:
        path: The file.
        content: The line, without its end.

    Raises:
        OSError: The file cannot be written. It is as it was, without a torn line.
    """
    with opened(path) as descriptor:
        _lock(descriptor)
        append_lines(descriptor, content + b"\n")


def append_lines(descriptor: int, content: bytes) -> None:
    """Appends whole lines to a file that no other process writes now; on disk on return.

    Raises:
        OSError: The file cannot be written. It is as it was, without a torn line.
    """
    end = cut_torn_end(descriptor)
    left = content
    try:
        while left:
            left = left[os.write(descriptor, left) :]
        os.fsync(descriptor)
    except OSError:
        os.ftruncate(descriptor, end)
        raise


def cut_torn_end(descriptor: int) -> int:
    """Cuts what follows the last line end; returns the size that is left."""
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
    return end


def whole_lines(content: bytes) -> list[bytes]:
    """The lines of a file's content, without a torn one at the end."""
    return content.split(b"\n")[:-1]


def _lock(descriptor: int) -> None:
    """Keeps other writers out until the file is closed.

    Raises:
        BlockingIOError: Another process holds the file for seconds.
    """
    for _ in range(_TRIES):
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(_BETWEEN_TRIES_S)
        else:
            return
    raise BlockingIOError(errno.EAGAIN, "another process holds it")
