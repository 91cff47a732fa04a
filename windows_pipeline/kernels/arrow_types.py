"""The Arrow types of column types, as Spark exchanges them with Python."""

from __future__ import annotations

import pyarrow as pa

from windows_pipeline.aggregates.column_type import ColumnType

_PLAIN = {
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "timestamp_ntz": pa.timestamp("us"),
}


def arrow_type(kind: ColumnType) -> pa.DataType:
    """The Arrow type that Spark reads as a column type."""
    if kind.name == "decimal":
        return pa.decimal128(kind.precision, kind.scale)
    fields = [pa.field(name, arrow_type(field)) for name, field in kind.fields]
    if kind.name == "array":
        return pa.list_(fields[0])
    return pa.struct(fields) if kind.name == "struct" else _PLAIN[kind.name]
