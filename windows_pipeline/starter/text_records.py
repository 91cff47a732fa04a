"""Reads the records of text files one by one, each with its own bytes."""

from __future__ import annotations

import csv
import gzip
import json
import re
import zlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO, NamedTuple, cast

from windows_pipeline.starter.files import SampleFile

BOM = b"\xef\xbb\xbf"
UTF_8 = "utf-8"
_GZIP = b"\x1f\x8b"
"""The first bytes of a file that gzip wrote."""
_DELIMITERS = (",", ";", "\t", "|")
"""The characters that may separate the fields of a sample, most frequent first."""
_LONGEST_LINE = 1 << 24
"""The most bytes of a line: memory must not depend on the file."""
_COPY_AGAIN = "copy the file again, or leave it out"
_CUT = f"can't be read (the compression is cut); {_COPY_AGAIN}"
_ESCAPES = re.compile(
    r"(?i)\\\\|\\ud[89ab][0-9a-f]{2}\\ud[c-f][0-9a-f]{2}|(?P<lone>\\ud[89a-f][0-9a-f]{2})"
)
"""Escapes of JSON; the group `lone` matches half a surrogate pair without the other half."""
_DECODER = json.JSONDecoder(parse_int=str, parse_float=str, parse_constant=str)
"""Numbers stay texts, with all their digits."""

Fields = list[str] | dict[str, object]


class TextRecord(NamedTuple):
    """A record of a text file.

    Attributes:
        fields: CSV: the fields in the order of the header. JSON: the fields by name, in which
            numbers are texts. None for a record that cannot be read.
        raw: The bytes of the record's lines; a CSV field in quotes may hold line breaks.
        is_text: Whether its bytes, and the escapes of JSON, are text; if not, the record cannot be
            read.
    """

    fields: Fields | None
    raw: bytes
    is_text: bool = True


class Header(NamedTuple):
    """The header of CSV files; an empty file has none.

    Attributes:
        line: The bytes of its line.
        names: The columns.
        delimiter: The character between fields.
        encoding: The encoding of the files.
    """

    line: bytes = b""
    names: Sequence[str] = ()
    delimiter: str = ","
    encoding: str = UTF_8


def open_text(file: SampleFile) -> IO[bytes]:
    """Opens a text file for reading, decompressed."""
    path = file.path
    return cast("IO[bytes]", gzip.open(path, "rb")) if file.is_compressed else path.open("rb")


def lines_of(stream: IO[bytes], path: Path) -> Iterator[bytes]:
    """Yields the lines of a stream from its position on, without a byte order mark.

    Raises:
        ValueError: A line is longer than 16 MiB, or the file is not compressed as its name says,
            or its compression is cut or damaged.
    """
    is_first = stream.tell() == 0
    try:
        while line := stream.readline(_LONGEST_LINE):
            if len(line) == _LONGEST_LINE:
                raise ValueError(
                    f"{path}: a line must have fewer than {_LONGEST_LINE:,} bytes; end each record "
                    "with a line break"
                )
            yield line.removeprefix(BOM) if is_first else line
            is_first = False
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise ValueError(f"{path}: {_why_unreadable(path, error)}") from None
    if is_first and isinstance(stream, gzip.GzipFile) and not path.stat().st_size:
        raise ValueError(f"{path}: {_CUT}")


def _why_unreadable(path: Path, error: Exception) -> str:
    """Says why a file cannot be decompressed, and the fix."""
    with path.open("rb") as file:
        head = file.read(len(_GZIP))
    if head != _GZIP:
        return (
            f"a file whose name ends with .gz must be compressed by gzip, but is not ({error}); "
            "compress it, or rename it"
        )
    if isinstance(error, EOFError):
        return _CUT
    return f"can't be read ({error}); {_COPY_AGAIN}"


def read_header(file: SampleFile, encoding: str = UTF_8) -> Header:
    """Returns the header of a CSV file, read with the delimiter that gives most columns.

    Raises:
        ValueError: The line is longer than 16 MiB, or no text of the encoding.
    """
    with open_text(file) as stream:
        line = next((line for line in lines_of(stream, file.path) if line.strip()), b"")
    try:
        text = line.decode(encoding)
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{file.path}: the header must be {encoding.upper()}, but has the byte "
            f"0x{line[error.start]:02x} after {line[: error.start].decode(encoding)[-40:]!r}; "
            "convert the file to UTF-8 (a pipeline reads other encodings, by 'encoding' in its "
            "source, but its sample must be UTF-8)"
        ) from None
    headers = [
        Header(line, _names(text, delimiter), delimiter, encoding) for delimiter in _DELIMITERS
    ]
    return max(headers, key=lambda header: len(header.names))


