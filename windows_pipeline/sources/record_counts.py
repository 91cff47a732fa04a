"""Counts landed records on the driver, by other code than the readers of a run, for its checks."""

from __future__ import annotations

import codecs
import csv
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import date
from functools import partial
from itertools import chain

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

from windows_pipeline.config.source import Source
from windows_pipeline.sources.bad_files import each_checked, unreadable
from windows_pipeline.sources.csv.scan import CsvForm
from windows_pipeline.sources.csv_files import form_of
from windows_pipeline.sources.file_checks import LandedFile
from windows_pipeline.sources.landing import FileState, LandingFolder
from windows_pipeline.sources.text_files import opened

_BLANKS = b" \t\r\n\v\f"


def landed_counts(
    source: Source, landing: LandingFolder, files: Sequence[FileState]
) -> dict[date, int]:
    """The number of records in landed files, by day; days without files are left out.

    Args:
        source: The source's format, and how CSV files are written.
        landing: The folder of day folders.
        files: The files, as it lists them; the reader of a run judged their names and heads.

    Raises:
        BadFileError: Files can't be read; the error names all of them.
    """
    found = [landing.landed(file) for file in files]
    count = partial(_COUNTERS[source.format], landing.filesystem, form_of(source))
    counts: Counter[date] = Counter()
    for file, of_file in zip(found, each_checked(count, found), strict=True):
        counts[file.day] += of_file
    return dict(counts)


def _of_jsonl(filesystem: fs.FileSystem, form: CsvForm, file: LandedFile) -> int:
    with opened(filesystem, file.path, str(file)) as chunks:
        return sum(bool(line.strip()) for line in _lines(chunks, form))


def _of_csv(filesystem: fs.FileSystem, form: CsvForm, file: LandedFile) -> int:
    with opened(filesystem, file.path, str(file)) as chunks:
        return csv_count(chunks, form)


def _of_parquet(filesystem: fs.FileSystem, form: CsvForm, file: LandedFile) -> int:
    del form
    try:
        return int(pq.read_metadata(file.path, filesystem=filesystem).num_rows)
    except (OSError, pa.ArrowException) as error:
        raise unreadable(str(file), error) from error


_COUNTERS: dict[str, Callable[[fs.FileSystem, CsvForm, LandedFile], int]] = {
    "jsonl": _of_jsonl,
    "csv": _of_csv,
    "parquet": _of_parquet,
}


def csv_count(chunks: Iterable[bytes], form: CsvForm) -> int:
    """The number of records in a CSV file that are neither blank lines nor the header.

    Args:
        chunks: The file's decompressed bytes, cut anywhere.
        form: How the file is written.
    """
    count, header = 0, None
    # A blank that separates fields makes no blank line.
    blanks = _BLANKS.replace(form.delimiter.encode(), b"")
    # A field is no longer than a record, and the readers of a run refuse a longer record.
    csv.field_size_limit(max(csv.field_size_limit(), form.max_record_bytes))
    for record in _csv_records(_lines(_utf8(chunks, form.encoding), form), form.delimiter):
        text = record.rstrip(b"\r\n")
        if header is None and text.strip():
            header = text
        if text != header and text.strip(blanks):
            count += 1
    return 0 if header is None else count


def _utf8(chunks: Iterable[bytes], encoding: str) -> Iterable[bytes]:
    if encoding == "utf-8":
        return chunks
    texts = codecs.iterdecode(chunks, encoding, errors="replace")
    return (text.encode(errors="replace") for text in texts)


def _lines(chunks: Iterable[bytes], form: CsvForm) -> Iterator[bytes]:
    """The lines with their line breaks: LF, CR LF or CR.

    They end at a line that is longer than a record may be, which the readers of a run refuse.
    """
    rest, mark = b"", codecs.BOM_UTF8
    for chunk in chunks:
        # The last byte may be the first one of a line break.
        *lines, rest = (rest + chunk).splitlines(keepends=True) or [b""]
        for line in lines:
            yield line.removeprefix(mark)
            mark = b""
        if len(rest) > form.max_record_bytes + len(codecs.BOM_UTF8):
            return
    yield rest.removeprefix(mark)


def _csv_records(lines: Iterator[bytes], delimiter: str) -> Iterator[bytes]:
    """The records with their line breaks, which Python's csv module finds from a quote on."""
    for line in lines:
        if b'"' in line:
            break
        yield line
    else:
        return
    record: list[bytes] = []

    def texts() -> Iterator[str]:
        for text in chain([line], lines):
            record.append(text)
            yield text.decode(errors="surrogateescape")

    with suppress(csv.Error):
        for _ in csv.reader(texts(), delimiter=delimiter):
            yield b"".join(record)
            record.clear()
