"""Checks landed files before Spark reads them: name, permission, compression, Parquet's footer.

The driver reads a few bytes of each file. A task finds faults in the rest of a file, and
`bad_files.bad_file_in` then names the file.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import fs

from windows_pipeline.sources.bad_files import (
    LAND_AGAIN,
    BadFileError,
    each_checked,
    too_many_columns,
    unreadable,
)
from windows_pipeline.text.limits import MAX_FILE_COLUMNS, MAX_PARQUET_VALUE_BYTES

_MAGIC = {".gz": b"\x1f\x8b", ".bz2": b"BZh", ".zst": b"\x28\xb5\x2f\xfd"}
"""The first bytes of a compressed file, by the end of its name."""
_WHOLE_MAGIC = _MAGIC | {".bz2": b"BZh91AY&SY"}
"""First bytes that no text begins with."""
_OF_SPARK = "_metadata"
"""The column that Spark adds to the rows of a file, with the file's path and name."""
_MOST_COLUMNS = MAX_FILE_COLUMNS["Parquet"]
_MOST_LEVELS = 50
"""How deep types may be nested: Arrow reads 100 levels; some thousands overflow stacks."""
_VALUES_AT_ONCE = 1024
_OF_BLOCKS = (b"1AY&SY", b"\x17rE8P\x90")
"""What follows the 4 bytes of a bzip2 header: a block, or the end of a file without a byte."""
_NANOSECONDS = (
    "which Spark can't read",
    "write it in microseconds (pandas: to_parquet(..., coerce_timestamps='us'))",
)
_TIME_OF_DAY = ("a type that Spark can't read", "write it in microseconds, or as text")
_TYPES_OF_SPARK = {
    "timestamp[ns": _NANOSECONDS,
    "time32[": _TIME_OF_DAY,
    "time64[ns": _TIME_OF_DAY,
}
"""Arrow's types that Spark refuses in Parquet: what an error calls them, and the fix."""


@dataclass(frozen=True)
class LandedFile:
    """A landed file: day, name, path for Arrow and URI for Spark, and size.

    `is_text` says whether the name is UTF-8; if not, `name` has escapes for the other bytes.
    """

    day: date
    name: str
    path: str
    uri: str
    size_bytes: int = 0
    is_text: bool = True

    def __str__(self) -> str:
        return f"{self.day}/{self.name}"


def require_readable(filesystem: fs.FileSystem, files: Sequence[LandedFile]) -> None:
    """Requires that Spark reads the files' names, and that the files open and begin as named.

    If a file is cut, or not compressed as its name says, Spark may silently read no line of it.

    Raises:
        BadFileError: Files are bad; the error names all of them.
    """
    each_checked(partial(_require_readable, filesystem), files)


def _require_readable(filesystem: fs.FileSystem, file: LandedFile) -> None:
    require_name(file.day, file.name, is_text=file.is_text)
    try:
        with filesystem.open_input_file(file.path) as opened:
            head: bytes = opened.read(max(map(len, _WHOLE_MAGIC.values())))
    except OSError as error:
        raise unreadable(str(file), error) from error
    ending = next(filter(file.name.endswith, _MAGIC), None)
    if ending is None:
        _require_text(file, head)
    elif not head:
        raise _without_byte(file.day, file.name, ending, "land the file again, or remove it")
    elif not head.startswith(_MAGIC[ending]):
        raise BadFileError(
            str(file),
            f"a file whose name ends with {ending} must begin with {_MAGIC[ending]!r}, and begins "
            f"with {head[:4]!r}",
            "compress it, or rename it",
        )
    elif ending == ".bz2" and not head[4:].startswith(_OF_BLOCKS):
        # Spark silently reads no line of such a file.
        raise BadFileError(str(file), "can't be read (the compression is cut)", LAND_AGAIN)


def require_may_be_empty(day: date, name: str, kind: str) -> None:
    """Requires that a file's format allows it to be empty, before a stream skips the empty file.

    Args:
        day: The day of its folder.
        name: Its name.
        kind: Its format.

    Raises:
        BadFileError: The file is compressed or Parquet, so it cannot be empty.
    """
    ending = next(filter(name.endswith, _MAGIC), ".parquet" if kind == "parquet" else None)
    if ending is not None:
        # A stream that was running when the file came never reads another file of that name.
        raise _without_byte(day, name, ending, "remove it, and land the file under another name")


def _without_byte(day: date, name: str, ending: str, fix: str) -> BadFileError:
    """The error of a failed upload: even a compressed empty text has a header."""
    what = "a Parquet file" if ending == ".parquet" else f"a file whose name ends with {ending}"
    cause = f"has no byte, and {what} is never empty: it is cut"
    return BadFileError(f"{day}/{name}", cause, fix)


def _require_text(file: LandedFile, head: bytes) -> None:
    ending = next((end for end, magic in _WHOLE_MAGIC.items() if head.startswith(magic)), None)
    if ending is not None:
        raise BadFileError(
            str(file),
            f"a file that begins with {_MAGIC[ending]!r} is compressed, and its name must end with "
            f"{ending}",
            "rename it",
        )


