"""Rows that the driver knows come back as they are, whatever their types."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import types as T
from pyspark.sql.pandas.types import to_arrow_schema

from tests.support.pipelines import ROOT
from windows_pipeline.compat.local_frame import arrow_schema, small_frame
from windows_pipeline.config import load_pipeline
from windows_pipeline.storage.tables import tables_of

SCHEMA = (
    "arrival_unit date, at timestamp, n bigint, few int, text string, real double, "
    "price decimal(10, 2), "
    "place struct<ms: bigint, name: string>, names array<string>, yes boolean"
)
NOTHING = (None,) * 10
SOMETHING = (
    date(1969, 12, 31),
    datetime(2013, 2, 8, 23, 59, 59, 999_999, UTC),
    2**62,
    -3,
    "Ünï",
    0.1,
    Decimal("12.50"),
    (5, "a"),
    ["b", None],
    True,
)


def test_values_and_nulls(spark: SparkSession) -> None:
    frame = small_frame(spark, [SOMETHING, NOTHING], SCHEMA)
    assert frame.schema == T.StructType.fromDDL(SCHEMA)
    given, empty = frame.selectExpr("* EXCEPT (at)", "unix_micros(at) AS at").collect()
    assert given.at == 1_360_367_999_999_999
    values = given.asDict(recursive=False)
    for name, value in zip(frame.columns, SOMETHING, strict=True):
        if name != "at":
            assert values[name] == value
    assert set(empty) == {None}


def test_every_table_can_be_empty(spark: SparkSession) -> None:
    declared = load_pipeline(ROOT / "pipelines" / "flights.yaml")
    for table in tables_of(declared, "warehouse").written:
        frame = small_frame(spark, [], table.schema)
        assert frame.schema == table.schema
        assert frame.collect() == []


KINDS = [
    *("boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "decimal(38, 9)"),
    *("string", "binary", "date", "timestamp", "timestamp_ntz", "void"),
    *("array<struct<a: timestamp, b: array<int>>>", "map<string, decimal(4, 1)>"),
    "struct<a: int NOT NULL, b: map<int, timestamp_ntz>>",
]


@pytest.mark.parametrize("kind", KINDS)
def test_types_are_those_that_spark_sends(kind: str) -> None:
    """Contract of PySpark's own mapping, which is private: this one gives the same."""
    schema = T.StructType.fromDDL(f"x {kind}")
    assert isinstance(schema, T.StructType)
    assert arrow_schema(schema) == to_arrow_schema(schema, timezone="UTC")


def test_a_type_without_arrow_s_is_named_with_its_column() -> None:
    schema = T.StructType().add("t", T.StructType().add("v", T.VariantType()))
    with pytest.raises(TypeError, match=r"column 't': column 'v': type variant .* cast"):
        arrow_schema(schema)
