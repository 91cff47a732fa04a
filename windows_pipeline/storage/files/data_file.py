"""Opens tables' Parquet files without Spark; an unreadable one is an error with table and file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from windows_pipeline.storage.files.damage import TableDamagedError, first_line, is_environment

_OF_READING = (OSError, ValueError, OverflowError, NotImplementedError, pa.ArrowException)


@contextmanager
def open_data_file(
    table: str, path: str | Path, footer: pq.FileMetaData | None = None
) -> Iterator[pq.ParquetFile]:
    """Opens a data file of a table, to read it in the body of `with`.

    Args:
        table: The table's name, for errors.
        path: The file.
        footer: The file's footer, if it was read before.

    Raises:
        FileNotFoundError: The file is gone.
        TableDamagedError: The file cannot be read.
    """
    try:
        with pq.ParquetFile(path, metadata=footer, coerce_int96_timestamp_unit="us") as opened:
            yield opened
    except (FileNotFoundError, MemoryError):
        raise
    except _OF_READING as error:
        if is_environment(error):
            raise
        raise TableDamagedError(table, str(path), first_line(error)) from error
