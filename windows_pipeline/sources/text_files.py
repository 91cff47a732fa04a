"""Reads landed text files on Spark: a task opens files with Arrow, as the driver does to list them.

A file is read as a stream and decompressed to its very end, so a compression that is cut, damaged
or followed by other bytes is an error, whatever the format of the text.
"""

from __future__ import annotations

from bz2 import BZ2Decompressor
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from functools import partial
from typing import TypeVar

import numpy as np
import pyarrow as pa
from pyarrow import fs
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from windows_pipeline.compat.python_workers import in_workers
from windows_pipeline.sources.bad_files import unreadable
from windows_pipeline.sources.landed_columns import BLOCK, LINE

_CHUNK_BYTES = 1 << 20
"""How many bytes to read at a time."""
_COMPRESSION = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd"}
_TASK_BYTES = 8 << 20
"""The size of the parts that one task reads, unless a single part is larger."""
_OPEN_BYTES = 1 << 20
"""The cost of opening a file, as the number of bytes that a task could read meanwhile."""
_LINE_BITS = 33
"""A task numbers its records from its own number times 2 to this power."""


@dataclass(frozen=True)
class FilePart:
    """A file, or a part of it that begins at a byte, which a task reads."""

    day: date
    name: str
    path: str
    begin: int

    def __str__(self) -> str:
        return f"{self.day}/{self.name}"


P = TypeVar("P", bound=FilePart)
Columns = Mapping[str, pa.Array]
"""Some records by the names of their columns, in the order of the file."""


def compression_of(name: str) -> str | None:
    """How a file is compressed, by the end of its name."""
    return next((kind for end, kind in _COMPRESSION.items() if name.endswith(end)), None)


@contextmanager
def opened(
    filesystem: fs.FileSystem, path: str, name: str, chunk_bytes: int = _CHUNK_BYTES, begin: int = 0
) -> Iterator[Iterator[bytes]]:
    """Opens a file; gives its text, decompressed as the end of its name says, in chunks.

    Args:
        filesystem: The file system.
        path: The file's path there.
        name: The file's name in errors.
        chunk_bytes: About how many bytes a chunk has.
        begin: The byte to begin at, of a file without compression.

    Raises:
        BadFileError: The file can't be opened, or not be read within the block.
    """
    kind = compression_of(path)
    by_arrow = None if kind == "bz2" else kind
    try:
        if begin:
            stream = filesystem.open_input_file(path)
            stream.seek(begin)
        else:
            stream = filesystem.open_input_stream(path, compression=by_arrow)
        with stream:
            chunks = iter(partial(stream.read, chunk_bytes), b"")
            yield chunks if kind == by_arrow else _of_bz2(chunks, chunk_bytes)
    except (OSError, pa.ArrowException) as error:
        raise unreadable(name, error) from error


def _of_bz2(chunks: Iterable[bytes], chunk_bytes: int) -> Iterator[bytes]:
    """Decompresses bzip2; Arrow fails at an empty stream between others."""
    decompressor = BZ2Decompressor()
    for chunk in chunks:
        rest = chunk
        while rest or not (decompressor.needs_input or decompressor.eof):
            if decompressor.eof:
                decompressor = BZ2Decompressor()
            yield decompressor.decompress(rest, chunk_bytes)
            rest = decompressor.unused_data
    if not decompressor.eof:
        raise OSError("Truncated compressed stream")


def in_tasks(
    spark: SparkSession,
    parts: Iterable[tuple[P, int]],
    read: Callable[[P], Iterator[Columns]],
    schema: StructType,
) -> DataFrame:
    """Reads parts of files in tasks, each of which reads its parts one after the other.

    Args:
        spark: The session.
        parts: The parts, at least one, each with its size in bytes.
        read: Reads the records of a part, without the columns that say where they lie.
        schema: The columns to return, with those that say where a record lies: `arrival_unit`,
            `file`, `_block` and `_line`.
    """
    tasks: list[list[P]] = []
    free = 0
    for part, size in parts:
        cost = size + _OPEN_BYTES
        if cost > free or not tasks:
            tasks.append([])
            free = _TASK_BYTES
        free -= cost
        tasks[-1].append(part)
    numbers = spark.range(0, len(tasks), 1, len(tasks))  # a partition for each number
    return in_workers(numbers, partial(_batches, tasks, read, schema.names), schema)


def _batches(
    tasks: Sequence[Sequence[P]],
    read: Callable[[P], Iterator[Columns]],
    names: Sequence[str],
    numbers: Iterator[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    """Reads the parts of some tasks into columns of these names."""
    for number in (number for batch in numbers for number in batch.column(0).to_pylist()):
        line = number << _LINE_BITS
        for part in tasks[number]:
            for columns in read(part):
                count = len(next(iter(columns.values())))
                whole = {
                    "arrival_unit": pa.repeat(pa.scalar(part.day, pa.date32()), count),
                    "file": pa.repeat(pa.scalar(part.name), count),
                    BLOCK: pa.repeat(pa.scalar(part.begin, pa.int64()), count),
                    LINE: pa.array(np.arange(line, line + count)),
                    **columns,
                }
                yield pa.RecordBatch.from_arrays([whole[name] for name in names], names=names)
                line += count
