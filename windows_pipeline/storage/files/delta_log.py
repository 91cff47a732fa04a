"""Reads the files of a Delta table from its log with delta-rs, without Spark."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote, urlsplit

import pyarrow as pa
from deltalake import DeltaTable

from windows_pipeline.storage.files.damage import TableDamagedError, table_name
from windows_pipeline.storage.files.digests import LOG_FOLDER

_PLAIN_FILES = {"timestampNtz"}
"""Reader features that let a table's Parquet files hold exactly its rows."""
_DIGITS = 20
"""How many digits begin the name of a file of the log: its version."""
_MAPPED_COLUMNS = 2
"""The reader version of tables whose files may name columns differently."""


def entries_of_files(table: DeltaTable) -> pa.Table:
    """The log's entries of a table's files: `path`, `num_records`, partitions and statistics."""
    # `pyarrow.table` would import pandas, which takes half a second.
    return pa.RecordBatchReader.from_stream(table.get_add_actions(flatten=True)).read_all()


def files_hold_exact_rows(table: DeltaTable) -> bool:
    """Whether a table's Parquet files hold exactly its rows, under the names of its columns."""
    protocol = table.protocol()
    if protocol.min_reader_version == _MAPPED_COLUMNS:
        return False
    return set(protocol.reader_features or ()) <= _PLAIN_FILES


def exact_files(table: DeltaTable) -> pa.Table | None:
    """The log's entries of files that hold exactly a local table's rows; None if some do not.

    Raises:
        TableDamagedError: A commit's file is empty.
    """
    _require_full_commits(unquote(urlsplit(table.table_uri).path))
    return entries_of_files(table) if files_hold_exact_rows(table) else None


def _require_full_commits(location: str) -> None:
    """Refuses a log with an empty commit, which delta-rs would read as a commit without changes.

    Readers begin with the last checkpoint, so only the commits after it matter.
    """
    folder = Path(location) / LOG_FOLDER
    names = [path.name for path in folder.iterdir()]
    checkpoint = max((name[:_DIGITS] for name in names if ".checkpoint." in name), default="")
    for name in names:
        if name.endswith(".json") and name[:_DIGITS] > checkpoint:
            path = folder / name
            if path.stat().st_size == 0:
                table = table_name(location.rstrip("/"))
                raise TableDamagedError(table, str(path), "is empty, and must hold a commit")
