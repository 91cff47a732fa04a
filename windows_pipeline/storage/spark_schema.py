"""Makes Spark's schema of a table's columns."""

from __future__ import annotations

import re

from pyspark.sql import types as T

from windows_pipeline.aggregates.column_type import parse_type
from windows_pipeline.storage.catalog import Columns

_LIST = re.compile(r"array<(.*)>")
_TYPES: dict[str, T.DataType] = {
    "string": T.StringType(),
    "bigint": T.LongType(),
    "double": T.DoubleType(),
    "boolean": T.BooleanType(),
    "date": T.DateType(),
    "timestamp": T.TimestampType(),
}


def spark_schema(columns: Columns) -> T.StructType:
    """Spark's schema of a table's columns, with their comments."""
    schema = T.StructType()
    for column in columns:
        schema.add(column.name, _spark_type(column.type), True, {"comment": column.comment})
    return schema


def _spark_type(kind: str | Columns) -> T.DataType:
    if not isinstance(kind, str):
        return spark_schema(kind)
    if kind in _TYPES:
        return _TYPES[kind]
    listed = _LIST.fullmatch(kind)
    if listed:
        return T.ArrayType(_spark_type(listed[1]))
    decimal = parse_type(kind)
    return T.DecimalType(decimal.precision, decimal.scale)
