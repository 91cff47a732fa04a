"""Contract of PySpark: a class attribute says whether a process has a JVM (rule H1).

`compat/spark_session.py` gives secrets to a JVM that is to start, and to none that runs.
"""

from __future__ import annotations

import subprocess
import sys

from pyspark import SparkContext
from pyspark.sql import SparkSession


def test_a_process_without_a_session_has_no_gateway() -> None:
    code = "from pyspark import SparkContext; assert SparkContext._gateway is None"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_process_with_a_session_has_one(spark: SparkSession) -> None:
    assert spark.sparkContext._gateway is SparkContext._gateway is not None  # noqa: SLF001
