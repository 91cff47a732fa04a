"""Spark parses and runs the deepest rules that the limits allow (rules E5, H1)."""

from __future__ import annotations

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from tests.unit.test_fuzzed_rules import COLUMNS, DEEPEST
from windows_pipeline.alerts.rule_sql import compile_rule

VALUES = {
    "key": "'a'",
    "window_start": "TIMESTAMP '2026-11-01'",
    "record_count": "7L",
    "opened_on": "DATE '2026-11-01'",
    "mean": "2.5D",
    "total": "CAST(1 AS DECIMAL(22,2))",
}


def test_spark_runs_the_deepest_rules(spark: SparkSession) -> None:
    """Spark's parser and its analysis recurse, too."""
    rows = spark.range(1).selectExpr(*(f"{sql} AS {name}" for name, sql in VALUES.items()))
    sql = {
        name: compile_rule(text, COLUMNS, "boolean" if want == "boolean" else "number").sql
        for name, (text, want) in DEEPEST.items()
    }
    (found,) = rows.select(*(F.expr(text).alias(name) for name, text in sql.items())).collect()
    assert found["parentheses"] == 2.5
    assert found["not"] is True
    assert found["a sum"] == 2.5 + 98
    assert found["a list"] is True
    assert None not in found
