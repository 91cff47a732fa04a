"""The rows that a table holds, for tests that compare whole tables."""

from __future__ import annotations

from typing import Any

from deltalake import DeltaTable

from windows_pipeline.storage.table import Table


def stored_rows(table: Table, *without: str) -> list[tuple[object, ...]]:
    """A table's rows without some columns, in no order.

    delta-rs reads them, because a query by Spark takes ten times as long.
    """
    columns = [name for name in table.schema.names if name not in without]
    return [tuple(row.values()) for row in named_rows(table, columns)]


def named_rows(table: Table, columns: list[str] | None = None) -> list[dict[str, Any]]:
    """A table's rows as dicts by column, in no order."""
    found: list[dict[str, Any]] = (
        DeltaTable(table.location).to_pyarrow_table(columns=columns).to_pylist()
    )
    return found
