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
        raw: The bytes of the record's lines.
        line_count: How many lines the record has; a CSV field in quotes may hold line breaks.
    """

    fields: Fields | None
    raw: bytes
    line_count: int = 1


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


def read_header(file: SampleFile) -> tuple[bytes, list[str]]:
    """Returns the header line of a CSV file, and its names; of an empty file nothing.

    Raises:
        ValueError: The fields are not separated by commas, or the line is longer than 16 MiB.
    """
    with open_text(file) as stream:
        line = next((line for line in lines_of(stream, file.path) if line.strip()), b"")
    text = line.decode("utf-8", "replace")
    names = next(csv.reader([text]), [])
    if len(names) == 1 and (";" in text or "\t" in text):
        raise ValueError(
            f"{file.path}: CSV fields must be separated by commas, and the first line is "
            f"{text.strip()[:60]!r}; write the file with commas"
        )
    return line, names


def one_header(files: Sequence[SampleFile]) -> tuple[bytes, list[str]]:
    """Returns the header line that CSV files share, and its names; empty files have none.

    Raises:
        ValueError: The files have several headers.
    """
    first: tuple[SampleFile, bytes, list[str]] | None = None
    for file in files:
        line, names = read_header(file)
        if not names:
            continue
        if first is None:
            first = file, line, names
        elif names != first[2]:
            raise ValueError(
                f"{file.path}: all files must have one header, and its columns {names} differ "
                f"from {first[2]} of {first[0].path}; name the files of one header only"
            )
    return (b"", []) if first is None else first[1:]


def csv_records(lines: Iterable[bytes], width: int) -> Iterator[TextRecord]:
    """Yields the records of CSV lines that follow the header; blank lines are skipped.

    Args:
        lines: The lines, with their ends.
        width: How many fields a record has.
    """
    source = _Lines(lines)
    while True:
        try:
            for row in csv.reader(source):
                taken = source.take()
                if len(row) != width:
                    yield from _each_line(taken, width)
                elif (raw := b"".join(taken)).strip():
                    yield TextRecord(row, raw, len(taken))
        except csv.Error:  # a quote that nothing closes has made a field too long
            yield from _each_line(source.take(), width)
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


def _each_line(lines: Iterable[bytes], width: int) -> Iterator[TextRecord]:
    """Yields each line as a record, as a pipeline reads a file whose quotes do not match."""
    for line in lines:
        if not line.strip():
            continue
        try:
            row = next(csv.reader([line.decode("utf-8", "replace")]), [])
        except csv.Error:
            row = []
        is_record = len(row) == width and line.count(b'"') % 2 == 0
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