def require_name(day: date, name: str, *, is_text: bool) -> None:
    """Requires that Spark can read a file with this name.

    Raises:
        BadFileError: The name is not UTF-8, or holds a colon.
    """
    if not is_text:
        raise BadFileError(f"{day}/{name}", "its name must be UTF-8", "rename it")
    if ":" in name:
        cause = "its name holds a colon, which Hadoop takes for the end of a scheme such as s3:"
        raise BadFileError(f"{day}/{name}", cause, "rename it")


def _require_names(schema: pa.Schema, file: LandedFile) -> None:
    """Requires that Spark can tell the names of columns and fields apart, and limits nesting."""
    levels = [(0, schema.names, list(schema.types))]
    while levels:
        level, names, kinds = levels.pop()
        if level > _MOST_LEVELS:
            cause = (
                f"a column must have at most {_MOST_LEVELS} levels of nested types, but has more"
            )
            raise BadFileError(str(file), cause, "write it as text")
        seen: dict[str, str] = {}
        for name in names:
            folded = name.lower()
            if level == 0 and folded == _OF_SPARK:
                cause = f"column {name!r} has the name of a column that Spark adds to each file"
                raise BadFileError(str(file), cause, "rename it")
            if folded in seen:
                what = "columns" if level == 0 else "fields of a column"
                cause = f"{what} {seen[folded]!r} and {name!r} have one name to Spark"
                raise BadFileError(str(file), cause, "rename one of them")
            seen[folded] = name
        for kind in kinds:
            fields = [kind.field(number) for number in range(kind.num_fields)]
            named = [field.name for field in fields] if pa.types.is_struct(kind) else []
            if fields:
                levels.append((level + 1, named, [field.type for field in fields]))


def parquet_schemas(filesystem: fs.FileSystem, files: Sequence[LandedFile]) -> list[str]:
    """Reads the footers of Parquet files; files of an equal schema have an equal text.

    Raises:
        BadFileError: Files have no footer, are encrypted, or have a type that Spark can't read or
            a value that is too large; the error names all of them.
    """
    return each_checked(partial(_parquet_schema, filesystem), files)


def _parquet_schema(filesystem: fs.FileSystem, file: LandedFile) -> str:
    try:
        with pq.ParquetFile(file.path, filesystem=filesystem) as opened:
            schema = opened.schema_arrow.remove_metadata()
            large = [*_large_values(opened)]
    except UnicodeDecodeError:
        fix = "write its name as UTF-8"
        raise BadFileError(str(file), "the name of a column is not UTF-8", fix) from None
    except (OSError, pa.ArrowException) as error:
        raise unreadable(str(file), error) from error
    if len(schema) > _MOST_COLUMNS:
        raise too_many_columns(str(file), _MOST_COLUMNS)
    _require_names(schema, file)
    for field in schema:
        for kind, (what, fix) in _TYPES_OF_SPARK.items():
            if kind in str(field.type):
                cause = f"column {field.name!r} is {field.type}, {what}"
                raise BadFileError(str(file), cause, fix)
    for name, size in large:
        cause = (
            f"a value must have at most {MAX_PARQUET_VALUE_BYTES:,} bytes, but column {name!r} has "
            f"one of {size:,}"
        )
        raise BadFileError(str(file), cause, "cut it, or leave the column out")
    return str(schema)


def _large_values(opened: pq.ParquetFile) -> Iterator[tuple[str, int]]:
    """The columns with a value that would fill Spark's memory, and its bytes.

    A value is no larger than its row group, whose size the footer has; so values are read of large
    row groups alone. The footer has the sizes of columns, too, but PyArrow ends the process over
    damaged ones.
    """
    names = [field.name for field in opened.schema_arrow if _may_be_large(field.type)]
    for group in range(opened.metadata.num_row_groups if names else 0):
        if opened.metadata.row_group(group).total_byte_size <= MAX_PARQUET_VALUE_BYTES:
            continue
        most: Counter[str] = Counter()
        for batch in opened.iter_batches(_VALUES_AT_ONCE, [group], columns=names):
            for name, values in zip(batch.schema.names, batch.columns, strict=True):
                most[name] = max(most[name], _most_bytes(values))
        yield from ((name, size) for name, size in most.items() if size > MAX_PARQUET_VALUE_BYTES)


def _may_be_large(kind: pa.DataType) -> bool:
    """Whether values of a type have a text or binary value of any length, at any level."""
    if kind.num_fields:
        return any(_may_be_large(kind.field(number).type) for number in range(kind.num_fields))
    values = kind.value_type if pa.types.is_dictionary(kind) else kind
    has_one_size = pa.types.is_primitive, pa.types.is_decimal, pa.types.is_null
    return not any(is_such(values) for is_such in has_one_size)


def _most_bytes(values: pa.Array) -> int:
    """The bytes of the largest text or binary value, at any level of nested types."""
    kind = values.type
    if not _may_be_large(kind):
        return 0
    if pa.types.is_struct(kind):
        return max(map(_most_bytes, values.flatten()), default=0)
    if pa.types.is_nested(kind):
        inner = [values.keys, values.items] if pa.types.is_map(kind) else [values.flatten()]
        return max(map(_most_bytes, inner))
    if pa.types.is_dictionary(kind):
        return _most_bytes(values.dictionary)
    return pc.max(pc.binary_length(values)).as_py() or 0
