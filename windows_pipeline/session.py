"""A Spark session as the settings say, outside Dagster."""

from __future__ import annotations

import os
import sys

from pyspark.sql import SparkSession

from windows_pipeline.settings import Settings


def use_this_python() -> None:
    """Has Spark's workers run the Python that this process runs, unless told otherwise."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)


def start_session(settings: Settings) -> SparkSession:
    """Starts or takes the session."""
    use_this_python()
    builder = SparkSession.builder
    for name, value in settings.spark_conf().items():
        builder = builder.config(name, value)
    return builder.getOrCreate()
