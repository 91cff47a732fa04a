"""Text files are read to their very end, and their lines with bounded memory (rule A8)."""

from __future__ import annotations

import bz2
import gzip
import re
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, repeat
from pathlib import Path
from random import Random

import pyarrow as pa
import pytest
import zstandard
from pyarrow.fs import LocalFileSystem

from windows_pipeline.sources.bad_files import BadFileError
from windows_pipeline.sources.lines import lines_in
from windows_pipeline.sources.text_files import opened

PACKERS = {".gz": gzip.compress, ".bz2": bz2.compress, ".zst": zstandard.compress}
FIRST, SECOND = b'{"k": "a", "t": 1}\n' * 3, b'{"k": "b", "t": 2}\n' * 3
CHUNKS_BYTES = (7, 1 << 20)
SKIPPABLE = b"\x50\x2a\x4d\x18\x04\x00\x00\x00abcd"
"""A frame of zstd without text."""


def unpacked(file: Path, chunk_bytes: int) -> bytes:
    with opened(LocalFileSystem(), str(file), "a", chunk_bytes) as chunks:
        return b"".join(chunks)


@pytest.mark.parametrize("chunk_bytes", CHUNKS_BYTES)
@pytest.mark.parametrize(("ending", "pack"), PACKERS.items())
def test_a_compression_is_read_to_its_very_end(
    tmp_path: Path, ending: str, pack: Callable[[bytes], bytes], chunk_bytes: int
) -> None:
    """It may have several parts; it must not be cut, and nothing else may follow."""
    file = tmp_path / f"a{ending}"
    first, second, none = pack(FIRST), pack(SECOND), pack(b"")
    text = FIRST + SECOND
    whole = [first + second, first + none + second, none + first + second + none]
    for right in whole if ending != ".zst" else [*whole, first + SKIPPABLE + second + SKIPPABLE]:
        file.write_bytes(right)
        assert unpacked(file, chunk_bytes) == text
    ends = {len(first), len(first + second)}
    cut = [(first + second)[:size] for size in range(1, len(first + second)) if size not in ends]
    others = [b"\n", b"\x00", b"\x00" * 512, b"garbage!", first[:1], first[:2], first[:4]]
    for wrong in [*cut, *(one + other for one in (first, first + second) for other in others)]:
        file.write_bytes(wrong)
        with pytest.raises(BadFileError, match=r"^a: can't be read \("):
            unpacked(file, chunk_bytes)


def cut_anywhere(data: bytes, random: Random) -> Iterator[bytes]:
    while data:
        size = random.choice((0, 1, 2, 5, 20))
        yield data[:size]
        data = data[size:]


def lines_of(found: Iterator[pa.Array]) -> list[bytes]:
    return [line for lines in found for line in lines.cast(pa.binary()).to_pylist()]


def test_each_line_is_in_one_part_of_its_file_however_the_text_is_cut() -> None:
    signs: Sequence[bytes] = [b"a", b"bb", b"\n", b"\r\n", b"\r", b"\xff", b" ", b"xyz" * 5]
    for seed in range(500):
        random = Random(seed)
        data = random.choice((b"", b"\xef\xbb\xbf")) + b"".join(random.choices(signs, k=20))
        written = [line for line in re.split(b"[\r\n]", data.removeprefix(b"\xef\xbb\xbf")) if line]
        assert lines_of(lines_in(cut_anywhere(data, random), 1000, "a")) == written
        size = random.randrange(1, 12)
        found = []
        for begin in range(0, len(data), size):
            end = begin + size if begin + size < len(data) else None
            text = cut_anywhere(data[max(begin - 1, 0) :], random)
            found += lines_of(lines_in(text, 1000, "a", begin, end))
        assert found == written, (seed, size)


@pytest.mark.parametrize("begin", [b"", b"\xef\xbb\xbf"])
def test_a_line_that_is_too_long_is_not_read_to_its_end(begin: bytes) -> None:
    assert lines_of(lines_in([begin, b"abcde\nabcde"], 5, "a")) == [b"abcde"] * 2
    at = f"the one at byte {len(begin):,} is longer; it begins with xxxx"
    for text in ([begin, b"x" * 6], [begin, b"x" * 6 + b"\n"], chain([begin], repeat(b"x" * 4))):
        with pytest.raises(BadFileError, match=f"^a: a line must have at most 5 bytes .*{at}"):
            lines_of(lines_in(text, 5, "a"))
    with pytest.raises(BadFileError, match="at byte 2 is longer"):
        lines_of(lines_in(chain([b"a\n"], repeat(b"x")), 5, "a"))
