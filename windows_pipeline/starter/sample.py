"""Reads a sample by DuckDB: the first records of its files, as columns of text."""

from __future__ import annotations

import glob
import gzip
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa

from windows_pipeline.starter.files import COMPRESSED, SampleFiles
from windows_pipeline.starter.instants import connected, literal, micros_of, written
from windows_pipeline.starter.types import SampleColumn
from windows_pipeline.text.instants import EPOCH_DAY

MOST_RECORDS = 200_000
_MOST_COLUMNS = 1_000
_DELIMITERS = b",;\t|"
_LONGEST_HEADER = 1 << 20
_FILE = "the file of a record"
"""The column that DuckDB adds, with a name that no sample has."""
_NATIVES = {
    "BOOLEAN": "boolean",
    **dict.fromkeys(("TINYINT", "SMALLINT", "INTEGER", "BIGINT"), "bigint"),
    **dict.fromkeys(("UTINYINT", "USMALLINT", "UINTEGER"), "bigint"),
    **dict.fromkeys(("FLOAT", "DOUBLE"), "double"),
    "DATE": "date",
}
"""A pipeline's types, by DuckDB's types of Parquet columns."""
_LOOKED_AT = ("VARCHAR", "UBIGINT")
"""Types of Parquet columns whose values must be looked at."""
Verdict = dict[str | None, tuple[int, str]]
"""What the reader of a run says of a sample: by reason the number of records that it rejects, and
the text of one, the most frequent first; None is the reason of those that it accepts."""


@dataclass(frozen=True, slots=True)
class Sample:
    """The first records of a sample, in the order of their files.

    Attributes:
        columns: The values of each column as a pipeline reads them: texts, null where a record
            has none.
        natives: The types that Parquet files declare, as pipelines name them; empty for text files.
        day: Each record's day folder, in days since 1970; 0 where there are no day folders.
        is_share: Whether the files have more records than the sample.
        repeated: The names that a CSV header has twice.
        delimiter: The character between the fields of CSV files.
        records: A query of all records, whose columns of text are numbered: c0, c1, ...
    """

    columns: Mapping[str, pa.StringArray]
    natives: Mapping[str, str]
    day: np.ndarray
    is_share: bool
    repeated: tuple[str, ...] = ()
    delimiter: str = ","
    records: str = ""

    @property
    def record_count(self) -> int:
        """How many records were read."""
        return len(self.day)

    def latest_us(self, column: SampleColumn, before_us: int) -> int | None:
        """Returns the largest time of a column in all records, in microseconds since 1970.

        Args:
            column: The column, of a time's type.
            before_us: Times from here on are ignored.
        """
        text = f"c{[*self.columns].index(column.name)}"
        if column.text_form is not None:
            text = f"({written(column.text_form, text)})"
        times = f"SELECT {micros_of(column.type, text)} AS us"
        with connected(column.zone or "UTC") as database:
            found = database.execute(
                f"SELECT max(us) FROM ({times} FROM ({self.records})) WHERE us < {before_us}"  # noqa: S608
            ).fetchall()
        return found[0][0]  # type: ignore[no-any-return]


@dataclass(frozen=True, slots=True)
class _Query:
    """A query of the records of files: columns of text, numbered, and the file last."""

    text: str
    names: Sequence[str]
    natives: Mapping[str, str]
    delimiter: str = ","


_NOTHING = _Query("SELECT NULL WHERE false", (), {})


def read_sample(files: SampleFiles, most: int = MOST_RECORDS) -> Sample:
    """Reads the first records of a sample.

    Args:
        files: The files.
        most: The most records to read.

    Raises:
        ValueError: No record can be read, or the files have no header or too many columns.
    """
    with _readable(files), connected() as database:
        query = {"csv": _csv_query, "jsonl": _json_query, "parquet": _parquet_query}[files.format](
            database, files
        )
        table = database.sql(f"{query.text} LIMIT {most + 1}").to_arrow_table()
    taken = table.slice(0, most)
    if not taken.num_rows:
        raise ValueError(
            f"--from {files.root}: must hold at least one record, but no line can be read as "
            f"{files.format}; name files with records, of text in UTF-8"
        )
    texts = [column.combine_chunks() for column in taken.columns[:-1]]
    counts = Counter(query.names)
    return Sample(
        columns=dict(zip(query.names, texts, strict=True)),
        natives=query.natives,
        day=_days(files, taken.column(taken.num_columns - 1)),
        is_share=table.num_rows > most,
        repeated=tuple(name for name, count in counts.items() if count > 1),
        delimiter=query.delimiter,
        records=query.text,
    )


@contextmanager
def _readable(files: SampleFiles) -> Iterator[None]:
    """Raises an error of DuckDB as one line.

    Raises:
        ValueError: DuckDB cannot read the files.
    """
    try:
        yield
    except duckdb.Error as error:
        cause = str(error).splitlines()[0]
        raise ValueError(
            f"--from {files.root}: must be readable as {files.format}, but is not ({cause}); copy "
            "or write the files again, text in UTF-8, or move them away"
        ) from None


