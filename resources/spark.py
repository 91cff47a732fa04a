"""The Spark session of a run."""

from __future__ import annotations

from dagster_pyspark import LazyPySparkResource

from windows_pipeline.session import use_this_python
from windows_pipeline.settings import Settings


def spark_resource(settings: Settings) -> LazyPySparkResource:
    """A session made on first use, as the settings say; the steps of a run share it."""
    use_this_python()
    return LazyPySparkResource(spark_config=settings.spark_conf())
