"""Reads a bounded share of Parquet files into columns of text, with their declared types."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import date
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from windows_pipeline.starter.files import SampleFile

_BATCH = 16_384


def open_parquet(path: Path) -> pq.ParquetFile:
    """Opens a Parquet file.

    Raises:
        ValueError: The file is not Parquet.
    """
    try:
        return pq.ParquetFile(path)
    except (pa.ArrowException, OSError) as error:
        reason = str(error).splitlines()[0]
        raise ValueError(
            f"{path}: must be a Parquet file, but is not ({reason}); write it again, or move it "
            "away"
        ) from None


def read_parquet_parts(
    files: Sequence[SampleFile], most: int
) -> tuple[dict[str, pa.StringArray], dict[str, str], list[int], bool]:
    """Reads the first and the last rows of the files.

    Args:
        files: The files.
        most: The most rows to read.

    Returns:
        The columns as texts, their types in a pipeline's words, each row's day folder in days
        since 1970 (0 for none), and whether there are more rows.

    Raises:
        ValueError: A file is not Parquet, or has a column of a type that Spark can't read.
    """
    counts = [_row_count(file.path) for file in files]
    total = sum(counts)
    half = most // 2
    ranges = [(0, total)] if total <= most else [(0, half), (total - half, total)]
    tables: list[pa.Table] = []
    days: list[int] = []
    position = 0
    for file, count in zip(files, counts, strict=True):
        for first, last in ranges:
            start, stop = max(first - position, 0), min(last - position, count)
            if start < stop:
                table = _rows(file.path, start, stop)
                tables.append(table)
                day = 0 if file.day is None else (file.day - date(1970, 1, 1)).days
                days += [day] * table.num_rows
        position += count
    if not tables:
        return {}, {}, [], False
    names = list(dict.fromkeys(name for table in tables for name in table.column_names))
    texts = {
        name: pa.concat_arrays([_texts_or_nulls(table, name) for table in tables]) for name in names
    }
    natives = {
        name: native
        for table in tables[::-1]
        for name in table.column_names
        if (native := native_type(table.schema.field(name).type)) is not None
    }
    return texts, natives, days, total > most


def _row_count(path: Path) -> int:
    """How many rows a file has.

    Raises:
        ValueError: A column has a type that Spark can't read: a run would find the file bad.
    """
    file = open_parquet(path)
    for field in file.schema_arrow:
        if _is_unreadable(field.type):
            raise ValueError(
                f"{path}: must have columns of types that Spark reads, but column {field.name!r} "
                f"is {field.type}; write another type, or text"
            )
    return int(file.metadata.num_rows)


def _is_unreadable(kind: pa.DataType) -> bool:
    is_too_long = pa.types.is_decimal(kind) and kind.precision > 38
    inner = (kind.field(index).type for index in range(kind.num_fields))
    return (
        is_too_long
        or pa.types.is_time(kind)
        or pa.types.is_float16(kind)
        or any(map(_is_unreadable, inner))
    )


def _rows(path: Path, start: int, stop: int) -> pa.Table:
    """Reads a range of rows; row groups outside of the range are not read."""
    with open_parquet(path) as file:
        schema = file.schema_arrow
        sizes = [file.metadata.row_group(index).num_rows for index in range(file.num_row_groups)]
        ends = np.cumsum([0, *sizes])
        groups = [i for i in range(len(sizes)) if ends[i] < stop and ends[i + 1] > start]
        batches = list(_slices(file, groups, start - int(ends[groups[0]]), stop - start))
    return pa.Table.from_batches(batches, schema)


def _slices(
    file: pq.ParquetFile, groups: Sequence[int], skip: int, count: int
) -> Iterator[pa.RecordBatch]:
    for batch in file.iter_batches(_BATCH, row_groups=list(groups)):
        if skip < batch.num_rows and count > 0:
            taken = batch.slice(skip, count)
            count -= taken.num_rows
            yield taken
        skip = max(0, skip - batch.num_rows)
        if count <= 0:
            return


def native_type(kind: pa.DataType) -> str | None:
    """Returns a pipeline's type for a Parquet column; None where its values must be looked at."""
    if pa.types.is_dictionary(kind):
        return native_type(kind.value_type)
    if pa.types.is_boolean(kind):
        return "boolean"
    if pa.types.is_integer(kind):
        return None if kind == pa.uint64() else "bigint"
    if pa.types.is_floating(kind):
        return "double"
    if pa.types.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    if pa.types.is_timestamp(kind):
        return "timestamp"
    if pa.types.is_date(kind):
        return "date"
    is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    return None if is_text else "string"


def _in_micros(values: pa.Array) -> pa.Array:
    """Timestamps in microseconds; their numbers, which are no times, where these need 65 bits."""
    try:
        micros = pc.cast(values, pa.timestamp("us", values.type.tz), safe=values.type.unit != "ns")
    except pa.ArrowInvalid:
        return pc.cast(values, pa.int64())
    return pc.cast(micros, pa.timestamp("us"), safe=False)


def _texts_or_nulls(table: pa.Table, name: str) -> pa.StringArray:
    if name not in table.column_names:
        return pa.nulls(table.num_rows, pa.string())
    return texts_of(table.column(name).combine_chunks())


def texts_of(values: pa.Array | pa.ChunkedArray) -> pa.StringArray:
    """Returns values as the texts that a pipeline reads."""
    if isinstance(values, pa.ChunkedArray):
        values = pa.concat_arrays(values.chunks) if values.num_chunks else pa.nulls(0, values.type)
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    end = ""
    if pa.types.is_timestamp(values.type):
        end = "Z" if values.type.tz else ""
        values = _in_micros(values)
    try:
        return pc.binary_join_element_wise(pc.cast(values, pa.string()), end, "")
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
        texts = [
            None if value is None else json.dumps(value, default=str)
            for value in values.to_pylist()
        ]
        return pa.array(texts, pa.string())
