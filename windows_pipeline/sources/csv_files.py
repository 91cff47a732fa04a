"""Reads landed CSV files on Spark: a task reads whole files, each as a stream."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import partial
from typing import NamedTuple

import pyarrow as pa
from pyarrow import fs
from pyspark.sql import DataFrame, SparkSession

from windows_pipeline.config.source import Source
from windows_pipeline.sources.bad_files import BadFileError, each_checked, require_none
from windows_pipeline.sources.csv.records import fields_of, header_of, names_in, record_columns
from windows_pipeline.sources.csv.scan import CsvForm
from windows_pipeline.sources.file_checks import LandedFile
from windows_pipeline.sources.formats import landed_schema, no_records
from windows_pipeline.sources.text_files import Columns, FilePart, in_tasks, opened

_HEAD_BYTES = 64 << 10
_SHOWN_CHARACTERS = 500
"""How much of a header an error shows."""
_OTHER_DELIMITERS = ";\t|,:"


class _Headed(NamedTuple):
    """A file with a header."""

    file: LandedFile
    header: bytes
    names: list[str]


@dataclass(frozen=True)
class _File(FilePart):
    """A file, and what its header says.

    `columns` are the indices of the fields to read, each with whether it is a column of texts;
    `slots` has for each declared column its index among them, or None if the header lacks it.
    """

    header: bytes
    field_count: int
    columns: dict[int, bool]
    slots: list[int | None]


def read_csv(
    spark: SparkSession, filesystem: fs.FileSystem, files: Sequence[LandedFile], source: Source
) -> DataFrame:
    """Reads CSV files with headers; records that repeat the header are skipped.

    Raises:
        BadFileError: Files of a day differ in their header, or a header lacks a declared column,
            has it twice, or can't be read. Where Spark runs, its error has the text of a
            BadFileError if a file can't be read, or a record is too long.
    """
    form = form_of(source)
    found = _fitting(filesystem, files, source, form)
    if not found:
        return no_records(spark, source.paths)
    declared = {name: source.read_types[name] for name in source.paths}
    read = partial(_records, filesystem, form, list(declared))
    return in_tasks(spark, _parts(found, declared), read, landed_schema(source.paths))


def require_headers(filesystem: fs.FileSystem, files: Sequence[LandedFile], source: Source) -> None:
    """Requires the headers that `read_csv` requires.

    Raises:
        BadFileError: As of `read_csv`; the error names all files that are bad.
    """
    _fitting(filesystem, files, source, form_of(source))


def form_of(source: Source) -> CsvForm:
    """How the source's CSV files are written, with the defaults."""
    usual = CsvForm()
    return CsvForm(
        source.delimiter or usual.delimiter,
        source.encoding or usual.encoding,
        source.max_record_bytes or usual.max_record_bytes,
    )


def _fitting(
    filesystem: fs.FileSystem, files: Sequence[LandedFile], source: Source, form: CsvForm
) -> list[_Headed]:
    """Reads the files' headers, which must fit; files without a record are left out."""
    heads = each_checked(partial(_head, filesystem, form, source), files)
    equal: dict[bytes, bytes] = {}  # tasks are smaller if they share a header
    found = [
        head._replace(header=equal.setdefault(head.header, head.header))
        for head in heads
        if head is not None
    ]
    _require_same_header(found)
    return found


def _head(
    filesystem: fs.FileSystem, form: CsvForm, source: Source, file: LandedFile
) -> _Headed | None:
    with opened(filesystem, file.path, str(file), _HEAD_BYTES) as chunks:
        header = header_of(chunks, form, str(file))
    if header is None:
        return None
    headed = _Headed(file, header, names_in(header, form, str(file)))
    _require_declared(headed, source, form)
    return headed


def _require_same_header(found: Sequence[_Headed]) -> None:
    first_of_day: dict[date, _Headed] = {}
    bad = []
    for headed in found:
        first = first_of_day.setdefault(headed.file.day, headed)
        if headed.names != first.names:
            cause = (
                f"its header {_shown(headed.names)} differs from {_shown(first.names)} of "
                f"{first.file}"
            )
            fix = "files of one day need the same header"
            bad.append(BadFileError(str(headed.file), cause, fix))
    require_none(bad)


def _require_declared(headed: _Headed, source: Source, form: CsvForm) -> None:
    file, names = headed.file, headed.names
    missing = [name for name in source.columns_on(file.day) if name not in names]
    if missing:
        fix = "land files with every declared column, or take it from the source's columns"
        if len(names) == 1:
            fix = f"source.delimiter is {form.delimiter!r}: name that of the file there, or {fix}"
        other = _other_delimiter(headed.header, missing, form)
        if other is not None:
            fix = (
                f"source.delimiter is {form.delimiter!r}, and the header looks separated by "
                f"{other!r}: write 'delimiter: \"{other}\"' in source".replace("\t", "\\t")
            )
        cause = f"its header {_shown(names)} has no column {missing[0]!r}"
        raise BadFileError(str(file), cause, fix)
    twice = [name for name in source.paths if names.count(name) > 1]
    if twice:
        cause = f"its header has {twice[0]!r} twice"
        raise BadFileError(str(file), cause, "name each column once")


def _shown(names: list[str]) -> str:
    text = str(names)
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}..."


def _other_delimiter(header: bytes, missing: Sequence[str], form: CsvForm) -> str | None:
    """The delimiter by which a header would have the missing columns."""
    fitting = (
        delimiter
        for delimiter in _OTHER_DELIMITERS
        if delimiter != form.delimiter and set(missing) <= set(fields_of(header, delimiter) or ())
    )
    return next(fitting, None)


def _parts(found: Iterable[_Headed], declared: Mapping[str, str]) -> Iterator[tuple[_File, int]]:
    """Each file as a task must know it, with its size."""
    of_headers: dict[bytes, tuple[dict[int, bool], list[int | None]]] = {}
    for file, header, names in found:
        if header not in of_headers:
            there = {name: kind for name, kind in declared.items() if name in names}
            columns = {names.index(name): kind == "string" for name, kind in there.items()}
            slots = {name: slot for slot, name in enumerate(there)}
            of_headers[header] = columns, [slots.get(name) for name in declared]
        of_header = (header, len(names), *of_headers[header])
        yield _File(file.day, file.name, file.path, 0, *of_header), file.size_bytes


def _records(
    filesystem: fs.FileSystem, form: CsvForm, names: Sequence[str], file: _File
) -> Iterator[Columns]:
    """Reads a file into the columns of `read_landed`; those with these names are declared."""
    with opened(filesystem, file.path, str(file)) as chunks:
        of_file = (form, str(file), file.header, file.field_count, file.columns)
        for text, malformed, *found in record_columns(chunks, *of_file):
            nulls = pa.nulls(len(text), pa.string())
            fields = (nulls if slot is None else found[slot] for slot in file.slots)
            named = dict(zip(names, fields, strict=True))
            yield {"original": text, "malformed": malformed, **named}
