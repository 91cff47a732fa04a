"""Contract of PySpark's private names: `made_ready` and `configured` work with this PySpark."""

from __future__ import annotations

from pyspark.sql import SparkSession

from windows_pipeline.compat.spark_session import made_ready


def test_names_are_known_once_and_again(spark: SparkSession) -> None:
    """A session that is taken again is made ready again."""
    for _ in range(2):
        names = vars(made_ready(spark).sparkContext._jvm)  # noqa: SLF001
        assert "functions" in names
        assert "col" in vars(names["functions"])
    assert [row.ten for row in spark.range(1).selectExpr("id + 10 AS ten").collect()] == [10]
