"""Contract of the Hadoop that PySpark brings: its configuration, and when files were written."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from windows_pipeline.compat.hadoop_files import FileTimes, files_are_local, shares_files


def test_plain_paths_are_spark_s_where_they_are_no_local_files(spark: SparkSession) -> None:
    java: Any = spark.sparkContext
    own = java._jsc.hadoopConfiguration()  # noqa: SLF001
    elsewhere = java._jvm.org.apache.hadoop.conf.Configuration(own)  # noqa: SLF001
    elsewhere.set("fs.defaultFS", "hdfs://127.0.0.1:9")
    assert files_are_local(own)
    assert not files_are_local(elsewhere)
    assert shares_files(spark)


def test_a_file_s_time_is_that_of_its_folder_s_file_system(
    spark: SparkSession, tmp_path: Path
) -> None:
    file = tmp_path / "a b%20{c}.json"
    file.touch()
    os.utime(file, ns=(0, 1_793_491_200_123_456_789))
    assert FileTimes(spark).written_ms(file.as_uri()) == 1_793_491_200_123
    with pytest.raises(Py4JJavaError, match="FileNotFoundException"):
        FileTimes(spark).written_ms((tmp_path / "none.json").as_uri())


def test_the_names_that_spark_gives_to_read_files_can_be_asked_for(
    spark: SparkSession, tmp_path: Path
) -> None:
    folder = tmp_path / "a b"
    spark.range(1).coalesce(1).write.parquet(str(folder))
    frame = spark.read.parquet(str(folder)).selectExpr("input_file_name() AS file")
    (row,) = frame.collect()
    (written,) = folder.glob("*.parquet")
    assert FileTimes(spark).written_ms(row.file) == written.stat().st_mtime_ns // 1_000_000