def _names(text: str, delimiter: str) -> list[str]:
    try:
        return next(csv.reader([text], delimiter=delimiter), [])
    except csv.Error:  # a name of more than 128 KiB: another delimiter separates them
        return []


def one_header(files: Sequence[SampleFile], encoding: str = UTF_8) -> Header:
    """Returns the header that CSV files share; empty files have none.

    Raises:
        ValueError: The files have several headers, or one that is no text of the encoding.
    """
    first: tuple[SampleFile, Header] | None = None
    for file in files:
        header = read_header(file, encoding)
        if not header.names:
            continue
        if first is None:
            first = file, header
        elif header[1:] != first[1][1:]:
            raise ValueError(
                f"{file.path}: all files must have one header, and its columns {header.names} "
                f"differ from {first[1].names} of {first[0].path}, or are separated otherwise; "
                "name the files of one header only"
            )
    return Header() if first is None else first[1]


def csv_records(lines: Iterable[bytes], header: Header) -> Iterator[TextRecord]:
    """Yields the records of CSV lines; blank lines and copies of the header are skipped.

    Args:
        lines: The lines, with their ends.
        header: The header of the files.
    """
    same = header.line.rstrip(b"\r\n")
    source = _Lines((line for line in lines if line.rstrip(b"\r\n") != same), header.encoding)
    while True:
        try:
            for row in csv.reader(source, delimiter=header.delimiter):
                taken = source.take()
                if len(row) != len(header.names):
                    yield from _each_line(taken, header)
                elif (raw := b"".join(taken)).strip():
                    is_text = _is_text(raw, header.encoding)
                    yield TextRecord(row if is_text else None, raw, is_text)
        except csv.Error:  # a quote that nothing closes has made a field too long
            yield from _each_line(source.take(), header)
            continue
        return


class _Lines:
    """Yields lines as text, and remembers their bytes until `take`.

    U+FFFD stands for bytes that are no text, so that these do not end a record.
    """

    def __init__(self, lines: Iterable[bytes], encoding: str) -> None:
        self._lines = iter(lines)
        self._encoding = encoding
        self._taken: list[bytes] = []

    def __iter__(self) -> Iterator[str]:
        for line in self._lines:
            self._taken.append(line)
            yield line.decode(self._encoding, "replace")

    def take(self) -> list[bytes]:
        """Returns the lines since the last call."""
        taken, self._taken = self._taken, []
        return taken


def _each_line(lines: Iterable[bytes], header: Header) -> Iterator[TextRecord]:
    """Yields each line as a record, where quotes do not match."""
    for line in lines:
        if not line.strip():
            continue
        try:
            text = line.decode(header.encoding, "replace")
            row = next(csv.reader([text], delimiter=header.delimiter), [])
        except csv.Error:
            row = []
        is_text = _is_text(line, header.encoding)
        is_record = is_text and len(row) == len(header.names) and line.count(b'"') % 2 == 0
        yield TextRecord(row if is_record else None, line, is_text)


def _is_text(raw: bytes, encoding: str) -> bool:
    try:
        raw.decode(encoding)
    except UnicodeDecodeError:
        return False
    return True


def json_records(lines: Iterable[bytes]) -> Iterator[TextRecord]:
    """Yields the JSON object of each line; blank lines are skipped."""
    for line in lines:
        if not line.strip():
            continue
        if not _is_text(line, UTF_8) or _has_lone_surrogate(line.decode()):
            yield TextRecord(None, line, is_text=False)
            continue
        try:
            fields = _DECODER.decode(line.decode())
        except (ValueError, RecursionError):
            fields = None
        yield TextRecord(fields if isinstance(fields, dict) else None, line)


def _has_lone_surrogate(json: str) -> bool:
    """Whether JSON escapes half a surrogate pair, which UTF-8 cannot represent."""
    return any(found["lone"] for found in _ESCAPES.finditer(json))


def json_text(value: object) -> str | None:
    """Returns a JSON value as the text that a pipeline reads; None for null."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    return json.dumps(value)
