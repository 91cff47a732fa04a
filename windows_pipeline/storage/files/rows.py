"""Reads Delta tables with delta-rs, without Spark, from a folder or an object store."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable, QueryBuilder
from deltalake.exceptions import TableNotFoundError
from deltalake.fs import DeltaStorageHandler
from pyarrow.fs import FileType, PyFileSystem

from windows_pipeline.storage.files.damage import damage_of
from windows_pipeline.text.locations import storage_options

# In one partition, rows come in the same order each time.
_IN_ORDER = {"datafusion.execution.target_partitions": "1"}


class StoredRows:
    """The rows of a table at one version."""

    def __init__(self, table: DeltaTable, location: str) -> None:
        """Takes the table, and its folder or URI."""
        self.schema = pa.schema(table.schema().to_arrow())
        self._table, self._location = table, location
        self._query = QueryBuilder(_IN_ORDER).register("stored", table)

    def read(self, columns: Sequence[str] = (), condition: str = "true") -> pa.Table:
        """The rows of `batches`."""
        return pa.Table.from_batches(self.batches(columns, condition), self._schema(columns))

    def batches(
        self, columns: Sequence[str] = (), condition: str = "true"
    ) -> Iterator[pa.RecordBatch]:
        """The rows of which a condition is true, some at a time.

        Args:
            columns: The columns to return; all if empty.
            condition: The condition, in DataFusion's SQL.

        Raises:
            TableDamagedError: A file is gone or cannot be read.
        """
        schema = self._schema(columns)
        listed = ", ".join(f'"{name}"' for name in schema.names)
        with damage_of(self._location):
            sql = f"SELECT {listed} FROM stored WHERE {condition}"  # noqa: S608  of literals only
            found = self._query.execute(sql)
        with damage_of(self._location, search=lambda: self._damaged(condition)):
            for batch in pa.RecordBatchReader.from_stream(found):
                yield batch.cast(schema)  # texts come as views, which Arrow cannot filter

    def _schema(self, columns: Sequence[str]) -> pa.Schema:
        return pa.schema([self.schema.field(name) for name in columns or self.schema.names])

    def _damaged(self, condition: str) -> str | None:
        """The file that cannot be read, among those that may have wanted rows."""
        files = files_in(self._location)
        for uri in self._table.file_uris(file_pruning_predicate=condition):
            path = "/".join(uri.split("/")[-1 - len(self._table.metadata().partition_columns) :])
            try:
                with files.open_input_file(path) as opened:
                    pq.ParquetFile(opened).read(use_threads=False)
            except (pa.ArrowException, OSError, ValueError):
                return f"{self._location}/{path}"
        return None


def opened(location: str, version: int | None = None) -> DeltaTable:
    """Opens the table in a folder or at a URI, at a version or the newest."""
    return DeltaTable(location, version, storage_options(location))


def is_table(location: str) -> bool:
    """Whether a folder or URI holds a Delta table."""
    return DeltaTable.is_deltatable(location, storage_options(location))


def files_in(location: str) -> PyFileSystem:
    """The files below a folder or URI."""
    return PyFileSystem(DeltaStorageHandler(location, storage_options(location)))


def is_file(folder: str, below: str) -> bool:
    """Whether there is a file below a folder or URI, which need not exist."""
    if folder.startswith("/"):
        return Path(folder, below).is_file()
    try:
        found = files_in(folder).get_file_info(below)
    except TableNotFoundError:
        return False
    return bool(found.type == FileType.File)
