"""Tables opened at one version and read without Spark: deltalake reads the wanted rows."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date
from functools import cached_property

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from windows_pipeline.compat.delta_rs import supports_folder
from windows_pipeline.query.tables.keys import KEY, KeyColumn
from windows_pipeline.query.tables.sql import DAY, condition
from windows_pipeline.query.tables.wanted import Part, Span, Wanted
from windows_pipeline.storage.catalog import TableSpec
from windows_pipeline.storage.files.damage import GONE, LOG_FOLDER, TableDamagedError, damage_of
from windows_pipeline.storage.files.delta_log import entries_of_files, files_hold_exact_rows
from windows_pipeline.storage.files.rows import StoredRows, is_table, opened
from windows_pipeline.text.locations import storage_options
from windows_pipeline.text.problems import RefusedError
from windows_pipeline.text.references import without_values

_END = "window_end"
_DECORATION = re.compile(r"\x1b\[\d+m|\u21b3")


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
            UnreadableTableError: Only Spark can read its folder, or it has no such version.
        """
        self.spec = spec
        self._table = open_table(spec, version)
        self._rows = StoredRows(self._table, spec.location)
        self.version = self._table.version()
        self.schema = self._rows.schema
        self.properties: Mapping[str, str] = self._table.metadata().configuration

    @classmethod
    def if_there(cls, spec: TableSpec) -> LocalTable | None:
        """Opens a table at its newest version; None if it does not exist yet."""
        try:
            return cls(spec)
        except NoTableError:
            return None

    @property
    def key(self) -> KeyColumn:
        """The table's key column."""
        comment = next((c.comment for c in self.spec.columns if c.name == KEY), "")
        return KeyColumn(self.schema.field(KEY).type, comment)

    @property
    def days(self) -> set[date]:
        """The arrival days that have rows; none are known if days share files."""
        return {part.day for part in self._parts if part.day is not None}

    @property
    def row_count(self) -> int | None:
        """How many rows the table has; None if the log does not say."""
        counts = [part.row_count for part in self._parts]
        is_known = None not in counts and files_hold_exact_rows(self._table)
        return sum(filter(None, counts)) if is_known else None

    def parts(self, wanted: Wanted) -> list[Part]:
        """The files that may have wanted rows, by the days and ends of windows in the log."""
        span = wanted.times.get(_END, Span())
        return [
            part
            for part in self._parts
            if (wanted.days is None or part.day is None or part.day in wanted.days)
            and span.meets(part.first_end_us, part.last_end_us)
        ]

    @cached_property
    def _parts(self) -> list[Part]:
        entries = entries_of_files(self._table)
        columns = [
            entries[name] if name in entries.column_names else pa.nulls(entries.num_rows)
            for name in (f"partition.{DAY}", "num_records", f"min.{_END}", f"max.{_END}")
        ]
        ends = [column.cast(pa.int64()).to_pylist() for column in columns[2:]]
        found = zip(columns[0].to_pylist(), columns[1].to_pylist(), *ends, strict=True)
        return [
            # Delta cuts times of statistics to milliseconds.
            Part(day, count, first_us, None if last_us is None else last_us + 999)
            for day, count, first_us, last_us in found
        ]

    def read(self, wanted: Wanted, columns: Sequence[str] = ()) -> pa.Table:
        """The wanted rows, in no order.

        Args:
            wanted: Which rows.
            columns: The columns to return; all of the table's if empty.

        Raises:
            TableDamagedError: A file is gone or cannot be read.
            UnreadableTableError: Files of an older version were deleted since.
        """
        with self._files_of_version():
            return self._rows.read(columns, condition(wanted))

    def batches(self, wanted: Wanted, columns: Sequence[str] = ()) -> Iterator[pa.RecordBatch]:
        """The wanted rows, some at a time, in no order; see `read`."""
        with self._files_of_version():
            yield from self._rows.batches(columns, condition(wanted))

    @contextmanager
    def _files_of_version(self) -> Iterator[None]:
        try:
            yield
        except TableDamagedError as gone:
            if gone.cause == GONE and self.version != open_table(self.spec).version():
                raise UnreadableTableError(
                    f"{self.spec.name}: the files of version {self.version} must be there, but are "
                    "gone: later versions do not need them, and maintenance deletes such files. "
                    "Call refresh(), or open the newest version"
                ) from gone
            raise


def open_table(spec: TableSpec, version: int | None = None) -> DeltaTable:
    """Opens a table in a local folder, or at a URI for which there are storage options.

    Raises:
        NoTableError: The table does not exist.
        TableDamagedError: The log cannot be read.
        UnreadableTableError: Only Spark can read its folder, its object store does not answer, or
            it has no such version.
    """
    location = spec.location
    is_local = location.startswith("/")
    if storage_options(location) is None or (is_local and not supports_folder(location)):
        raise UnreadableTableError(
            f"{spec.name}: without Spark, tables are read from local folders without any of "
            "%[]^|\\ in their path, and from URIs for which settings.yaml has storage_options, and "
            f"this table lies in {location}; set storage_options, or read it by Spark's SQL"
        )
    try:
        is_there = is_table(location)
    except (DeltaError, OSError, ValueError) as error:
        raise UnreadableTableError(
            f"{spec.name}: {location} must be reachable with the storage_options of settings.yaml, "
            f"and is not: {_in_a_line(error)}"
        ) from None
    if not is_there:
        raise NoTableError(spec)
    if version is not None:
        try:
            return opened(location, version)
        except DeltaError as error:
            raise UnreadableTableError(
                f"{spec.name}: must have version {version} in its log, but does not: "
                f"{_in_a_line(error)}; open the newest version"
            ) from error
    with damage_of(location, f"{location}/{LOG_FOLDER}"):
        return opened(location)


def _in_a_line(error: Exception) -> str:
    """What delta-rs says, without the list of calls that may follow it."""
    text = without_values(_DECORATION.sub("", str(error)))
    return " ".join(text.split("\n   0: ", 1)[0].split())
