"""Opens tables' Parquet files without Spark; reports any failure to read a file as damage."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from windows_pipeline.storage.files.damage import TableDamagedError, first_line, is_environment

_OF_DELTA = "_"
"""Columns of Delta's own begin so, none of ours: Spark writes `_change_type` and `__is_cdc` into
the files of a table with a change data feed."""
_OF_READING = (OSError, ValueError, OverflowError, NotImplementedError, pa.ArrowException)


@contextmanager
def open_data_file(
    table: str,
    path: str | Path,
    schema: pa.Schema,
    row_count: int | None = None,
    footer: pq.FileMetaData | None = None,
) -> Iterator[pq.ParquetFile]:
    """Opens a data file of a table, to read it in the body of `with`.

    Arrow has many words for bytes that it can't make sense of, and believes a footer: of other
    names of columns, which readers would take for missing ones, units of time, and numbers of rows.

    Args:
        table: The table's name, for errors.
        path: The file.
        schema: The table's columns; the file may lack some, and must have no other.
        row_count: How many rows the table's log says the file has; None if it does not.
        footer: The file's footer, if it was read and found right before.

    Raises:
        FileNotFoundError: The file is gone.
        TableDamagedError: The file is not as it was written.
    """
    try:
        with pq.ParquetFile(path, metadata=footer, coerce_int96_timestamp_unit="us") as opened:
            wrong = None if footer else _wrong(opened, schema, row_count)
            if wrong is not None:
                raise TableDamagedError(table, str(path), wrong)
            yield opened
    except (FileNotFoundError, MemoryError):
        raise
    except _OF_READING as error:
        if is_environment(error):
            raise
        raise TableDamagedError(table, str(path), f"cannot be read: {first_line(error)}") from error


def _wrong(opened: pq.ParquetFile, schema: pa.Schema, row_count: int | None) -> str | None:
    """What a file's footer says that its table does not; None if there is nothing."""
    footer = opened.metadata
    groups = sum(footer.row_group(number).num_rows for number in range(footer.num_row_groups))
    counts = {footer.num_rows, groups, footer.num_rows if row_count is None else row_count}
    if len(counts) > 1:
        return f"must have one number of rows, but has {' or '.join(map(str, sorted(counts)))}"
    for column in opened.schema_arrow:
        if column.name not in schema.names and not column.name.startswith(_OF_DELTA):
            return f"has a column {column.name!r}, which the table has not"
        if pa.types.is_timestamp(column.type) and column.type.unit != "us":
            return f"has times in {column.type.unit} in the column {column.name!r}, and must in us"
    return None
