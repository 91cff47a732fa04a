"""The Spark session of a run."""

from __future__ import annotations

import dagster as dg
from dagster_pyspark import LazyPySparkResource
from pydantic import PrivateAttr
from pyspark import SparkContext
from pyspark.sql import SparkSession

from windows_pipeline.compat.spark_session import start_session, use_this_python
from windows_pipeline.settings import Settings


class SparkResource(LazyPySparkResource):
    """A Spark session with the settings' configuration, started on first use; steps share it.

    The configuration is no field of the resource: its values may be secrets.
    """

    _settings: Settings = PrivateAttr()
    _started: SparkSession | None = PrivateAttr(default=None)

    @classmethod
    def of(cls, settings: Settings) -> SparkResource:
        """Makes the resource of an installation's settings."""
        made = cls(spark_config={})
        made._settings = settings
        return made

    @property
    def spark_session(self) -> SparkSession:
        """The session."""
        if self._started is None:
            self._started = start_session(self._settings)
        return self._started

    @property
    def spark_context(self) -> SparkContext:
        """The session's context."""
        return self.spark_session.sparkContext


def spark_resource(settings: Settings) -> dg.ResourceDefinition:
    """Defines the resource `spark` of the steps, which takes no run config.

    Dagster turns each field of a `ConfigurableResource` into run config, and some of Spark's keys
    name code to load. A definition without config fields keeps run config from setting them.
    """
    use_this_python()
    return dg.ResourceDefinition(
        lambda _: SparkResource.of(settings),
        config_schema={},
        description="The Spark session that the settings describe.",
    )
