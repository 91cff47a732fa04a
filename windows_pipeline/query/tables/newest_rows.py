"""Reads the newest rows of a table, newest arrival days first, without Spark."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date

import pyarrow as pa
import pyarrow.compute as pc

from windows_pipeline.query.tables.local import (
    DAY,
    only_spark_reads,
    open_table,
    with_columns,
)
from windows_pipeline.storage.catalog import TableSpec
from windows_pipeline.storage.files.damage import open_data_file
from windows_pipeline.storage.files.delta_log import exact_files

_BATCH_ROWS = 8_192
"""The most rows that are in memory at a time, besides the newest rows so far."""


@dataclass(frozen=True)
class NewestRows:
    """The newest rows of a table.

    Attributes:
        rows: The rows, newest first, with all columns of the table.
        are_more: Whether the days have older rows, too.
    """

    rows: pa.Table
    are_more: bool


def newest_rows(
    spec: TableSpec,
    limit: int,
    first: date | None = None,
    last: date | None = None,
    null_column: str | None = None,
    order: Sequence[str] | None = None,
) -> NewestRows:
    """Reads the newest rows of a table: by arrival day, then by the columns that sort its files.

    Only the files of the newest days are read, as many days as hold enough rows, and of each file
    a few thousand rows at a time.

    Args:
        spec: The table; it must be partitioned by arrival day and lie in a local folder.
        limit: The greatest number of rows, at least 1.
        first: The first arrival day; None for the table's first.
        last: The last arrival day; None for the table's last.
        null_column: If given, only rows without a value in this column.
        order: The columns that order the rows of a day; None for those that sort its files.

    Raises:
        NoTableError: The table does not exist.
        TableDamagedError: A file of the table is gone or cannot be read.
        UnreadableTableError: Only Spark can read its folder or its files.
    """
    table = open_table(spec)
    entries = exact_files(table)
    if entries is None:
        raise only_spark_reads(spec)
    schema = pa.schema(table.schema().to_arrow())
    of_day = spec.sorted_by if order is None else order
    # Arrow's path of a struct's field begins with a point.
    paths = [f".{name}" if "." in name else name for name in (DAY, *of_day)]
    sort_keys = [(path, "descending") for path in paths]
    # `Schema.empty_table`, `Table.sort_by` and `pyarrow.array` would import pandas, which takes
    # half a second.
    newest = pa.Table.from_batches([], schema)
    for day, paths in _files_by_day(entries, first, last):
        for batch in _batches(spec, paths):
            with_day = with_columns(batch, schema, day)
            if null_column is not None:
                with_day = with_day.filter(pc.is_null(with_day[null_column]))
            found = pa.concat_tables([newest, with_day])
            newest = found.take(pc.sort_indices(found, sort_keys).slice(0, limit + 1))
        if newest.num_rows > limit:
            break
    return NewestRows(newest.slice(0, limit), newest.num_rows > limit)


def _files_by_day(
    entries: pa.Table, first: date | None, last: date | None
) -> list[tuple[pa.Scalar, list[str]]]:
    """Each arrival day as Arrow's value, with the paths of its files; newest day first."""
    if not entries.num_rows:
        return []
    found: dict[date, tuple[pa.Scalar, list[str]]] = {}
    for scalar, path in zip(entries[f"partition.{DAY}"], entries["path"].to_pylist(), strict=True):
        day = scalar.as_py()
        if (first or date.min) <= day <= (last or date.max):
            found.setdefault(day, (scalar, []))[1].append(path)
    return [found[day] for day in sorted(found, reverse=True)]


def _batches(spec: TableSpec, files: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """The rows of Parquet files, some at a time.

    Arrow's scanner would leave threads behind, and a process that exits just after reading a small
    table sometimes aborts (pyarrow 26, deltalake 1.6).
    """
    for file in files:
        with open_data_file(spec.name, f"{spec.location}/{file}") as opened:
            yield from opened.iter_batches(_BATCH_ROWS, use_threads=False)
