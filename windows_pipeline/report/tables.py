"""How large a pipeline's tables are, by their logs."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

import pyarrow.compute as pc

from windows_pipeline.query.tables.local import NoTableError, open_table
from windows_pipeline.storage.catalog import TableSpec
from windows_pipeline.storage.files.delta_log import entries_of_files

_DAY = "partition.arrival_unit"


@dataclass(frozen=True)
class TableHealth:
    """A table as its log describes it.

    Attributes:
        name: Its name.
        description: What a row is.
        version: Its newest version; None if it does not exist.
        rows: Its number of rows; None if that is not known.
        last_day: The last arrival day that has rows; None if days share files, or there are none.
        files: Its number of files.
        size_bytes: Their size.
    """

    name: str
    description: str
    version: int | None = None
    rows: int | None = None
    last_day: date | None = None
    files: int = 0
    size_bytes: int = 0


def table_health(spec: TableSpec) -> TableHealth:
    """Reads the log of a table.

    Raises:
        TableDamagedError: The log cannot be read.
        UnreadableTableError: Only Spark can read the table.
    """
    try:
        table = open_table(spec)
    except NoTableError:
        return TableHealth(spec.name, spec.description)
    entries = entries_of_files(table)
    counts = entries["num_records"]
    days = pc.max(entries[_DAY]).as_py() if _DAY in entries.column_names else None
    return TableHealth(
        spec.name,
        spec.description,
        version=table.version(),
        rows=None if counts.null_count else pc.sum(counts).as_py() or 0,
        last_day=days,
        files=entries.num_rows,
        size_bytes=pc.sum(entries["size_bytes"]).as_py() or 0,
    )
