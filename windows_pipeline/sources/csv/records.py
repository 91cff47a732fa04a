"""Reads the header of a CSV file and the records below it into Arrow data, without Spark."""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Iterator, Mapping
from itertools import takewhile

import numpy as np
import pyarrow as pa

from windows_pipeline.sources.bad_files import BadFileError, too_many_columns
from windows_pipeline.sources.csv.kernel import (
    MALFORMED,
    NO_FIELD,
    PLAIN,
    SKIPPED,
    gathered_texts,
)
from windows_pipeline.sources.csv.scan import CsvForm, Scan, Scanner, bytes_of, scanned
from windows_pipeline.text.limits import MAX_FILE_COLUMNS

_MOST_COLUMNS = MAX_FILE_COLUMNS["CSV"]
_BLANKS = b" \t\r\n\v\f"
_UTF_16_BOMS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def header_of(chunks: Iterable[bytes], form: CsvForm, file: str) -> bytes | None:
    """The first record of a file that is not blank, as UTF-8; None if there is none.

    Raises:
        BadFileError: The header is longer than a record may be, or no text of the encoding.
    """
    for scan in scanned(chunks, form, file, piece_bytes=1):  # a header needs few bytes
        header = _first_text(scan)
        if header is None:
            continue
        try:
            header.decode()
        except UnicodeDecodeError:
            raise _not_text(header, form, file) from None
        return header
    return None


def _first_text(scan: Scan) -> bytes | None:
    """The first record that is not blank."""
    texts = map(scan.text, range(len(scan.bounds)))
    return next((text for text in texts if text.strip(_BLANKS)), None)


def _not_text(header: bytes, form: CsvForm, file: str) -> BadFileError:
    fix = "write it in that encoding, or name its own under source.encoding, such as latin-1"
    if header.startswith(_UTF_16_BOMS):
        fix = "it begins as UTF-16 does: write 'encoding: utf-16' in source"
    cause = f"its header must be {form.encoding} text, but is {header[:40]!r}"
    return BadFileError(file, cause, fix)


def names_in(header: bytes, form: CsvForm, file: str) -> list[str]:
    """The names of the columns in a header; an empty name is the empty text.

    Raises:
        BadFileError: The header is no record of RFC 4180, or has too many columns.
    """
    names = fields_of(header, form.delimiter)
    if names is None:
        raise BadFileError(
            file,
            f"its header must be a CSV record, but is {_short(header)}",
            "end each field that begins with a quote with a quote",
        )
    if len(names) > _MOST_COLUMNS:
        raise too_many_columns(file, _MOST_COLUMNS)
    return [name or "" for name in names]


def _short(header: bytes) -> str:
    text = header.decode()
    return repr(text if len(text) <= 80 else f"{text[:80]}...")


def fields_of(record: bytes, delimiter: str) -> list[str | None] | None:
    """The fields of one record; null stands for nothing. None if it is malformed.

    Of a record of too many fields for a file the first ones, and one more, are returned.
    """
    at_most = min(record.count(delimiter.encode()) + 1, _MOST_COLUMNS + 1)
    scanner = Scanner(delimiter, columns=range(at_most), records=1)
    scan, size, _ = scanner.scan(bytes_of(record), is_last=True)
    if not size:
        return [None]
    if scan.states[0] & MALFORMED:
        return None
    scan.states[0] = 0
    present = takewhile(lambda slot: scan.kinds[slot, 0] != NO_FIELD, range(at_most))
    return [_texts(scan, slot, 1, keeps_empty=True)[0].as_py() for slot in present]


def record_columns(
    chunks: Iterable[bytes],
    form: CsvForm,
    file: str,
    header: bytes,
    field_count: int,
    columns: Mapping[int, bool],
) -> Iterator[list[pa.Array]]:
    """Reads the records below a header.

    Args:
        chunks: The file's decompressed bytes, cut anywhere.
        form: How the file is written.
        file: The file's name in errors.
        header: The header, as `header_of` returns it.
        field_count: How many fields the header has.
        columns: The indices of the fields to return, each with whether ``""`` is the empty text;
            if not, it is null.

    Yields:
        The columns of some records: each record's text (with U+FFFD for bytes that are no text of
        the encoding); whether the record is malformed: no CSV, no text, or of another number of
        fields than the header; and each field, null if the field is empty without quotes, or the
        record malformed.

    Raises:
        BadFileError: A record is longer than it may be, or the file has another header by now.
    """
    is_first = True
    for scan in scanned(chunks, form, file, header, field_count, list(columns)):
        if is_first and (first := _first_text(scan)) is not None:
            is_first = False
            if first != header:
                raise BadFileError(file, "the file was changed while it was read", "try again")
        texts = _valid_texts(scan)
        is_kept = scan.states & SKIPPED == 0
        kept = int(is_kept.sum())
        if not kept:
            continue
        is_malformed = pa.array(scan.states[is_kept] & MALFORMED != 0)
        fields = [
            _texts(scan, slot, kept, keeps_empty=keeps_empty)
            for slot, keeps_empty in enumerate(columns.values())
        ]
        yield [_whole_texts(scan, kept) if texts is None else texts, is_malformed, *fields]


def _valid_texts(scan: Scan) -> pa.Array | None:
    """The text of each kept record where some are invalid, which become malformed; else None."""
    whole = bytes(scan.data[: scan.bounds[-1, 2]])
    try:
        whole.decode()
    except UnicodeDecodeError:
        pass
    else:
        return None
    texts = []
    for record in range(len(scan.bounds)):
        if scan.states[record] & SKIPPED:
            continue
        text = scan.text(record)
        try:
            texts.append(text.decode())
        except UnicodeDecodeError:
            texts.append(text.decode(errors="replace"))
            scan.states[record] |= MALFORMED
            scan.kinds[:, record] = NO_FIELD
    return pa.array(texts, pa.string())


def _whole_texts(scan: Scan, kept: int) -> pa.Array:
    kinds = np.full(len(scan.bounds), PLAIN, np.uint8)
    return _text_array(scan, scan.bounds[:, 0], scan.bounds[:, 1], kinds, kept)


def _texts(scan: Scan, slot: int, kept: int, *, keeps_empty: bool) -> pa.Array:
    of_field = (scan.begins[slot], scan.ends[slot], scan.kinds[slot])
    return _text_array(scan, *of_field, kept, keeps_empty=keeps_empty)


def _text_array(
    scan: Scan,
    begins: np.ndarray,
    ends: np.ndarray,
    kinds: np.ndarray,
    kept: int,
    *,
    keeps_empty: bool = True,
) -> pa.Array:
    of_records = (scan.data, scan.states, begins, ends, kinds)
    offsets, texts, is_valid = gathered_texts(*of_records, kept, keeps_empty)
    bits = pa.py_buffer(np.packbits(is_valid, bitorder="little"))
    return pa.StringArray.from_buffers(kept, pa.py_buffer(offsets), pa.py_buffer(texts), bits)
