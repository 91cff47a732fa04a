"""The Spark session of a run."""

from __future__ import annotations

import os
import sys

from dagster_pyspark import LazyPySparkResource

from windows_pipeline.settings import Settings


def spark_resource(settings: Settings) -> LazyPySparkResource:
    """A session made on first use, as the settings say; the steps of a run share it."""
    # Workers run the Python that this process runs, unless told otherwise.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    return LazyPySparkResource(spark_config=settings.spark_conf())
