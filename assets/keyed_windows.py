"""keyed_windows, with late_records."""

from __future__ import annotations

import dagster as dg

from assets.step import asset_key, step
from windows_pipeline.config import Pipeline
from windows_pipeline.jobs import KeyedWindowsJob
from windows_pipeline.settings import Settings
from windows_pipeline.storage.tables import source_tables


def keyed_windows(pipeline: Pipeline, windows_name: str, settings: Settings) -> dg.AssetsDefinition:
    """The assets of a named window definition that raw_events become."""
    source = source_tables(pipeline, settings.warehouse)
    return step(
        pipeline,
        KeyedWindowsJob(pipeline, windows_name, settings),
        deps=[
            asset_key(source.raw_events),
            asset_key(source.arrival_log),
            asset_key(source.rejected_records),
        ],
    )
