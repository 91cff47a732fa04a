"""Reads the newest rows of a table, newest arrival days first, without Spark."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

import pyarrow as pa
import pyarrow.compute as pc

from windows_pipeline.query.tables.local import LocalTable
from windows_pipeline.query.tables.sql import DAY
from windows_pipeline.query.tables.wanted import Wanted
from windows_pipeline.storage.catalog import TableSpec


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
        spec: The table; it must be partitioned by arrival day.
        limit: The greatest number of rows, at least 1.
        first: The first arrival day; None for the table's first.
        last: The last arrival day; None for the table's last.
        null_column: If given, only rows without a value in this column.
        order: The columns that order the rows of a day; None for those that sort its files.

    Raises:
        NoTableError: The table does not exist.
        TableDamagedError: A file of the table is gone or cannot be read.
        UnreadableTableError: Only Spark can read the table.
    """
    table = LocalTable(spec)
    of_day = spec.sorted_by if order is None else order
    # Arrow's path of a struct's field begins with a point.
    paths = [f".{name}" if "." in name else name for name in (DAY, *of_day)]
    sort_keys = [(path, "descending") for path in paths]
    # `Schema.empty_table` and `Table.sort_by` would import pandas, which takes half a second.
    newest = pa.Table.from_batches([], table.schema)
    days = (day for day in table.days if (first or date.min) <= day <= (last or date.max))
    for day in sorted(days, reverse=True):
        for batch in table.batches(Wanted(days=frozenset((day,)))):
            rows = pa.Table.from_batches([batch])
            if null_column is not None:
                rows = rows.filter(pc.is_null(rows[null_column]))
            found = pa.concat_tables([newest, rows])
            newest = found.take(pc.sort_indices(found, sort_keys).slice(0, limit + 1))
        if newest.num_rows > limit:
            break
    return NewestRows(newest.slice(0, limit), newest.num_rows > limit)
