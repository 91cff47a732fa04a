"""What a session is made ready with: no checksum files, and names that are known."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

from windows_pipeline.compat.spark_session import all_conf, configured, made_ready


def test_local_files_have_no_checksum_file(spark: SparkSession, tmp_path: Path) -> None:
    spark.range(10).write.parquet(str(tmp_path / "rows"))
    made = {file.suffix for file in (tmp_path / "rows").iterdir() if file.name != "_SUCCESS"}
    assert made == {".parquet"}


def test_names_are_known_once_and_again(spark: SparkSession) -> None:
    """A session that is taken again is made ready again."""
    for _ in range(2):
        names = vars(made_ready(spark).sparkContext._jvm)  # noqa: SLF001
        assert "functions" in names
        assert "col" in vars(names["functions"])
    assert [row.ten for row in spark.range(1).selectExpr("id + 10 AS ten").collect()] == [10]


def test_the_whole_configuration_is_told_as_spark_tells_it(spark: SparkSession) -> None:
    with configured(spark, {"spark.a": "one -> two\n-> three", "spark.b": ""}):
        told = all_conf(spark)
        assert told["spark.a"] == "one -> two\n-> three"
        assert told == spark.conf.getAll
