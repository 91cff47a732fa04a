"""Tables in local folders, opened at one version and read without Spark, only where they must be.

A file, or a row group within a file, is read if it may hold wanted rows; `wanted_files` says so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import date
from functools import reduce
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from windows_pipeline.compat.delta_rs import supports_folder
from windows_pipeline.query.tables.arrow_values import integer
from windows_pipeline.query.tables.keys import KEY, KeyColumn
from windows_pipeline.query.tables.wanted_files import (
    FileEntry,
    Piece,
    Wanted,
    file_entries,
    may_have,
    statistics,
)
from windows_pipeline.storage.catalog import TableSpec
from windows_pipeline.storage.files.damage import (
    GONE,
    LOG_FOLDER,
    TableDamagedError,
    damage_of,
    open_data_file,
)
from windows_pipeline.storage.files.delta_log import exact_files
from windows_pipeline.text.problems import RefusedError

DAY = "arrival_unit"


class UnreadableTableError(RefusedError):
    """A table cannot be read without Spark; the message names the table and the reason."""


class NoTableError(UnreadableTableError):
    """Tables do not exist; the message names each with the command that fills it."""

    def __init__(self, *tables: TableSpec) -> None:
        """Takes the tables."""
        super().__init__(
            "\n".join(
                f"{table.name}: the table does not exist yet; to fill it: {table.what_fills}"
                for table in tables
            )
        )
        self.tables = tables


class LocalTable:
    """A table at one version."""

    def __init__(self, spec: TableSpec, version: int | None = None) -> None:
        """Opens the table; reads its log, and none of its files.

        Args:
            spec: The table.
            version: The version; None for the newest.

        Raises:
            NoTableError: The table does not exist.
            TableDamagedError: The log cannot be read.
            UnreadableTableError: Only Spark can read its folder or its files, or
                it has no such version.
        """
        self.spec = spec
        opened = open_table(spec, version)
        self.version = opened.version()
        self.schema = pa.schema(opened.schema().to_arrow())
        self.properties: Mapping[str, str] = opened.metadata().configuration
        entries = exact_files(opened)
        if entries is None:
            raise only_spark_reads(spec)
        self._files = list(file_entries(entries))
        self._footers: dict[str, pq.FileMetaData] = {}
        self._pieces: dict[str, list[Piece]] = {}

    @property
    def key(self) -> KeyColumn:
        """The table's key column."""
        comment = next((c.comment for c in self.spec.columns if c.name == KEY), "")
        return KeyColumn(self.schema.field(KEY).type, comment)

    @property
    def days(self) -> set[date]:
        """The arrival days that have files."""
        return {file.day.as_py() for file in self._files if file.day is not None}

    @property
    def row_count(self) -> int | None:
        """How many rows the table has; None if the log does not say."""
        counts = [file.row_count for file in self._files]
        return None if None in counts else sum(filter(None, counts))

    def files(self, wanted: Wanted) -> list[FileEntry]:
        """The files that may have wanted rows, by the log alone."""
        return [
            file
            for file in self._files
            if (wanted.days is None or file.day is None or file.day.as_py() in wanted.days)
            and may_have(file, wanted)
        ]

    def read(
        self,
        wanted: Wanted,
        files: Sequence[FileEntry] | None = None,
        columns: Sequence[str] = (),
    ) -> pa.Table:
        """The wanted rows, in no order.

        Args:
            wanted: Which rows.
            files: The files to look in; None for all.
            columns: The columns to return; all of the table's if empty.

        Raises:
            TableDamagedError: A file is gone or cannot be read.
            UnreadableTableError: Files of an older version were deleted since.
        """
        names = list(columns) or self.schema.names
        schema = pa.schema([self.schema.field(name) for name in names])
        found = [pa.Table.from_batches([], schema)]
        try:
            for file in self.files(wanted) if files is None else files:
                if may_have(file, wanted):
                    found += self._rows_in(file, wanted, schema)
        except TableDamagedError as error:
            if error.cause == GONE:
                self._require_newest(error)
            raise
        return pa.concat_tables(found)

    def _require_newest(self, gone: TableDamagedError) -> None:
        if self.version != open_table(self.spec).version():
            raise UnreadableTableError(
                f"{self.spec.name}: the files of version {self.version} must be there, but are "
                "gone: later versions do not need them, and maintenance deletes such files. Call "
                "refresh(), or open the newest version"
            ) from gone

    def _rows_in(self, file: FileEntry, wanted: Wanted, schema: pa.Schema) -> list[pa.Table]:
        """The wanted rows of each row group that may have some."""
        pieces = [piece for piece in self._pieces_of(file) if may_have(piece, wanted)]
        if not pieces:
            return []
        with self._opened(file, self._footers[file.path]) as opened:
            found = [self._rows_of(opened, piece, wanted, schema) for piece in pieces]
        return [rows for rows in found if rows is not None]

    def _rows_of(
        self, opened: pq.ParquetFile, piece: Piece, wanted: Wanted, schema: pa.Schema
    ) -> pa.Table | None:
        """The wanted rows of a row group; other columns are read only if there are any."""
        there = set(opened.schema_arrow.names)
        tested = [name for name in (KEY, *wanted.times) if name in there]
        mask = None
        if tested:
            rows = opened.read_row_group(piece.number, tested, use_threads=False)
            mask = self._mask(rows, wanted)
        if mask is not None and not pc.any(mask).as_py():
            return None
        names = [name for name in schema.names if name in there]
        read = opened.read_row_group(piece.number, names, use_threads=False)
        # delta-rs writes texts as views at times, which Arrow cannot filter.
        rows = with_columns(read, schema, piece.day)
        return rows if mask is None else rows.filter(mask)

    def _mask(self, rows: pa.Table, wanted: Wanted) -> Any | None:
        masks = []
        if KEY in rows.column_names:
            masks.append(wanted.keys.keeps(rows[KEY].cast(self.schema.field(KEY).type)))
        for name, span in wanted.times.items():
            if name not in rows.column_names:
                continue
            values = rows[name].cast(self.schema.field(name).type).cast(pa.int64())
            if span.first_us is not None:
                masks.append(pc.greater_equal(values, integer(span.first_us)))
            if span.last_us is not None:
                masks.append(pc.less_equal(values, integer(span.last_us)))
        known = [mask for mask in masks if mask is not None]
        return reduce(pc.and_, known) if known else None

    def _pieces_of(self, file: FileEntry) -> list[Piece]:
        """The row groups of a file, which are looked up once."""
        if file.path not in self._pieces:
            with self._opened(file) as opened:
                self._footers[file.path] = opened.metadata
                self._pieces[file.path] = self._looked_up(file, opened.metadata)
        return self._pieces[file.path]

    @staticmethod
    def _looked_up(file: FileEntry, footer: pq.FileMetaData) -> list[Piece]:
        found = []
        for number in range(footer.num_row_groups):
            group = footer.row_group(number)
            smallest, largest = dict(file.smallest), dict(file.largest)
            if footer.num_row_groups > 1:  # else the log says the same
                of_group = statistics(group, footer.schema.to_arrow_schema())
                smallest |= {name: values[0] for name, values in of_group.items()}
                largest |= {name: values[1] for name, values in of_group.items()}
            found.append(Piece(number, file.day, smallest, largest))
        return found

    def _opened(
        self, file: FileEntry, footer: pq.FileMetaData | None = None
    ) -> AbstractContextManager[pq.ParquetFile]:
        path = f"{self.spec.location}/{file.path}"
        return open_data_file(self.spec.name, path, footer)


