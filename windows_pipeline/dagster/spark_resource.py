"""The Spark session of a run."""

from __future__ import annotations

import dagster as dg
from dagster_pyspark import LazyPySparkResource
from pyspark.sql import SparkSession

from windows_pipeline.compat.spark_session import use_this_python, with_cached_names
from windows_pipeline.settings import Settings


class SparkResource(LazyPySparkResource):
    """A Spark session with the settings' configuration, started on first use; steps share it."""

    @property
    def spark_session(self) -> SparkSession:
        """The session."""
        return with_cached_names(super().spark_session)


def spark_resource(settings: Settings) -> dg.ResourceDefinition:
    """Defines the resource `spark` of the steps, which takes no run config.

    Dagster turns each field of a `ConfigurableResource` into run config, and some of Spark's keys
    name code to load. A definition without config fields keeps run config from setting them.
    """
    use_this_python()
    return dg.ResourceDefinition(
        lambda _: SparkResource(spark_config=settings.spark_conf()),
        config_schema={},
        description="The Spark session that the settings describe.",
    )
