"""Reads the records of text files one by one, each with its own bytes."""

from __future__ import annotations

import csv
import gzip
import json
import zlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO, NamedTuple, cast

from windows_pipeline.starter.files import SampleFile

BOM = b"\xef\xbb\xbf"
_DELIMITERS = (",", ";", "\t", "|")
"""The characters that may separate the fields of a sample, most frequent first."""
_LONGEST_LINE = 1 << 24
"""The most bytes of a line: memory must not depend on the file."""
_DECODER = json.JSONDecoder(parse_int=str, parse_float=str, parse_constant=str)
"""Numbers stay texts, with all their digits."""

Fields = list[str] | dict[str, object]


class TextRecord(NamedTuple):
    """A record of a text file.

    Attributes:
        fields: CSV: the fields in the order of the header. JSON: the fields by name, in which
            numbers are texts. None for a record that cannot be read.
        raw: The bytes of the record's lines; a CSV field in quotes may hold line breaks.
    """

    fields: Fields | None
    raw: bytes


class Header(NamedTuple):
    """The header of CSV files; an empty file has none.

    Attributes:
        line: The bytes of its line.
        names: The columns.
        delimiter: The character between fields.
    """

    line: bytes = b""
    names: Sequence[str] = ()
    delimiter: str = ","


def open_text(file: SampleFile) -> IO[bytes]:
    """Opens a text file for reading, decompressed."""
    path = file.path
    return cast("IO[bytes]", gzip.open(path, "rb")) if file.is_compressed else path.open("rb")


def lines_of(stream: IO[bytes], path: Path) -> Iterator[bytes]:
    """Yields the lines of a stream from where it stands, without a byte order mark.

    Raises:
        ValueError: A line is longer than 16 MiB, or the file is not compressed as its name says.
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
        raise ValueError(
            f"{path}: a file whose name ends with .gz must be compressed by gzip, and is not "
            f"({error}); compress it, or rename it"
        ) from None


def read_header(file: SampleFile) -> Header:
    """Returns the header of a CSV file; its delimiter is the one that gives most columns.

    Raises:
        ValueError: The line is longer than 16 MiB.
    """
    with open_text(file) as stream:
        line = next((line for line in lines_of(stream, file.path) if line.strip()), b"")
    text = line.decode("utf-8", "replace")
    headers = [Header(line, _names(text, delimiter), delimiter) for delimiter in _DELIMITERS]
    return max(headers, key=lambda header: len(header.names))


def _names(text: str, delimiter: str) -> list[str]:
    try:
        return next(csv.reader([text], delimiter=delimiter), [])
    except csv.Error:  # a name of more than 128 KiB: another delimiter separates them
        return []


def one_header(files: Sequence[SampleFile]) -> Header:
    """Returns the header that CSV files share; empty files have none.

    Raises:
        ValueError: The files have several headers.
    """
    first: tuple[SampleFile, Header] | None = None
    for file in files:
        header = read_header(file)
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
    source = _Lines(line for line in lines if line.rstrip(b"\r\n") != same)
    while True:
        try:
            for row in csv.reader(source, delimiter=header.delimiter):
                taken = source.take()
                if len(row) != len(header.names):
                    yield from _each_line(taken, header)
                elif (raw := b"".join(taken)).strip():
                    yield TextRecord(row, raw)
        except csv.Error:  # a quote that nothing closes has made a field too long
            yield from _each_line(source.take(), header)
            continue
        return


class _Lines:
    """Yields lines as text, and remembers their bytes until `take`."""

    def __init__(self, lines: Iterable[bytes]) -> None:
        self._lines = iter(lines)
        self._taken: list[bytes] = []

    def __iter__(self) -> Iterator[str]:
        for line in self._lines:
            self._taken.append(line)
            yield line.decode("utf-8", "replace")

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
            text = line.decode("utf-8", "replace")
            row = next(csv.reader([text], delimiter=header.delimiter), [])
        except csv.Error:
            row = []
        is_record = len(row) == len(header.names) and line.count(b'"') % 2 == 0
        yield TextRecord(row if is_record else None, line)


def json_records(lines: Iterable[bytes]) -> Iterator[TextRecord]:
    """Yields the JSON object of each line; blank lines are skipped."""
    for line in lines:
        if not line.strip():
            continue
        try:
            fields = _DECODER.decode(line.decode())
        except (ValueError, RecursionError):
            fields = None
        yield TextRecord(fields if isinstance(fields, dict) else None, line)


def json_text(value: object) -> str | None:
    """Returns a JSON value as the text that a pipeline reads; None for null."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    return json.dumps(value)
