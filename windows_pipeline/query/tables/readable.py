"""What a store needs of a table, be it read by the driver alone or by Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import date
from typing import Protocol

import pyarrow as pa

from windows_pipeline.config import Source, Windows
from windows_pipeline.query.tables.keys import KeyColumn
from windows_pipeline.query.tables.wanted import Part, Wanted
from windows_pipeline.storage.catalog import TableSpec

RowFilter = Callable[[pa.Table, Windows, Source], list[bool]]
"""Says of each row of raw_events whether it passes a definition's filter (rule A9)."""


class ReadableTable(Protocol):
    """A table at one version; `LocalTable` has what each part means."""

    @property
    def version(self) -> int:
        """The version that is read."""
        ...

    @property
    def schema(self) -> pa.Schema:
        """The columns."""
        ...

    @property
    def key(self) -> KeyColumn:
        """The table's key column."""
        ...

    @property
    def days(self) -> set[date]:
        """The arrival days that have rows."""
        ...

    def parts(self, wanted: Wanted) -> list[Part]:
        """The files, or other parts, that may have wanted rows."""
        ...

    def read(self, wanted: Wanted, columns: Sequence[str] = ()) -> pa.Table:
        """The wanted rows, in no order."""
        ...

    def batches(self, wanted: Wanted, columns: Sequence[str] = ()) -> Iterable[pa.RecordBatch]:
        """The wanted rows, some at a time, in no order."""
        ...


class OpenTable(Protocol):
    """Opens a table at a version, or at the newest."""

    def __call__(self, spec: TableSpec, version: int | None = None, /) -> ReadableTable:
        """The table.

        Raises:
            NoTableError: The table does not exist.
            UnreadableTableError: The table is not for this reader, or has no such version.
        """
        ...
