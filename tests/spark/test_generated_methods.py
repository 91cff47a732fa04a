"""How long the methods are that Spark generates to read records, and that the JVM compiles them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.spark.test_long_columns import BASE, landed, source_of
from windows_pipeline.compat.spark_session import configured
from windows_pipeline.config import load_pipeline
from windows_pipeline.config.source import Source
from windows_pipeline.sources.validation import judged_records

ROOT = Path(__file__).parents[2]
COMPILED = {"spark.sql.codegen.wholeStage": "true", "spark.sql.codegen.factoryMode": "FALLBACK"}


@pytest.mark.parametrize(
    ("source", "most_bytes"),
    [
        # A value's text is judged exactly: about 1,000 bytes for an integer, 2,500 for a decimal. A
        # branch for plain texts, which skips that, has 100 to 200.
        (load_pipeline(ROOT / "pipelines" / "flights.yaml").source, 14_500),
        (source_of(BASE), 13_000),
        (source_of({"id": "string", "at": "timestamp", "n": "bigint", "v": "string"}), 8_000),
    ],
    ids=["flights", "every type", "narrow"],
)
def test_the_method_that_types_records_stays_as_short_as_it_is(
    spark: SparkSession, capfd: pytest.CaptureFixture[str], source: Source, most_bytes: int
) -> None:
    """Spark gives up methods from 65,535 bytes on; longer than 8,000, HotSpot interprets them."""
    rows = judged_records(landed(spark, source, [{}]), source)
    with configured(spark, COMPILED):
        rows.explain(mode="codegen")
    found = [int(size) for size in re.findall(r"maxMethodCodeSize:(\d+)", capfd.readouterr().out)]
    assert found
    assert max(found) <= most_bytes


@pytest.mark.parametrize("process", ["driver", "executor"])
def test_the_jvm_compiles_long_methods_whatever_other_options_there_are(
    spark: SparkSession, process: str
) -> None:
    options = spark.sparkContext.getConf().get(f"spark.{process}.defaultJavaOptions") or ""
    assert "-XX:-DontCompileHugeMethods" in options.split()
