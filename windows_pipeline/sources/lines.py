"""Finds the lines of a text file as a stream, with memory for a chunk and the longest line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain

import numpy as np
import pyarrow as pa

from windows_pipeline.sources.bad_files import BadFileError

_BOM = b"\xef\xbb\xbf"
_LF, _CR = b"\n\r"
_SHOWN_BYTES = 60
"""How much an error shows of a line that is too long."""


def lines_in(
    chunks: Iterable[bytes], most_bytes: int, file: str, begin: int = 0, end: int | None = None
) -> Iterator[pa.Array]:
    """The lines of a file, or of a part of it, without line breaks; empty lines are left out.

    LF, CR LF and CR end a line. A line belongs to the part in which it begins.

    Args:
        chunks: The text, cut anywhere: from the file's begin, or from the byte before the part.
        most_bytes: The most bytes that a line may have.
        file: The file's name in errors.
        begin: The byte at which the part begins.
        end: The byte at which the next part begins; None if no part follows.

    Yields:
        Some lines as texts, whose bytes need not be UTF-8.

    Raises:
        BadFileError: A line is longer than it may be.
    """
    at = 0
    if begin:
        chunks, at = _after_line_break(iter(chunks), begin - 1)
    for data, all_starts, all_ends in _split(chunks, most_bytes + len(_BOM)):
        size = int(all_ends[-1]) + 1
        count = None if end is None else np.searchsorted(all_starts, end - at)
        starts, ends = all_starts[:count], all_ends[:count]
        if at == 0 and data.startswith(_BOM):
            starts[0] = len(_BOM)
        is_long = ends - starts > most_bytes
        if is_long.any():
            start = int(starts[is_long.argmax()])
            raise _too_long(data[start : start + _SHOWN_BYTES], at + start, most_bytes, file)
        yield _texts(data, starts, ends)
        at += size
        if end is not None and at >= end:
            return


def _after_line_break(chunks: Iterator[bytes], at: int) -> tuple[Iterable[bytes], int]:
    """The text after the first line break, and where in the file it begins."""
    for chunk in chunks:
        breaks = _breaks(chunk)
        if len(breaks):
            first = int(breaks[0]) + 1
            return chain([chunk[first:]], chunks), at + first
        at += len(chunk)
    return (), at


def _split(
    chunks: Iterable[bytes], most_bytes: int
) -> Iterator[tuple[bytes, np.ndarray, np.ndarray]]:
    """Texts with the begin and end of each of their lines.

    A line that is longer than it may be is cut: the text ends within it.
    """
    held: list[bytes] = []
    size = 0
    for chunk in chunks:
        breaks = _breaks(chunk)
        held.append(chunk)
        if len(breaks):
            data, ends = b"".join(held), breaks + size
            yield data, np.append(0, ends[:-1] + 1), ends
            held = [data[ends[-1] + 1 :]]
            size = len(held[0])
        else:
            size += len(chunk)
        if size > most_bytes:
            break
    if size:
        yield b"".join(held), np.array([0]), np.array([size])


def _breaks(chunk: bytes) -> np.ndarray:
    data = np.frombuffer(chunk, np.uint8)
    return np.flatnonzero((data == _LF) | (data == _CR))


def _texts(data: bytes, starts: np.ndarray, ends: np.ndarray) -> pa.Array:
    """The lines, but for empty ones."""
    offsets = np.zeros(2 * len(starts) + 1, np.int32)  # lines, and the line breaks between them
    offsets[:-1:2], offsets[1::2] = starts, ends
    offsets[-1] = ends.max(initial=0)
    of_both = pa.StringArray.from_buffers(
        len(offsets) - 1, pa.py_buffer(offsets), pa.py_buffer(data)
    )
    return of_both.take(pa.array(2 * np.flatnonzero(ends > starts)))


def _too_long(text: bytes, at: int, most_bytes: int, file: str) -> BadFileError:
    shown = text.decode(errors="replace")
    cause = (
        f"a line must have at most {most_bytes:,} bytes (source.max_record_bytes), but the one at "
        f"byte {at:,} is longer; it begins with {shown} ..."
    )
    return BadFileError(file, cause, "end each record with a line break, or raise the limit")
