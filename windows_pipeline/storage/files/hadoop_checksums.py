"""Compares files with the checksum files that Hadoop writes beside local files."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

_HEADER = struct.Struct(">4sI")
_MAGIC = b"crc\x00"
_DIGITS_BYTES = 4


def files_that_differ(folder: Path) -> dict[Path, str]:
    """The files below a folder that their checksum files contradict, each with the reason.

    `offsets/.3.crc` has a CRC-32 of each block of `offsets/3`. Files without one are left out.

    Raises:
        OSError: A file cannot be read.
    """
    found = {}
    for checksums in sorted(folder.rglob(".*.crc")):
        file = checksums.with_name(checksums.name.removeprefix(".").removesuffix(".crc"))
        if not file.exists():
            found[file] = "is gone; its checksum file is there"
        elif not _fits(file.read_bytes(), checksums.read_bytes()):
            found[file] = "has other bytes than its checksum file says"
    return found


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
