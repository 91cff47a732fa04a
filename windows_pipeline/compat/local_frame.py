"""Turns rows on the driver into a DataFrame without a Spark job."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import cast

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

_PLAIN: dict[type[T.DataType], pa.DataType] = {
    T.NullType: pa.null(),
    T.BooleanType: pa.bool_(),
    T.ByteType: pa.int8(),
    T.ShortType: pa.int16(),
    T.IntegerType: pa.int32(),
    T.LongType: pa.int64(),
    T.FloatType: pa.float32(),
    T.DoubleType: pa.float64(),
    T.StringType: pa.string(),
    T.BinaryType: pa.binary(),
    T.DateType: pa.date32(),
    T.TimestampType: pa.timestamp("us", tz="UTC"),
    T.TimestampNTZType: pa.timestamp("us"),
}


def small_frame(
    spark: SparkSession, rows: Iterable[Sequence[object]], schema: str | T.StructType
) -> DataFrame:
    """Makes a DataFrame of a few rows.

    Arrow data becomes part of the plan. Python rows would start a job with a Python worker at
    each evaluation of the DataFrame.

    Args:
        spark: The session.
        rows: Values in the order of the columns; a time without a zone is in UTC.
        schema: The columns, as DDL or as a `StructType`.

    Raises:
        TypeError: A column has a type that `arrow_schema` does not support.
    """
    declared = schema
    if not isinstance(declared, T.StructType):
        declared = cast("T.StructType", T.StructType.fromDDL(declared))
    frame: DataFrame = spark.createDataFrame(small_table(rows, declared), declared)
    return frame


def small_table(rows: Iterable[Sequence[object]], schema: T.StructType) -> pa.Table:
    """Makes an Arrow table of a few rows; see `small_frame`."""
    fields = arrow_schema(schema)
    all_rows = list(rows)
    columns = [
        pa.array([row[index] for row in all_rows], type=field.type)
        for index, field in enumerate(fields)
    ]
    return pa.Table.from_arrays(columns, schema=fields)


def arrow_schema(schema: T.StructType) -> pa.Schema:
    """The Arrow schema with which Spark exchanges these columns; times are in UTC.

    Raises:
        TypeError: A column's type is not supported. Supported are numbers, booleans, strings,
            bytes, dates, timestamps, and arrays, maps and structs of these types.
    """
    return pa.schema([_field(field) for field in schema])


def _field(field: T.StructField) -> pa.Field:
    try:
        return pa.field(field.name, _arrow_type(field.dataType), nullable=field.nullable)
    except TypeError as error:
        raise TypeError(f"column {field.name!r}: {error}") from None


def _arrow_type(kind: T.DataType) -> pa.DataType:
    if isinstance(kind, T.DecimalType):
        return pa.decimal128(kind.precision, kind.scale)
    if isinstance(kind, T.ArrayType):
        element = _arrow_type(kind.elementType)
        return pa.list_(pa.field("element", element, nullable=kind.containsNull))
    if isinstance(kind, T.MapType):
        value = _arrow_type(kind.valueType)
        return pa.map_(
            pa.field("key", _arrow_type(kind.keyType), nullable=False),
            pa.field("value", value, nullable=kind.valueContainsNull),
        )
    if isinstance(kind, T.StructType):
        return pa.struct([_field(field) for field in kind])
    plain = next((_PLAIN[base] for base in type(kind).__mro__ if base in _PLAIN), None)
    if plain is None:
        raise TypeError(
            f"type {kind.simpleString()} has no Arrow type in windows_pipeline; cast the column"
        )
    return plain
