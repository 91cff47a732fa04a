"""Rows that the driver knows, as a frame that no Spark job has to make."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import cast

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T
from pyspark.sql.pandas.types import to_arrow_schema


def small_frame(
    spark: SparkSession, rows: Iterable[Sequence[object]], schema: str | T.StructType
) -> DataFrame:
    """Makes a frame of a few rows.

    By way of Arrow they are part of the plan: rows of Python's own would be read by a job, with a
    Python worker, each time that the frame is.

    Args:
        spark: The session.
        rows: Values in the order of the columns; a time without a zone is in UTC.
        schema: The columns, as DDL or as they are.
    """
    declared = schema
    if not isinstance(declared, T.StructType):
        declared = cast("T.StructType", T.StructType.fromDDL(declared))
    fields = to_arrow_schema(declared, timezone="UTC")
    given = list(rows)
    columns = [
        pa.array([row[place] for row in given], type=field.type)
        for place, field in enumerate(fields)
    ]
    table = pa.Table.from_arrays(columns, schema=fields)
    frame: DataFrame = spark.createDataFrame(table, declared)
    return frame
