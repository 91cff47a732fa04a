"""Reads small text files that users write; refuses folders, pipes, sockets and devices."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from windows_pipeline.text.problems import ConfigError

MAX_BYTES = 2**20


def read_text(path: Path) -> str:
    """Reads a regular file of at most 1 MiB in UTF-8.

    Raises:
        ConfigError: The file cannot be read, is not a regular file, is too large, or is not UTF-8.
    """
    try:
        content = _content(path)
    except OSError as error:
        text = f"cannot be read ({error.strerror}); check the path"
        raise ConfigError([f"{path}: {text}"]) from None
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise ConfigError([f"{path}:{line}: is not UTF-8; save it as UTF-8"]) from None


def _content(path: Path) -> bytes:
    _require_regular(path, path.stat().st_mode)
    # If a pipe replaces the file just now, O_NONBLOCK opens it without waiting for a writer.
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb") as file:
        _require_regular(path, os.fstat(file.fileno()).st_mode)
        content = file.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise ConfigError([f"{path}: has more than {MAX_BYTES:,} bytes; write a shorter file"])
    return content


def _require_regular(path: Path, mode: int) -> None:
    if stat.S_ISREG(mode):
        return
    kind = "a folder" if stat.S_ISDIR(mode) else "a pipe, a socket or a device"
    verb = "links to" if path.is_symlink() else "is"
    raise ConfigError([f"{path}: {verb} {kind}; put a YAML file there, or remove it"])
