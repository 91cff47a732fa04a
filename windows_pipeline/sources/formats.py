"""Reads landed JSON lines and Parquet files into rows of text.

Every reader returns the columns of `read_landed`. Since all values are text, one set of rules
converts them to types for every format, and Parquet files may differ in a column's type.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial, reduce
from urllib.parse import unquote

from pyarrow import fs
from pyspark.errors import AnalysisException, ArithmeticException, IllegalArgumentException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    FloatType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from windows_pipeline.compat.local_frame import small_frame
from windows_pipeline.config.source import Source
from windows_pipeline.sources.bad_files import BadFileError, changed_while_read, require_none
from windows_pipeline.sources.csv.scan import CsvForm
from windows_pipeline.sources.file_checks import LandedFile, parquet_schemas
from windows_pipeline.sources.landed_columns import BLOCK, LINE
from windows_pipeline.sources.lines import lines_in
from windows_pipeline.sources.text_files import Columns, FilePart, compression_of, in_tasks, opened
from windows_pipeline.text.paths import literal

_EVERY_FILE = {"ignoreCorruptFiles": "false", "ignoreMissingFiles": "false"}
"""Options that let no setting of Spark leave out a bad file without a word (A8)."""
_PART_BYTES = 32 << 20
"""The most bytes of a file of JSON lines that one task reads."""
_FRAME_BITS = 53
"""Records of the frames of a union are numbered from multiples of 2 to this power. Spark numbers
those of a task from multiples of 2^33, so a frame may have a million tasks."""
_ESCAPED_BACKSLASH = r"\\\\"
_SURROGATE = r"(?i)\\ud[89a-f][0-9a-f]{2}"
_SURROGATE_PAIR = r"(?i)\\ud[89ab][0-9a-f]{2}\\ud[c-f][0-9a-f]{2}"
_ROW_AS_JSON = {
    "ignoreNullFields": "false",
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}
_NEXT_JSON_NUMBER = r"""\G((?:[^"0-9-]++|-(?![0-9])|"(?:[^"\\]++|\\.)*+")*+)(-?[0-9][0-9.eE+-]*+)"""
"""A JSON number outside of texts, and what stands before it since the last match."""
_MARK = "~"
"""What marks a number among texts that look like numbers."""
_JSON_TEXT = r'''"((?:[^"\\]++|\\.)*+)"'''
_STRICT = {"allowSingleQuotes": "false"}
"""Options of `from_json`."""
_ESCAPED = re.compile(r'["\\/\x00-\x1f]')
"""Characters for which JSON has a short escape."""
_PLAIN_NAME = re.compile(r"[A-Za-z0-9._-]+")
"""A file name that needs no escapes in a URI."""
_NOT_NUMBERS = ['"NaN"', '"Infinity"', '"-Infinity"']
_MAY_BE_ROUNDED = r"^-?[0-9]+\.[0-9]+(E-?[0-9]+)?$|^-?Infinity$"
"""How Spark writes a JSON number with a point or an exponent: as the nearest double."""
_MAY_BE_LOST = r"^-?(0\.0|Infinity)$"
_TEXTS = (StringType, BinaryType)
_USUAL_RECORD_BYTES = CsvForm().max_record_bytes


Reader = Callable[[SparkSession, fs.FileSystem, Sequence[LandedFile], Source], DataFrame]


def landed_schema(columns: Iterable[str]) -> StructType:
    """The columns that a reader returns; those that the source declares come last."""
    schema = StructType().add("arrival_unit", "date").add("file", "string")
    schema.add("original", "string").add("malformed", "boolean")
    schema.add(BLOCK, "long").add(LINE, "long")
    for name in columns:
        schema.add(name, "string")
    return schema


_LINES = StructType().add("arrival_unit", "date").add("file", "string").add("value", "string")
_LINES.add(BLOCK, "long").add(LINE, "long")


def no_records(spark: SparkSession, columns: Iterable[str]) -> DataFrame:
    """The frame that a reader returns for no files."""
    return small_frame(spark, [], landed_schema(columns))


def read_jsonl(
    spark: SparkSession,
    filesystem: fs.FileSystem,
    files: Sequence[LandedFile],
    source: Source,
) -> DataFrame:
    """Reads JSON lines; names are case-sensitive, and each line must be one JSON object.

    Raises:
        BadFileError: Where Spark runs, its error has the text of a BadFileError if a file can't be
            read, or a line is too long.
    """
    read = partial(_lines, filesystem, source.max_record_bytes or _USUAL_RECORD_BYTES)
    lines = in_tasks(spark, _parts(files), read, _LINES)
    not_blank = lines.where(F.col("value").rlike(r"\S"))
    return parsed_json(not_blank, source, ["arrival_unit", "file", BLOCK, LINE])


def parsed_json(lines: DataFrame, source: Source, carried: Sequence[str | Column]) -> DataFrame:
    """Parses JSON objects into the declared columns of `read_landed`.

    Args:
        lines: `value`, an object's text, and the columns to pass through.
        source: The source that declares the columns.
        carried: Columns of `lines` to return, too.
    """
    record = _texts_at(source.paths.values())
    # Spark parses the first value of a line and ignores the rest. Wrapped into an array with a
    # second element, a line has exactly one value or the array has another length.
    wrapped = F.concat(F.lit("["), "value", F.lit(",{}]"))
    parsed = lines.withColumn("parsed", F.from_json(wrapped, ArrayType(record), _STRICT))
    first = F.get("parsed", F.lit(0))  # null if the array is empty, where [0] would fail
    is_object = (F.size("parsed") == 2) & first.isNotNull()
    is_text = F.is_valid_utf8("value") & ~_has_lone_surrogate(F.col("value"))
    return parsed.select(
        *carried,
        _valid_text(F.col("value")).alias("original"),
        (~F.coalesce(is_object & is_text, F.lit(False))).alias("malformed"),
        *[
            _json_text(F.when(_is_in_objects(F.col("value"), path[:-1]), _at(first, path))).alias(
                name
            )
            for name, path in source.paths.items()
        ],
    )


def _is_in_objects(line: Column, path: Sequence[str]) -> Column:
    """Whether the last field at each step of a path is an object.

    Of fields of one name `from_json` takes the last, but an earlier object if the last is none.
    Only lines that may have a name of the path twice are parsed again, a level at a time, with a
    mark in all texts, so that no text looks like an object.
    """
    if not path:
        return F.lit(True)
    is_once = ~F.contains(line, F.lit(r"\u"))
    is_in_objects = F.lit(True)
    level = F.regexp_replace(line, _JSON_TEXT, '"~$1"')
    for name in path:
        quoted = re.escape(name)
        is_once &= ~line.rlike(f'(?s)"{quoted}".*"{quoted}"') & F.lit(not _ESCAPED.search(name))
        field = StructField(f"~{name}", StringType())
        level = F.from_json(level, StructType([field]), _STRICT)[field.name]
        is_in_objects &= F.startswith(level, F.lit("{"))
    return F.when(is_once, F.lit(True)).otherwise(is_in_objects)


def _texts_at(paths: Iterable[Sequence[str]]) -> StructType:
    """The schema of records that hold texts at some paths, none of which lies within another."""
    below: dict[str, list[Sequence[str]]] = {}
    for name, *rest in paths:
        below.setdefault(name, []).append(rest)
    return StructType(
        [
            StructField(name, _texts_at(rest) if all(rest) else StringType())
            for name, rest in below.items()
        ]
    )


def _at(record: Column, path: Sequence[str]) -> Column:
    """The value at a path; null if a part of the path is null."""
    return reduce(Column.__getitem__, path, record)


def _valid_text(text: Column) -> Column:
    """Replaces bytes that are not UTF-8 by U+FFFD, as some readers of tables refuse them."""
    return F.when(F.is_valid_utf8(text), text).otherwise(F.make_valid_utf8(text))


def _has_lone_surrogate(json: Column) -> Column:
    """Whether JSON escapes half a surrogate pair, which UTF-8 can't represent."""
    escapes = F.regexp_replace(json, _ESCAPED_BACKSLASH, "")
    lone = F.regexp_replace(escapes, _SURROGATE_PAIR, "").rlike(_SURROGATE)
    may_be = F.contains(json, F.lit(r"\ud")) | F.contains(json, F.lit(r"\uD"))
    return F.when(may_be, lone).otherwise(F.lit(False))


def with_exact_numbers(records: DataFrame, source: Source) -> DataFrame:
    """Restores the digits of JSON numbers, which Spark has rounded.

    Spark reads a number with a point or an exponent as the nearest double. Where digits may be
    lost, the numbers of the original line are put into quotes and parsed again, as text. In a
    column whose texts have other signs, a number gets these signs, so that it stays what it is.

    Args:
        records: The rows of `read_jsonl` or `parsed_json`.
        source: The source that declares the columns' types.
    """
    signs = _decimal_signs(source)
    inexact = {
        name: _MAY_BE_LOST if kind == "double" and name not in signs else _MAY_BE_ROUNDED
        for name, kind in source.read_types.items()
        if name in source.paths and kind not in ("boolean", "date", "timestamp")
    }
    if not inexact:
        return records
    paths = source.paths
    record = _texts_at(paths[name] for name in inexact)
    quoted = F.regexp_replace("original", _NEXT_JSON_NUMBER, rf'$1"{_MARK}$2"')
    parsed = F.from_json(quoted, record, _STRICT)
    found = {name: _json_text(_at(parsed, paths[name])) for name in inexact}
    numbers = {
        name: F.translate(text, f".{_MARK}", signs.get(name, ".")) for name, text in found.items()
    }
    return records.withColumns(
        {
            name: F.when(
                F.col(name).rlike(seen),
                F.when(F.startswith(found[name], F.lit(_MARK)), numbers[name]).otherwise(
                    F.coalesce(found[name], name)
                ),
            ).otherwise(F.col(name))
            for name, seen in inexact.items()
        }
    )


def _decimal_signs(source: Source) -> dict[str, str]:
    """The sign before the digits after the point, by column, of the columns that declare signs."""
    forms = source.long_forms.items()
    return {
        name: column.decimal or "."
        for name, column in forms
        if column.decimal is not None or column.thousands is not None
    }


def read_parquet(
    spark: SparkSession, filesystem: fs.FileSystem, files: Sequence[LandedFile], source: Source
) -> DataFrame:
    """Reads Parquet; a declared column that a file lacks is null."""
    by_schema: dict[str, list[LandedFile]] = defaultdict(list)
    for file, schema in zip(files, parquet_schemas(filesystem, files), strict=True):
        by_schema[schema].append(file)
    return _union(
        _parquet_of_schema(spark, same, source, number)
        for number, same in enumerate(by_schema.values())
    )


@dataclass(frozen=True)
class _Part(FilePart):
    """A part of a file; `end` is where the next one begins, or None for the last."""

    end: int | None = None


def _parts(files: Iterable[LandedFile]) -> Iterator[tuple[_Part, int]]:
    """The parts of files, each with its size; only a file without compression has several."""
    for file in files:
        step = max(file.size_bytes, 1) if compression_of(file.name) else _PART_BYTES
        *begins, last = range(0, max(file.size_bytes, 1), step)
        of_file = (file.day, file.name, file.path)
        yield from ((_Part(*of_file, begin, begin + step), step) for begin in begins)
        yield _Part(*of_file, last), file.size_bytes - last


def _lines(filesystem: fs.FileSystem, most_bytes: int, part: _Part) -> Iterator[Columns]:
    first = max(part.begin - 1, 0)
    with opened(filesystem, part.path, str(part), begin=first) as chunks:
        for lines in lines_in(chunks, most_bytes, str(part), part.begin, part.end):
            yield {"value": lines}


@contextmanager
def _refusals_named(files: Sequence[LandedFile]) -> Iterator[None]:
    """Names Parquet files that Spark refuses before it reads records.

    Raises:
        BadFileError: A file is gone, or all of the files have a type that Spark can't read.
    """
    try:
        yield
    except (AnalysisException, ArithmeticException, IllegalArgumentException) as error:
        condition = error.getCondition() or ""
        if condition == "PATH_NOT_FOUND":
            gone = [file for file in files if file.uri in unquote(str(error))] or files
            require_none([changed_while_read(str(file), "deleted or renamed") for file in gone])
        cause = f"has a column that Spark can't read ({error.getMessage()})"
        fix = "write another type, or text"
        require_none([BadFileError(str(file), cause, fix) for file in files])


def _origin(files: Sequence[LandedFile]) -> tuple[Column, ...]:
    """Columns for each record's `arrival_unit`, `file`, `_block` and `_line`.

    Spark evaluates functions of a path for every record, which takes half of the time to read it.
    So the day is a literal if all files have the same, and names without escapes are not decoded.
    """
    folder = F.substring_index(F.substring_index("_metadata.file_path", "/", -2), "/", 1)
    days = {file.day for file in files}
    arrival_unit = folder.cast("date") if len(days) > 1 else F.lit(files[0].day)
    # The name is escaped as in a URI, in which a plus sign is no blank.
    encoded = F.col("_metadata.file_name")
    name = encoded
    if not all(_PLAIN_NAME.fullmatch(file.name) for file in files):
        decoded = F.try_url_decode(F.replace(encoded, F.lit("+"), F.lit("%2B")))
        name = F.coalesce(decoded, encoded)
    return (
        arrival_unit.alias("arrival_unit"),
        name.alias("file"),
        F.col("_metadata.file_block_start").alias(BLOCK),
        F.monotonically_increasing_id().alias(LINE),
    )


def _json_text(value: Column) -> Column:
    """Strips the quotes that Spark puts around the bare NaN and Infinity of Python's json."""
    return F.when(value.isin(_NOT_NUMBERS), F.btrim(value, F.lit('"'))).otherwise(value)


def _parquet_of_schema(
    spark: SparkSession, files: Sequence[LandedFile], source: Source, number: int
) -> DataFrame:
    with _refusals_named(files):
        # With escapes for ``*?[]{}``, which Spark would take as patterns.
        paths = [literal(file.uri) for file in files]
        found = spark.read.options(**_EVERY_FILE).parquet(*paths)
    rows = texts_of(found, source, _origin(files))
    # Spark numbers the tasks of each frame of a union from 0.
    return rows.withColumn(LINE, F.col(LINE) + F.lit(number << _FRAME_BITS)) if number else rows


def texts_of(
    rows: DataFrame, source: Source, origin: Sequence[Column], excluded: Sequence[str] = ()
) -> DataFrame:
    """Turns typed rows into the text columns of `read_landed`; missing columns become null.

    Args:
        rows: The rows.
        source: The source that declares the columns.
        origin: The columns `arrival_unit`, `file` and others to return first.
        excluded: Columns of `rows` that are no part of the records.
    """
    fields = {field.name: field for field in rows.schema if field.name not in excluded}
    row = F.lit("{}")
    if fields:
        row = F.to_json(F.struct(*[_column(name) for name in fields]), _ROW_AS_JSON)
    types = {name: _type_at(fields, path) for name, path in source.paths.items()}
    values = {
        name: _at(_column(path[0]), path[1:])
        for name, path in source.paths.items()
        if types[name] is not None
    }
    texts = [value for name, value in values.items() if isinstance(types[name], _TEXTS)]
    signs = _decimal_signs(source)
    not_text = [~F.coalesce(F.is_valid_utf8(text.cast("string")), F.lit(True)) for text in texts]
    return rows.select(
        *origin,
        _valid_text(row).alias("original"),
        reduce(Column.__or__, not_text, F.lit(False)).alias("malformed"),
        *[
            _text(
                values.get(name), kind, signs.get(name, "."), says_zone=name in source.zones
            ).alias(name)
            for name, kind in types.items()
        ],
    )


def _type_at(fields: Mapping[str, StructField], path: Sequence[str]) -> DataType | None:
    """The type of the values at a path; None if there are none."""
    first, *rest = path
    if first not in fields:
        return None
    kind = fields[first].dataType
    if not rest:
        return kind
    inner = {field.name: field for field in kind} if isinstance(kind, StructType) else {}
    return _type_at(inner, rest)


def _column(name: str) -> Column:
    """A column, whatever characters its name has."""
    return F.col("`" + name.replace("`", "``") + "`")


def _text(column: Column | None, kind: DataType | None, sign: str, *, says_zone: bool) -> Column:
    if column is None:
        return F.lit(None).cast("string")
    if isinstance(kind, (ArrayType, MapType, StructType)):
        return F.to_json(column)
    if isinstance(kind, FloatType):
        column = column.cast("double")  # its text has the digits of the exact value
    if isinstance(kind, TimestampType) and says_zone:
        return F.concat(column.cast("string"), F.lit("Z"))  # an instant, not a local time
    text = column.cast("string")
    # Only a text has other signs, not a number.
    return text if sign == "." or isinstance(kind, _TEXTS) else F.translate(text, ".", sign)


def _union(frames: Iterable[DataFrame]) -> DataFrame:
    return reduce(DataFrame.unionByName, frames)
