"""Reads small text files that users write, and nothing else that has a file's name."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from windows_pipeline.text.problems import ConfigError

MAX_BYTES = 2**20
_WHAT = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


def read_text(path: Path) -> str:
    """Reads a regular file of at most 1 MiB in UTF-8.

    Raises:
        ConfigError: The file cannot be read, is no regular file, is too large, or is not UTF-8.
    """
    try:
        content = _content(path)
    except OSError as error:
        raise ConfigError([f"{path}: can't be read ({error.strerror}); check the path"]) from None
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise ConfigError([f"{path}:{line}: is not UTF-8; save it as UTF-8"]) from None


def _content(path: Path) -> bytes:
    _require_regular(path, path.stat().st_mode)
    # A pipe that took the file's place meanwhile is opened without waiting for its other end.
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb") as file:
        _require_regular(path, os.fstat(file.fileno()).st_mode)
        content = file.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise ConfigError([f"{path}: has more than {MAX_BYTES:,} bytes; write a shorter file"])
    return content


def _require_regular(path: Path, mode: int) -> None:
    if stat.S_ISREG(mode):
        return
    what = next((name for is_one, name in _WHAT if is_one(mode)), "no regular file")
    link = ", which the name links to" if path.is_symlink() else ""
    raise ConfigError([f"{path}: is {what}{link}; put a YAML file there, or take the name away"])
