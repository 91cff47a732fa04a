"""Compares local files with the checksum files that Hadoop writes for them."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

_HEADER = struct.Struct(">4sI")
_MAGIC = b"crc\x00"
_DIGITS_BYTES = 4


def files_that_differ(folder: Path) -> dict[Path, str]:
    """The files below a folder that their checksum files contradict, each with the reason.

    `offsets/.3.crc` has a CRC-32 of each block of `offsets/3`. Files without one are left out, as
    are files that a process which was killed had not finished.

    Raises:
        OSError: A file cannot be read.
    """
    found = {}
    for checksums in sorted(folder.rglob(".*.crc")):
        file = checksums.with_name(checksums.name.removeprefix(".").removesuffix(".crc"))
        if not is_unfinished(file) and (what := _difference(file, checksums)):
            found[file] = what
    return found


def checksum_file(file: Path) -> Path:
    """The path of the checksum file that Hadoop writes for a local file."""
    return file.with_name(f".{file.name}.crc")


def is_unfinished(file: Path) -> bool:
    """Whether the file is Spark's temporary one: Spark writes `.3.UUID.tmp`, then renames it.

    Hadoop renames the checksum file last, so a process that is killed may leave that one alone.
    """
    return file.name.startswith(".") and file.name.endswith(".tmp")


def _difference(file: Path, checksums: Path) -> str | None:
    """What is wrong with a file; nothing if a writer is deleting it, checksum file first."""
    wanted = _bytes_of(checksums)
    content = _bytes_of(file)
    if wanted is None:
        return None
    if content is None:
        return "is gone; its checksum file is there" if checksums.exists() else None
    return None if _fits(content, wanted) else "has other bytes than its checksum file says"


def _bytes_of(file: Path) -> bytes | None:
    try:
        return file.read_bytes()
    except FileNotFoundError:
        return None


def _fits(content: bytes, checksums: bytes) -> bool:
    if len(checksums) < _HEADER.size:
        return False
    magic, block = _HEADER.unpack_from(checksums)
    if magic != _MAGIC or not block:
        return False
    starts = range(0, len(content), block)
    wanted = (zlib.crc32(content[start : start + block]) for start in starts)
    return checksums[_HEADER.size :] == b"".join(
        crc.to_bytes(_DIGITS_BYTES, "big") for crc in wanted
    )
