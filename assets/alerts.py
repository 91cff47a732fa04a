"""alerts: the rules that final windows broke, with a plot of the run's days."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from datetime import date

import dagster as dg
from pyspark.sql import SparkSession

from assets.step import asset_key, step
from windows_pipeline.config import Pipeline
from windows_pipeline.jobs import AlertsJob
from windows_pipeline.plots import alerts_over_time
from windows_pipeline.settings import Settings
from windows_pipeline.tables.catalog import source_tables, window_tables


def alerts(pipeline: Pipeline, windows_name: str, settings: Settings) -> dg.AssetsDefinition:
    """The asset that final_windows become."""
    tables = window_tables(pipeline, windows_name, settings.warehouse)

    def plot(spark: SparkSession, days: Sequence[date]) -> Mapping[str, dg.MetadataValue]:
        image = alerts_over_time(spark, tables, days)
        data = base64.b64encode(image).decode("ascii")
        return {"plot": dg.MetadataValue.md(f"![alerts](data:image/png;base64,{data})")}

    return step(
        pipeline,
        AlertsJob(pipeline, windows_name, settings),
        # It reads raw_events where an episode began before the run's days.
        deps=[
            asset_key(tables.final_windows),
            asset_key(source_tables(pipeline, settings.warehouse).raw_events),
        ],
        extra_metadata=plot,
    )
