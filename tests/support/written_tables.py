"""Tables of a pipeline that delta-rs writes without Spark, with the columns of the catalog."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from typing import Any, Literal

import pyarrow as pa
from deltalake import ColumnProperties, WriterProperties, write_deltalake

from windows_pipeline.config import Pipeline
from windows_pipeline.storage.catalog import TableColumn, TableSpec, specs_of

Row = Mapping[str, Any]
_ARROW = {
    "array<string>": pa.list_(pa.string()),
    "boolean": pa.bool_(),
    "date": pa.date32(),
    "string": pa.string(),
    "bigint": pa.int64(),
    "int": pa.int32(),
    "double": pa.float64(),
    "timestamp": pa.timestamp("us", "UTC"),
}


def arrow_schema(columns: Sequence[TableColumn]) -> pa.Schema:
    """The columns as Arrow has them."""
    return pa.schema([(column.name, _arrow_type(column.type)) for column in columns])


def write_rows(
    spec: TableSpec,
    rows: Sequence[Row],
    *,
    row_group_rows: int | None = None,
    compression: Literal["SNAPPY", "GZIP"] = "SNAPPY",
) -> None:
    """Appends rows as a version of the table; a row names the columns that have a value.

    Args:
        spec: The table.
        rows: The rows.
        row_group_rows: The most rows of a row group; None for any number.
        compression: Of the pages.
    """
    properties = WriterProperties(
        compression=compression,
        max_row_group_size=row_group_rows,
        column_properties={
            name: ColumnProperties(statistics_enabled="CHUNK") for name in spec.sorted_by
        },
    )
    write_deltalake(
        spec.location,
        pa.Table.from_pylist(list(rows), arrow_schema(spec.columns)),
        mode="append",
        partition_by=["arrival_unit"] if spec.partitioned else None,
        writer_properties=properties,
    )


def log_days(pipeline: Pipeline, warehouse: str, days: Iterable[str]) -> None:
    """Notes days in a pipeline's arrival log, without records."""
    rows = [
        {"arrival_unit": date.fromisoformat(day), "rows": 0, "arrival_unit_rejected": 0}
        for day in days
    ]
    write_rows(specs_of(pipeline, warehouse).arrival_log, rows)


def _arrow_type(kind: str | tuple[TableColumn, ...]) -> pa.DataType:
    if isinstance(kind, str):
        return _ARROW[kind]
    return pa.struct([(column.name, _arrow_type(column.type)) for column in kind])
