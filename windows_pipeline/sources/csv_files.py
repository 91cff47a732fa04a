"""Reads landed CSV files on Spark: a task reads whole files, each as a stream.

Tasks open files with Arrow, as the driver does to list them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date
from functools import partial
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from pyarrow import fs
from pyspark.sql import DataFrame, SparkSession

from windows_pipeline.config.source import Source
from windows_pipeline.sources.bad_files import BadFileError, each_checked, require_none, unreadable
from windows_pipeline.sources.csv.records import fields_of, header_of, names_in, record_columns
from windows_pipeline.sources.csv.scan import CHUNK_BYTES, CsvForm
from windows_pipeline.sources.file_checks import LandedFile
from windows_pipeline.sources.formats import landed_schema, no_records

_COMPRESSION = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd"}
_HEAD_BYTES = 64 << 10
_TASK_BYTES = 8 << 20
"""The size of the files that one task reads, unless a single file is larger."""
_OPEN_BYTES = 1 << 20
"""The cost of opening a file, as the number of bytes that a task could read meanwhile."""
_LINE_BITS = 33
"""A task numbers its records from its own number times 2 to this power."""
_SHOWN_CHARACTERS = 500
"""How much of a header an error shows."""
_OTHER_DELIMITERS = ";\t|,:"


class _Headed(NamedTuple):
    """A file with a header."""

    file: LandedFile
    size_bytes: int
    header: bytes
    names: list[str]


class _File(NamedTuple):
    """What a task must know to read a file.

    `columns` are the indices of the fields to read, each with whether it is a column of texts;
    `slots` has for each declared column its index among them, or None if the header lacks it.
    """

    day: date
    name: str
    path: str
    header: bytes
    field_count: int
    columns: dict[int, bool]
    slots: list[int | None]

    def __str__(self) -> str:
        return f"{self.day}/{self.name}"


def read_csv(
    spark: SparkSession, filesystem: fs.FileSystem, files: Sequence[LandedFile], source: Source
) -> DataFrame:
    """Reads CSV files with headers; records that repeat the header are skipped.

    Raises:
        BadFileError: Files of a day differ in their header, or a header lacks a declared column,
            has it twice, or can't be read. Where Spark runs, its error has the text of a
            BadFileError if a file can't be read, or a record is too long.
    """
    form = _form(source)
    found = _fitting(filesystem, files, source, form)
    if not found:
        return no_records(spark, source.paths)
    tasks = _tasks(found, source.read_types)
    numbers = spark.range(0, len(tasks), 1, len(tasks))  # a partition for each number
    schema = landed_schema(source.paths)
    return numbers.mapInArrow(partial(_records, tasks, filesystem, form, schema.names), schema)


def require_headers(filesystem: fs.FileSystem, files: Sequence[LandedFile], source: Source) -> None:
    """Requires the headers that `read_csv` requires.

    Raises:
        BadFileError: As of `read_csv`; the error names all files that are bad.
    """
    _fitting(filesystem, files, source, _form(source))


def _form(source: Source) -> CsvForm:
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
    with _opened(filesystem, file.path, str(file)) as stream:
        header = header_of(_chunks(stream, _HEAD_BYTES), form, str(file))
        if header is None:
            return None
        size = filesystem.get_file_info(file.path).size
    headed = _Headed(file, size, header, names_in(header, form, str(file)))
    _require_declared(headed, source, form)
    return headed


@contextmanager
def _opened(filesystem: fs.FileSystem, path: str, name: str) -> Iterator[pa.NativeFile]:
    """Opens a file, decompressed as the end of its name says.

    Raises:
        BadFileError: The file can't be opened, or not be read within the block.
    """
    compression = next((kind for end, kind in _COMPRESSION.items() if path.endswith(end)), None)
    try:
        with filesystem.open_input_stream(path, compression=compression) as stream:
            yield stream
    except OSError as error:
        raise unreadable(name, error) from error


def _chunks(stream: pa.NativeFile, size_bytes: int = CHUNK_BYTES) -> Iterator[bytes]:
    return iter(partial(stream.read, size_bytes), b"")


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


def _tasks(found: Sequence[_Headed], declared: Mapping[str, str]) -> list[list[_File]]:
    """Divides files among tasks, each of which reads its files one after the other."""
    tasks: list[list[_File]] = []
    free = 0
    of_headers: dict[bytes, tuple[dict[int, bool], list[int | None]]] = {}
    for file, size, header, names in found:
        cost = size + _OPEN_BYTES
        if cost > free or not tasks:
            tasks.append([])
            free = _TASK_BYTES
        free -= cost
        if header not in of_headers:
            there = {name: kind for name, kind in declared.items() if name in names}
            columns = {names.index(name): kind == "string" for name, kind in there.items()}
            slots = {name: slot for slot, name in enumerate(there)}
            of_headers[header] = columns, [slots.get(name) for name in declared]
        of_header = (header, len(names), *of_headers[header])
        tasks[-1].append(_File(file.day, file.name, file.path, *of_header))
    return tasks


def _records(
    tasks: Sequence[Sequence[_File]],
    filesystem: fs.FileSystem,
    form: CsvForm,
    names: Sequence[str],
    numbers: Iterator[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    """Reads the files of some tasks into the columns of `landed_schema`, which have these names."""
    for number in (number for batch in numbers for number in batch.column(0).to_pylist()):
        line = number << _LINE_BITS
        for file in tasks[number]:
            with _opened(filesystem, file.path, str(file)) as stream:
                of_file = (form, str(file), file.header, file.field_count, file.columns)
                for columns in record_columns(_chunks(stream), *of_file):
                    arrays = _arrays(file, line, columns)
                    yield pa.RecordBatch.from_arrays(arrays, names=names)
                    line += len(columns[0])


def _arrays(file: _File, line: int, columns: Sequence[pa.Array]) -> list[pa.Array]:
    text, malformed, *found = columns
    count = len(text)
    fields = [pa.nulls(count, pa.string()) if slot is None else found[slot] for slot in file.slots]
    return [
        pa.repeat(pa.scalar(file.day, pa.date32()), count),
        pa.repeat(pa.scalar(file.name), count),
        text,
        malformed,
        pa.repeat(pa.scalar(0, pa.int64()), count),  # the part of the file is the whole of it
        pa.array(np.arange(line, line + count)),
        *fields,
    ]
