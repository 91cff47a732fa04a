"""Finds the records of a CSV file (RFC 4180) as a stream: decodes the text, and scans it in pieces.

Memory is bounded by the size of a piece and of the largest record, not by the file.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from windows_pipeline.sources.bad_files import BadFileError
from windows_pipeline.sources.csv.kernel import scan_records

CHUNK_BYTES = 1 << 20
"""How many bytes to read at a time."""
_CELLS = 1 << 17
"""The most records that are scanned at once, times the number of columns."""
_BOM = b"\xef\xbb\xbf"
_NOT_TEXT = "windows_pipeline.not_text"
"""The error handler that turns undecodable bytes into a byte that no UTF-8 text has."""


@dataclass(frozen=True)
class CsvForm:
    """How CSV files are written.

    Attributes:
        delimiter: The character between fields.
        encoding: The name of the text's encoding, as Python's codecs know it.
        max_record_bytes: The most UTF-8 bytes that a record may have, line break aside.
    """

    delimiter: str = ","
    encoding: str = "utf-8"
    max_record_bytes: int = 1 << 20


class Scan(NamedTuple):
    """The records found in a piece of a file; see `scan_records` for the arrays.

    The arrays are overwritten when the next piece is scanned.
    """

    data: np.ndarray
    bounds: np.ndarray
    states: np.ndarray
    begins: np.ndarray
    ends: np.ndarray
    kinds: np.ndarray

    def text(self, record: int) -> bytes:
        """The bytes of a record, without its line break."""
        return bytes(self.data[self.bounds[record, 0] : self.bounds[record, 1]])


class Scanner:
    """Scans pieces of text one after the other into the same arrays."""

    def __init__(
        self,
        delimiter: str,
        header: bytes = b"",
        field_count: int = 0,
        columns: Sequence[int] = (),
        records: int | None = None,
    ) -> None:
        slots = np.full(max(columns, default=-1) + 1, -1, np.int64)
        slots[list(columns)] = np.arange(len(columns))
        self._form = (bytes_of(delimiter.encode()), bytes_of(header), field_count, slots)
        size = records or max(1, _CELLS // (len(columns) + 1))
        self._bounds, self._states = np.empty((size, 3), np.int64), np.empty(size, np.uint8)
        self._begins, self._ends = np.empty((2, len(columns), size), np.int64)
        self._kinds = np.empty((len(columns), size), np.uint8)

    def scan(self, data: np.ndarray, *, is_last: bool) -> tuple[Scan, int, int]:
        """The number of records found, their bytes, and the position of the open quote or -1."""
        of_records = (self._bounds, self._states, self._begins, self._ends, self._kinds)
        count, size, opened = scan_records(data, is_last, *self._form, *of_records)
        by_slot = (array[:, :count] for array in (self._begins, self._ends, self._kinds))
        return Scan(data, self._bounds[:count], self._states[:count], *by_slot), size, opened


def bytes_of(text: bytes) -> np.ndarray:
    """The bytes of a text, in the form that compiled loops take."""
    return np.frombuffer(text, np.uint8)


def _marked(error: UnicodeError) -> tuple[str | bytes, int]:
    if isinstance(error, UnicodeDecodeError):
        return "\ud800", error.end
    if isinstance(error, UnicodeEncodeError):
        return b"\xff", error.end
    raise error


codecs.register_error(_NOT_TEXT, _marked)


def scanned(
    chunks: Iterable[bytes],
    form: CsvForm,
    file: str,
    header: bytes = b"",
    field_count: int = 0,
    columns: Sequence[int] = (),
    piece_bytes: int = CHUNK_BYTES,
) -> Iterator[Scan]:
    """Finds the records of a file, in order.

    Args:
        chunks: The file's decompressed bytes, cut anywhere.
        form: How the file is written.
        file: The file's name in errors.
        header: The header, which is skipped wherever it stands.
        field_count: How many fields a record must have; 0 for any number.
        columns: The indices of the fields to find.
        piece_bytes: The fewest bytes to scan at once, which changes no record.

    Raises:
        BadFileError: A record is longer than it may be.
    """
    texts = _utf8(chunks, form.encoding)
    scanner = Scanner(form.delimiter, header, field_count, columns)
    rest, lines, is_last, is_first = b"", 0, False, True
    while not is_last:
        # Read at least as much as is left over, so that a long record is not scanned too often.
        more, is_last = _filled(texts, max(piece_bytes, len(rest), len(_BOM)))
        rest += more
        if is_first:
            rest, is_first = rest.removeprefix(_BOM), False
        data = bytes_of(rest)
        while True:
            scan, size, _ = scanner.scan(data, is_last=is_last)
            if not size:
                break
            lengths = scan.bounds[:, 1] - scan.bounds[:, 0]
            if lengths.max() > form.max_record_bytes:
                start = scan.bounds[(lengths > form.max_record_bytes).argmax(), 0]
                lines += _line_breaks(data[:start])
                raise _too_long(data[start:], lines, form, file)
            yield scan
            lines += _line_breaks(data[:size])
            data = data[size:]
        # The last byte may be the first one of a line break.
        if len(data) > form.max_record_bytes + 1:
            raise _too_long(data, lines, form, file)
        rest = bytes(data)


def _filled(texts: Iterator[bytes], least: int) -> tuple[bytes, bool]:
    """The next pieces of a text, of a least total size, and whether the text ends there."""
    pieces, size = [], 0
    for piece in texts:
        pieces.append(piece)
        size += len(piece)
        if size >= least:
            return b"".join(pieces), False
    return b"".join(pieces), True


def _utf8(chunks: Iterable[bytes], encoding: str) -> Iterator[bytes]:
    """Turns text of any encoding into UTF-8; undecodable bytes become invalid UTF-8."""
    if encoding == "utf-8":
        yield from chunks
        return
    decoder = codecs.getincrementaldecoder(encoding)(_NOT_TEXT)
    for chunk in chunks:
        yield decoder.decode(chunk).encode("utf-8", _NOT_TEXT)
    yield decoder.decode(b"", final=True).encode("utf-8", _NOT_TEXT)


def _line_breaks(data: np.ndarray) -> int:
    text = bytes(data)
    return text.count(b"\n") + text.count(b"\r") - text.count(b"\r\n")


def _too_long(data: np.ndarray, lines: int, form: CsvForm, file: str) -> BadFileError:
    """The error about a record that is too long, from its text and the lines before it."""
    most = form.max_record_bytes
    _, _, opened = Scanner(form.delimiter, records=1).scan(data[: most + 1], is_last=False)
    what = f"the record that begins in line {lines + 1:,} is longer"
    if opened >= 0:
        line = lines + _line_breaks(data[:opened]) + 1
        what = f"the quote that opens in line {line:,} makes a record that is longer"
    return BadFileError(
        file,
        f"a record must have at most {most:,} bytes (source.max_record_bytes), but {what}",
        "close the quote, or end the record with a line break, or raise the limit",
    )
