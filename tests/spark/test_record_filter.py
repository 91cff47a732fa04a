"""Spark says of rows that the driver read whether they pass a definition's filter (rule A9)."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import yaml
from pyspark.sql import SparkSession

from tests.support.pipeline_texts import load_text
from windows_pipeline.query.records.spark_filter import spark_filter

COLUMNS: dict[str, tuple[str, pa.DataType]] = {
    "n": ("bigint", pa.int64()),
    "x": ("double", pa.float64()),
    "c": ("decimal(10,2)", pa.decimal128(10, 2)),
    "b": ("boolean", pa.bool_()),
    "d": ("date", pa.date32()),
    "t": ("timestamp", pa.timestamp("us", "UTC")),
}
NAN, INFINITE = float("nan"), float("inf")
NOON = datetime(2013, 1, 1, 12, tzinfo=UTC)
ROWS: list[tuple[Any, ...]] = [
    (1, 1.5, Decimal("1.50"), True, date(2013, 1, 1), NOON),
    (0, 0.0, Decimal("0.00"), False, date(1969, 12, 31), datetime(1969, 12, 31, tzinfo=UTC)),
    (-7, -0.0, Decimal("-3.25"), True, date(2013, 1, 2), datetime(2013, 1, 2, tzinfo=UTC)),
    (10**9, NAN, Decimal("12345678.90"), None, None, None),
    (3, INFINITE, None, False, date(2013, 1, 1), NOON.replace(microsecond=1_000)),
    (None, None, Decimal("1.5"), True, None, NOON),
]
KEYS = ["a", "", "é", "\U0001f600", None, "ab"]


@pytest.mark.parametrize(
    ("where", "passing"),
    [
        ("n > 1", [3, 4]),
        ("x > 1e30", [3, 4]),  # NaN is more than all other numbers
        ("c * c * c > 1", [0, 3, 5]),  # more digits than 18
        ("cast(x as bigint) = 1", [0]),
        ("dayofweek(d) = 3", [0, 4]),
        ("t > '2013-01-01' and d is not null", [0, 2, 4]),
        ("at = '2013-01-01 12:00:00'", [0, 1, 2, 3, 4, 5]),
        ("s >= '\uff5e'", [3]),
        ("not b", [1, 4]),
        ("n / 2 = 0.5", [0]),
        ("n * 900000000000000000 is null", [3, 5]),  # what does not fit is null
    ],
)
def test_a_row_passes_where_the_condition_is_true(
    spark: SparkSession, tmp_path: Path, where: str, passing: list[int]
) -> None:
    """Rule A9: null and false are not; the names of key and event time are the source's."""
    types = {name: kind for name, (kind, _) in COLUMNS.items()}
    source = {"path": "data", "format": "jsonl", "key": "s", "event_time": "at"}
    source["columns"] = types | {"s": "string", "at": "timestamp"}  # type: ignore[assignment]
    window = {"kind": "tumbling", "size": "1 hour", "grace": "0 ms", "where": where}
    text = {
        "name": "p",
        "source": source,
        "partitions": {"start": "2013-01-01"},
        "windows": {"w": window},
    }
    pipeline = load_text(tmp_path, yaml.safe_dump(text))
    columns = [
        pa.array([row[index] for row in ROWS], kind)
        for index, (_, kind) in enumerate(COLUMNS.values())
    ]
    times = pa.array([NOON] * len(ROWS), pa.timestamp("us", "UTC"))
    rows = pa.table([*columns, pa.array(KEYS), times], [*COLUMNS, "key", "event_time"])
    found = spark_filter(spark)(rows, pipeline.windows["w"], pipeline.source)
    assert [index for index, passes in enumerate(found) if passes] == passing


def test_a_filter_names_parts_of_the_key_and_the_source_partition(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Rules A6, A9: by the names of the source; in raw_events they are key and source_partition."""
    source = {
        "path": "data", "format": "jsonl", "key": ["s", "u"], "event_time": "at",
        "source_partition": "part",
        "columns": {"s": "string", "u": "bigint", "at": "timestamp", "part": "string"},
    }  # fmt: skip
    window = {"kind": "tumbling", "size": "1 hour", "grace": "0 ms"}
    window["where"] = "u > 1 and s = 'x' and part <> 'p2'"
    text = {
        "name": "p",
        "source": source,
        "partitions": {"start": "2013-01-01"},
        "windows": {"w": window},
    }
    pipeline = load_text(tmp_path, yaml.safe_dump(text))
    keys = [{"s": s, "u": u} for s, u in [("x", 1), ("x", 2), ("y", 2), ("x", 3), ("x", 3)]]
    rows = pa.table(
        {
            "key": pa.array(keys, pa.struct([("s", pa.string()), ("u", pa.int64())])),
            "source_partition": ["p1", "p1", "p1", "p2", "p3"],
            "event_time": pa.array([NOON] * len(keys), pa.timestamp("us", "UTC")),
        }
    )
    found = spark_filter(spark)(rows, pipeline.windows["w"], pipeline.source)
    assert found == [False, True, False, False, True]
