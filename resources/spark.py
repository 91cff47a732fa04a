"""The Spark session of a run."""

from __future__ import annotations

from dagster_pyspark import LazyPySparkResource
from pyspark.sql import SparkSession

from windows_pipeline.session import made_ready, use_this_python
from windows_pipeline.settings import Settings


class SparkResource(LazyPySparkResource):
    """A session made on first use, as the settings say; the steps of a run share it."""

    @property
    def spark_session(self) -> SparkSession:
        """The session."""
        return made_ready(super().spark_session)


def spark_resource(settings: Settings) -> SparkResource:
    """The resource that the assets' steps take."""
    use_this_python()
    return SparkResource(spark_config=settings.spark_conf())