def _csv_query(database: duckdb.DuckDBPyConnection, files: SampleFiles) -> _Query:
    """Returns the query of CSV files, whose delimiter DuckDB finds."""
    filled = [file for file in files.files if file.stat().st_size]
    if not filled:
        return _NOTHING
    for file in filled:
        _require_header(files, file)
    first = literal(glob.escape(str(filled[0])))
    form = "ignore_errors = true"
    delimiter, quote, has_header, count = database.execute(
        f"SELECT Delimiter, Quote, HasHeader, len(Columns) FROM sniff_csv({first}, {form})"  # noqa: S608
    ).fetchall()[0]
    columns = ", ".join(f"c{number}: 'VARCHAR'" for number in range(count))
    form += (
        f", delim = {literal(delimiter)}, quote = {literal(quote.replace('(empty)', ''))}, "
        f"auto_detect = false, columns = {{{columns}}}"
    )
    header = database.execute(f"FROM read_csv({first}, header = false, {form}) LIMIT 1").fetchall()
    names = [name or "" for row in header for name in row]
    if not has_header:
        raise ValueError(
            f"--from {files.root}: the first line must name the columns, and it is "
            f"{delimiter.join(names)[:80]!r}; write a line with the names in front"
        )
    text = f"FROM read_csv({_paths(filled)}, header = true, filename = {literal(_FILE)}, {form})"
    return _Query(text, names, {}, delimiter)


def _require_header(files: SampleFiles, file: Path) -> None:
    """Requires a header in UTF-8 with few names, for each of 30,000 of which DuckDB takes long.

    Raises:
        ValueError: The first line is no UTF-8, or has too many names.
    """
    with gzip.open(file) if file.suffix == COMPRESSED else file.open("rb") as stream:
        try:
            line = stream.readline(_LONGEST_HEADER)
        except (EOFError, OSError):
            return  # no gzip: an error of DuckDB says so
    try:
        line.decode()
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{file}: the header must be UTF-8, but has the byte 0x{line[error.start]:02x} after "
            f"{line[: error.start][-40:]!r}; convert the file to UTF-8 (a pipeline reads other "
            "encodings, by 'encoding' in its source, but its sample must be UTF-8)"
        ) from None
    _require_few_columns(files, max(line.count(delimiter) for delimiter in _DELIMITERS))


def _require_few_columns(files: SampleFiles, delimiters: int) -> None:
    if delimiters >= _MOST_COLUMNS:
        raise ValueError(
            f"--from {files.root}: must have at most {_MOST_COLUMNS:,} columns, but has "
            f"{delimiters + 1:,}; if a record's fields are named by its values, write them "
            "as values of one column"
        )


def _json_query(database: duckdb.DuckDBPyConnection, files: SampleFiles) -> _Query:
    """Returns the query of the fields of JSON objects; other lines are left out."""
    objects = (
        f"FROM read_ndjson_objects({_paths(files.files)}, ignore_errors = true, "
        f"filename = {literal(_FILE)}) WHERE json_type(json) = 'OBJECT'"
    )
    numbered = f"SELECT json_keys(json) AS names, row_number() OVER () AS line {objects}"
    found = database.execute(
        f"SELECT names FROM ({numbered} LIMIT {MOST_RECORDS}) GROUP BY names ORDER BY min(line)"  # noqa: S608
    ).fetchall()
    names = [*dict.fromkeys(chain.from_iterable(names for (names,) in found))]
    if not names:
        return _NOTHING
    _require_few_columns(files, len(names) - 1)
    fields = ", ".join(
        f"json_extract_string(json, {literal(_pointer(name))}) AS c{number}"
        for number, name in enumerate(names)
    )
    return _Query(f"SELECT {fields}, {_quoted(_FILE)} {objects}", names, {})


def _parquet_query(database: duckdb.DuckDBPyConnection, files: SampleFiles) -> _Query:
    rows = f"read_parquet({_paths(files.files)}, union_by_name = true, filename = {literal(_FILE)})"
    described = database.execute(f"DESCRIBE FROM {rows}").fetchall()
    types = {name: kind for name, kind, *_ in described if name != _FILE}
    _require_few_columns(files, len(types) - 1)
    texts = ", ".join(
        f"CAST({_quoted(name)} AS VARCHAR) AS c{number}" for number, name in enumerate(types)
    )
    natives = {name: _native(kind) for name, kind in types.items() if kind not in _LOOKED_AT}
    return _Query(f"SELECT {texts}, {_quoted(_FILE)} FROM {rows}", [*types], natives)  # noqa: S608


def _native(kind: str) -> str:
    """A pipeline's type for DuckDB's type of a Parquet column."""
    if kind.startswith("TIMESTAMP"):
        return "timestamp"
    return kind.lower() if kind.startswith("DECIMAL") else _NATIVES.get(kind, "string")


def _days(files: SampleFiles, paths: pa.ChunkedArray) -> np.ndarray:
    """Returns the day folder of each record, in days since 1970."""
    encoded = paths.combine_chunks().dictionary_encode()
    days = [files.day_of(Path(path)) or EPOCH_DAY for path in encoded.dictionary.to_pylist()]
    numbers = np.array([(day - EPOCH_DAY).days for day in days], np.int64)
    found: np.ndarray = numbers[np.asarray(encoded.indices)]
    return found


def _paths(files: Sequence[Path]) -> str:
    return f"[{', '.join(literal(glob.escape(str(file))) for file in files)}]"


def _pointer(name: str) -> str:
    """The JSON pointer of a field."""
    return "/" + name.replace("~", "~0").replace("/", "~1")


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
