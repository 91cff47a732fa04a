"""The resources of the project's steps."""

from __future__ import annotations

import dagster as dg

from windows_pipeline.dagster import results_resource, spark_resource
from windows_pipeline.settings import Settings


def step_resources(settings: Settings) -> dict[str, dg.ResourceDefinition]:
    """The Spark session that the settings describe, and an I/O manager that writes no files."""
    return {"spark": spark_resource(settings), "io_manager": results_resource()}
