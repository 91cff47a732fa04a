"""Without Spark a filter says of each record what Spark says of it, or leaves it to Spark."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from windows_pipeline.alerts.rule_sql import compile_expression
from windows_pipeline.query.records.record_filter import passes

COLUMNS = {
    "n": "bigint",
    "x": "double",
    "c": "decimal(10,2)",
    "s": "string",
    "b": "boolean",
    "d": "date",
    "t": "timestamp",
}
NAN, INFINITE = float("nan"), float("inf")
NOON = datetime(2013, 1, 1, 12, tzinfo=UTC)
ROWS: list[tuple[Any, ...]] = [
    (1, 1.5, Decimal("1.50"), "a", True, date(2013, 1, 1), NOON),
    (0, 0.0, Decimal("0.00"), "", False, date(1969, 12, 31), datetime(1969, 12, 31, tzinfo=UTC)),
    (-7, -0.0, Decimal("-3.25"), "é", True, date(2013, 1, 2), datetime(2013, 1, 2, tzinfo=UTC)),
    (10**9, NAN, Decimal("12345678.90"), "\U0001f600", None, None, None),
    (3, INFINITE, None, None, False, date(2013, 1, 1), NOON.replace(microsecond=1_000)),
    (None, None, Decimal("1.5"), "ab", True, None, NOON),
]
DECIDED = [
    "n = 1", "n <> 1", "n > 0.5", "n >= x", "x < 2", "x = 0", "x > 1e30", "x <=> n",
    "c = 1.5", "c > n", "c <= x", "s = 'a'", "s < 'b'", "s >= '\uff5e'", "s in ('a', 'ab')",
    "n not in (1, 3)", "b", "not b", "b and n > 0", "b or n > 0", "b is true", "b is not false",
    "n is null or s is not null", "n between 0 and 2", "x not between -1 and 1.5",
    "s between 'a' and 'ab'", "d = '2013-01-01'", "t > '2013-01-01'", "t = '2013-01-01 12:00:00'",
    "t >= '2013-01-01T13:00:00+01:00'", "t > d", "d in ('2013-01-01', '2013-01-02')",
    "n + 1 = 2", "n * 2 > x", "n / 2 > 0.4", "n / 0 is null", "x - n < 1", "-n > 6", "-x <= 0",
    "x / x = 1", "coalesce(n, 5) > 4", "coalesce(x, n) > 1", "if(b, n, x) > 0",
    "case when n > 0 then s = 'a' when b then true else n is null end", "not (n > 0 and b)",
    "(n > 0) is null", "n <=> 1", "x in (0, 1.5)", "c in (1.5, 0)", "x = 1.5 or s = 'ab'",
]  # fmt: skip
ONLY_SPARK = [
    "abs(n) = 1", "hour(t) = 12", "n % 2 = 1", "cast(n as double) > 1", "n * c > 1",
    "t + interval 1 day > '2013-01-02'", "round(x) = 2",
]  # fmt: skip


def test_a_filter_without_spark_decides_as_spark(spark: SparkSession) -> None:
    """Rule A9: a record is in if the condition is true of it; null and false are not."""
    schema = ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())
    frame = spark.createDataFrame([(at, *row) for at, row in enumerate(ROWS)], f"at int, {schema}")
    decided = [
        F.coalesce(
            F.expr(compile_expression(text, COLUMNS, "boolean", null_if_unfit=True)), F.lit(False)
        ).alias(f"of_{number}")
        for number, text in enumerate(DECIDED)
    ]
    of_spark = [row[1:] for row in sorted(map(tuple, frame.select("at", *decided).collect()))]
    for row, expected in zip(ROWS, of_spark, strict=True):
        record = dict(zip(COLUMNS, row, strict=True))
        found = {text: passes(text, record) for text in DECIDED}
        different = {
            text: (said, found[text])
            for text, said in zip(DECIDED, expected, strict=True)
            if found[text] != said
        }
        assert different == {}, record


def test_what_only_spark_evaluates_is_not_guessed() -> None:
    record = dict(zip(COLUMNS, ROWS[0], strict=True))
    for text in ONLY_SPARK:
        compile_expression(text, COLUMNS, "boolean", null_if_unfit=True)
        assert passes(text, record) is None, text
    assert passes("unknown > 1", record) is None
    assert passes(f"n * {2**31} > 1", record) is None
