"""Numbers that change from plan to plan change neither the generated code nor its results."""

from __future__ import annotations

import io
from contextlib import redirect_stdout

from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F

from windows_pipeline.compat.spark_session import configured
from windows_pipeline.engine.literals import coarse_from_ms, literal

NUMBERS = (-3, 0, 2)
COMPILED = {
    "spark.sql.codegen.wholeStage": "true",
    "spark.sql.codegen.factoryMode": "FALLBACK",
    # A plan of a few rows would be worked out ahead.
    "spark.sql.optimizer.excludedRules": (
        "org.apache.spark.sql.catalyst.optimizer.ConvertToLocalRelation"
    ),
}


def codes(spark: SparkSession, condition: Column) -> str:
    """The Java code of a plan with a filter."""
    rows = spark.range(-5, 5, 1, 1).withColumn("even", F.col("id") % 2).where("even = 0")
    printed = io.StringIO()
    with redirect_stdout(printed):
        rows.where(condition).explain("codegen")
    _, code = printed.getvalue().split("Generated code:")
    return code


def test_a_literal_is_no_part_of_the_generated_code(spark: SparkSession) -> None:
    """Also where a condition holds another column to a single value."""
    time_ms = F.col("id")
    with configured(spark, COMPILED):
        by_array = {codes(spark, time_ms < literal(number, time_ms)) for number in NUMBERS}
        by_spark = {codes(spark, time_ms < F.lit(number)) for number in NUMBERS}
    assert len(by_array) == 1
    assert len(by_spark) == len(NUMBERS)


def test_a_literal_is_its_number(spark: SparkSession) -> None:
    """In conditions and as a value; null only where the anchor is null."""
    rows = spark.createDataFrame([(-7,), (0,), (5,), (None,)], "time_ms bigint")
    columns = [literal(number, F.col("time_ms")).alias(f"n{number + 10}") for number in NUMBERS]
    assert all(field.nullable for field in rows.select(*columns).schema)
    found = rows.select("time_ms", *columns).collect()
    assert [tuple(row) for row in found[:3]] == [(time, *NUMBERS) for time in (-7, 0, 5)]
    assert tuple(found[3]) == (None, None, None, None)
    before = rows.where(F.col("time_ms") < literal(5, F.col("time_ms")))
    assert [row.time_ms for row in before.collect()] == [-7, 0]


@given(st.integers(-(2**60), 2**60), st.integers(-1, 2**40))
def test_a_coarse_time_lies_before_and_not_far(from_ms: int, span_ms: int) -> None:
    """At most as far again; and it is one of few while time goes on."""
    coarse_ms = coarse_from_ms(from_ms, from_ms + span_ms)
    assert coarse_ms <= from_ms
    assert from_ms - coarse_ms < max(span_ms, 1)
    moved = {coarse_from_ms(from_ms + step, from_ms + span_ms + step) for step in range(3)}
    assert len(moved) <= 2 or span_ms < 4
