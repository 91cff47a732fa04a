"""Reads the files of a Delta table from its log with delta-rs, without Spark."""

from __future__ import annotations

from urllib.parse import unquote, urlsplit

import pyarrow as pa
from deltalake import DeltaTable

from windows_pipeline.storage.files.damage import LOG_FOLDER, damage_of

_PLAIN_FILES = {"timestampNtz"}
"""Reader features that let a table's Parquet files hold exactly its rows."""
_MAPPED_COLUMNS = 2
"""The reader version of tables whose files may name columns differently."""


def entries_of_files(table: DeltaTable) -> pa.Table:
    """The log's entries of a table's files: `path`, `num_records`, partitions and statistics.

    Raises:
        TableDamagedError: The log cannot be read.
    """
    uri = table.table_uri.rstrip("/")
    folder = unquote(urlsplit(uri).path) if uri.startswith("file:") else uri
    with damage_of(folder, f"{folder}/{LOG_FOLDER}"):
        # `pyarrow.table` would import pandas, which takes half a second.
        return pa.RecordBatchReader.from_stream(table.get_add_actions(flatten=True)).read_all()


def files_hold_exact_rows(table: DeltaTable) -> bool:
    """Whether a table's Parquet files hold exactly its rows, under the names of its columns."""
    protocol = table.protocol()
    if protocol.min_reader_version == _MAPPED_COLUMNS:
        return False
    return set(protocol.reader_features or ()) <= _PLAIN_FILES
