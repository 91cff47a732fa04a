"""The Spark session of a run."""

from __future__ import annotations

import dagster as dg
from dagster_pyspark import LazyPySparkResource
from pyspark.sql import SparkSession

from windows_pipeline.compat.spark_session import use_this_python, with_cached_names
from windows_pipeline.settings import Settings


class SparkResource(LazyPySparkResource):
    """A session made on first use, as the settings say; the steps of a run share it."""

    @property
    def spark_session(self) -> SparkSession:
        """The session."""
        return with_cached_names(super().spark_session)


def spark_resource(settings: Settings) -> dg.ResourceDefinition:
    """Defines the resource that the steps take; a run's config has no say in it.

    Dagster turns each field of a `ConfigurableResource` into run config, and some keys of Spark
    name code to load. So the resource is made here, by a definition whose config has no fields.
    """
    use_this_python()
    return dg.ResourceDefinition(
        lambda _: SparkResource(spark_config=settings.spark_conf()),
        config_schema={},
        description="The Spark session that the settings describe.",
    )
