"""Rows of raw_events as a definition sees them: by its key, and through its filter (rule A9)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date
from typing import Any

import pyarrow as pa

from windows_pipeline.config import Pipeline, Source, Windows
from windows_pipeline.query.records.record_times import RecordTimes
from windows_pipeline.query.tables.arrival_days import log_parts
from windows_pipeline.query.tables.arrow_values import booleans, integer, text
from windows_pipeline.query.tables.keys import KEY, KeyColumn, KeyRange, in_order
from windows_pipeline.query.tables.local import LocalTable, UnreadableTableError
from windows_pipeline.query.tables.wanted import Span, Wanted
from windows_pipeline.storage.catalog import specs_of

RowFilter = Callable[[pa.Table, Windows, Source], list[bool]]
"""Says of each row of raw_events whether it passes a definition's filter (rule A9)."""
_EVENT_TIME = "event_time"


class DefinitionRows:
    """The accepted records of a pipeline, for one definition.

    Attributes:
        windows: The definition.
        log: The rows of the arrival log.
        times: The times of records, for the definition's windows.
    """

    def __init__(
        self,
        pipeline: Pipeline,
        windows_name: str,
        warehouse: str,
        row_filter: RowFilter | None = None,
    ) -> None:
        """Opens the tables at their newest versions.

        Args:
            pipeline: The pipeline.
            windows_name: The window definition.
            warehouse: The folder of all tables.
            row_filter: What evaluates the definition's filter; may be None without a filter.

        Raises:
            NoTableError: Nothing is ingested yet.
            TableDamagedError: A file of a table is damaged.
            UnreadableTableError: Only Spark can read a table.
        """
        self.windows = pipeline.windows[windows_name]
        tables = specs_of(pipeline, warehouse)
        # The log is read first: rows that it lacks may come meanwhile, and wait.
        self.log = log_parts(tables.arrival_log)
        self.times = RecordTimes(pipeline, self.log, self.windows.spec.close_delay_ms)
        self._raw, self._source = LocalTable(tables.raw_events), pipeline.source
        self._row_filter = row_filter

    @property
    def key_column(self) -> KeyColumn:
        """The definition's key."""
        names = self.windows.keyed(self._source).key_columns
        parts = [pa.field(name, self._kind(name)) for name in names]
        if not parts:
            return KeyColumn(pa.string())
        return KeyColumn(pa.struct(parts) if len(parts) > 1 else parts[0].type)

    def of_key(self, keys: KeyRange, times: Span) -> pa.Table:
        """The rows of one key of the definition, within a span of event time; in no order."""
        if self.windows.key is not None:
            names = self.windows.keyed(self._source).key_columns
            columns = tuple(map(self._column, names))
            keys = KeyRange(keys.first, keys.last, columns) if names else KeyRange()
        return self._raw.read(Wanted(keys, {_EVENT_TIME: times}))

    def passing(self, keys: KeyRange, times: Span) -> pa.Table:
        """The rows of one key, within a span of event time, that pass the definition's filter.

        Raises:
            UnreadableTableError: The definition has a filter, and nothing evaluates it.
        """
        rows = self.of_key(keys, times)
        return rows.filter(booleans(self.passes(rows)))

    def of_arrival(self, partition: str, offset: int, day: date | None) -> pa.Table:
        """The rows with an offset of a source partition, one for each arrival day, in order."""
        parts = (text(partition), integer(offset))
        arrival = KeyRange(parts, parts, ("source_partition", "offset"))
        days = None if day is None else frozenset((day,))
        return in_order(self._raw.read(Wanted(arrival, days=days)), ["arrival_unit"])

    def key(self, row: Mapping[str, Any]) -> Any:
        """The definition's key of a row; of several columns a dict of the parts by name."""
        names = self.windows.keyed(self._source).key_columns
        values = self.values(row)
        if len(names) > 1:
            return {name: values[name] for name in names}
        return values[names[0]] if names else None

    def passes(self, rows: pa.Table) -> list[bool]:
        """Whether each row passes the definition's filter.

        Raises:
            UnreadableTableError: The definition has a filter, and nothing evaluates it.
        """
        if self.windows.where is None or rows.num_rows == 0:
            return [True] * rows.num_rows
        if self._row_filter is None:
            raise UnreadableTableError(
                f"where: only Spark evaluates a filter, and this definition has one: "
                f"{self.windows.where}; open the store by WindowStore.on(spark, ...)"
            )
        return self._row_filter(rows, self.windows, self._source)

    def values(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """A row's values by the names of the source's columns."""
        source = self._source
        found = {name: row[name] for name in source.types if name in row}
        names = source.key_columns
        found |= row["key"] if len(names) > 1 else dict.fromkeys(names, row["key"])
        found[source.event_time] = row[_EVENT_TIME]
        if source.source_partition is not None:
            found[source.source_partition] = row["source_partition"]
        return found

    def _kind(self, name: str) -> pa.DataType:
        """The type of a column of the source."""
        schema, names = self._raw.schema, self._source.key_columns
        if name not in names:
            return schema.field(name).type
        key = schema.field("key").type
        return key.field(name).type if len(names) > 1 else key

    def _column(self, name: str) -> str:
        """The column of raw_events, or the part of its key, that has a column of the source."""
        names = self._source.key_columns
        if name not in names:
            return name
        return f"{KEY}.{name}" if len(names) > 1 else KEY
