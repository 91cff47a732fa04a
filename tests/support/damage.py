"""Damages files of tables, for tests: one bit of one byte at a time, by a seed."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

FLIPS = 40
"""How many flips to try of each kind of file."""


def flip(file: Path) -> None:
    """Changes a bit in the middle of a file for good."""
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 4
    file.write_bytes(content)


@contextmanager
def flipped(file: Path, byte: int, bit: int) -> Iterator[None]:
    """The file with one bit changed; it is as before at the end of the block."""
    before = file.read_bytes()
    changed = bytearray(before)
    changed[byte] ^= 1 << bit
    file.write_bytes(changed)
    try:
        yield
    finally:
        file.write_bytes(before)


def flips(
    files: list[Path], seed: int, times: int, part: str = "all"
) -> Iterator[tuple[Path, int, int]]:
    """Files, bytes and bits to flip, the same ones for the same seed.

    Args:
        files: The files.
        seed: Says which.
        times: How many.
        part: `data` or `footer` of Parquet files, or `all` of any file.
    """
    draw = random.Random(seed)
    for _ in range(times):
        file = draw.choice(sorted(files))
        content = file.read_bytes()
        footer = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
        first = footer if part == "footer" else 0
        last = footer if part == "data" else len(content)
        yield file, draw.randrange(first, last), draw.randrange(8)


def data_files(table: Path) -> list[Path]:
    """The Parquet files of a table."""
    return sorted(
        path
        for path in table.rglob("*.parquet")
        if not path.relative_to(table).parts[0].startswith("_")
    )


def log_files(table: Path, ending: str) -> list[Path]:
    """The files of a table's log whose name ends so."""
    return sorted((table / "_delta_log").glob(f"[0-9]*{ending}"))
