"""What `explain` and `trace` need Spark for: a definition's filter (rule A9).

The module is in query/ beside `registration.py`; nothing without Spark imports it.
"""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import SparkSession

from windows_pipeline.config import Source, Windows
from windows_pipeline.incremental.definition_records import PASSES, definition_records
from windows_pipeline.query.records.definition_rows import RowFilter


def spark_filter(spark: SparkSession) -> RowFilter:
    """What evaluates filters with a session."""

    def passing(rows: pa.Table, windows: Windows, source: Source) -> list[bool]:
        frame = spark.createDataFrame(rows.append_column("_row", pa.array(range(rows.num_rows))))
        marked = definition_records(frame, windows, source).select("_row", PASSES)
        return [passes for _, passes in sorted(map(tuple, marked.collect()))]

    return passing
