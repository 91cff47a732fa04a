"""Dagster definitions of pipelines: assets, checks, jobs, schedules and resources.

Use in another Dagster project that installs `windows-pipeline[dagster]`:

    from windows_pipeline.config import load_pipelines
    from windows_pipeline.dagster import build_definitions
    from windows_pipeline.settings import load_settings

    settings = load_settings(Path(__file__).parent)
    pipelines = load_pipelines(settings.pipelines, settings.modules)
    defs = build_definitions(pipelines, settings)

A project of Dagster's components mounts them by a `defs.yaml` instead; see `WindowsPipelines`.

No other package of the library imports Dagster.
"""

from windows_pipeline.dagster.assets.tables import pipeline_assets
from windows_pipeline.dagster.component import WindowsPipelines
from windows_pipeline.dagster.definitions import build_definitions, right_pipelines
from windows_pipeline.dagster.io_manager import results_resource
from windows_pipeline.dagster.keys import asset_key
from windows_pipeline.dagster.partitions import arrival_days, range_tags
from windows_pipeline.dagster.spark_resource import SparkResource, spark_resource

__all__ = [
    "SparkResource",
    "WindowsPipelines",
    "arrival_days",
    "asset_key",
    "build_definitions",
    "pipeline_assets",
    "range_tags",
    "results_resource",
    "right_pipelines",
    "spark_resource",
]
