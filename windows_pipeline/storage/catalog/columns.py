"""Columns that several tables have, as plain values: names, Spark's type texts and comments.

Times are instants in UTC, in whole milliseconds.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from windows_pipeline.config import Source, Windows


class TableColumn(NamedTuple):
    """A column of a table.

    Attributes:
        name: Its name.
        type: Its type as Spark writes it, such as `decimal(10,2)`; of a struct its fields.
        comment: What it holds, for readers of the table and of the Dagster UI.
    """

    name: str
    type: str | tuple[TableColumn, ...]
    comment: str


Columns = tuple[TableColumn, ...]

KEY_OF_RECORD = (
    TableColumn("source_partition", "string", "source partition that the record came by"),
    TableColumn(
        "offset", "bigint", "position of the record in its arrival unit and source partition"
    ),
)
BATCH = TableColumn("batch", "bigint", "micro-batch that wrote the row; null if a run by days did")
RECORDS = (
    TableColumn(
        "first_event_time", "timestamp", "earliest event time in the window; null if empty"
    ),
    TableColumn("last_event_time", "timestamp", "latest event time in the window; null if empty"),
    TableColumn("record_count", "bigint", "number of records in the window"),
)
SEVERITY = TableColumn("severity", "double", "how bad it is: the rule's `severity` expression")
CLOSED_BY = TableColumn("arrival_unit", "date", "arrival day that closed the window")
RULE = TableColumn("rule", "string", "name of the rule")
_ROW = (
    TableColumn("event_time", "timestamp", "event time of the row that the window belongs to"),
    TableColumn("record_arrival_unit", "date", "arrival day of that row"),
    TableColumn("source_partition", "string", "source partition that the row came by"),
    TableColumn("offset", "bigint", "position of the row in its arrival unit and source partition"),
)


def window_columns(windows: Windows, of: str = "") -> Iterable[TableColumn]:
    """The bounds of a window and, for row windows, the columns that identify the row."""
    is_exclusive = windows.spec.excludes_end
    end = "first instant after the window" if is_exclusive else "last instant of the window"
    yield TableColumn("window_start", "timestamp", f"{of}first instant of the window")
    yield TableColumn("window_end", "timestamp", f"{of}{end}")
    yield from (column for column in _ROW if column.name in windows.row_key)


def key_column(source: Source) -> TableColumn:
    """The key: of one column as it is, of several a struct."""
    if isinstance(source.key, str):
        return TableColumn("key", source.types[source.key], f"the source's column {source.key}")
    if not source.key_columns:
        return TableColumn("key", "string", "null: all records have one key")
    parts = (TableColumn(name, source.types[name], "column of the source") for name in source.key)
    return TableColumn(
        "key", tuple(parts), "the columns whose values each have windows of their own"
    )


def value_columns(source: Source) -> Iterable[TableColumn]:
    """The source's columns that are not the key, the event time or the arrival."""
    return (
        TableColumn(name, kind, "value from the source") for name, kind in source.values.items()
    )


def aggregate_columns(source: Source, windows: Windows) -> Iterable[TableColumn]:
    """The aggregates of a window, and the names of those that can't be computed."""
    types = windows.result_columns(source)
    for aggregate in windows.aggregate_list:
        yield TableColumn(aggregate.name, types[aggregate.name], str(aggregate))
    yield TableColumn("failed", "array<string>", "names of the aggregates that can't be computed")