def open_table(spec: TableSpec, version: int | None = None) -> DeltaTable:
    """Opens a table that lies in a local folder.

    Raises:
        NoTableError: The table does not exist.
        TableDamagedError: The log cannot be read.
        UnreadableTableError: Only Spark can read its folder, or it has no such
            version.
    """
    location = spec.location
    if not location.startswith("/") or not supports_folder(location):
        raise UnreadableTableError(
            f"{spec.name}: without Spark, tables are read from local folders without any of "
            f"%[]^|\\ in their path, and this table lies in {location}; read it with Spark"
        )
    if not Path(location).is_dir() or not DeltaTable.is_deltatable(location):
        raise NoTableError(spec)
    if version is not None:
        try:
            return DeltaTable(location, version=version)
        except DeltaError as error:
            raise UnreadableTableError(
                f"{spec.name}: must have version {version} in its log, but does not: "
                f"{str(error).splitlines()[0]}; open the newest version"
            ) from error
    with damage_of(spec.name, f"{location}/{LOG_FOLDER}"):
        return DeltaTable(location)


def only_spark_reads(spec: TableSpec) -> UnreadableTableError:
    """The error of a table whose files do not hold exactly its rows."""
    return UnreadableTableError(
        f"{spec.name}: its files must hold exactly its rows, and it has deletion vectors or "
        "renamed columns; read it with Spark"
    )


def with_columns(rows: pa.Table, schema: pa.Schema, day: pa.Scalar | None) -> pa.Table:
    """The rows with these columns and types; files lack the column that partitions them."""
    columns = []
    for column in schema:
        if column.name == DAY and day is not None:
            columns.append(pa.repeat(day, rows.num_rows))
        elif column.name in rows.column_names:
            columns.append(rows[column.name].cast(column.type))
        else:  # the column is newer than the file
            columns.append(pa.nulls(rows.num_rows, column.type))
    return pa.Table.from_arrays(columns, schema=schema)
