"""firings, with early_warnings: of a definition that has a trigger."""

from __future__ import annotations

import dagster as dg

from assets.step import asset_key, step
from windows_pipeline.config import Pipeline
from windows_pipeline.jobs import FiringsJob
from windows_pipeline.settings import Settings
from windows_pipeline.storage.tables import source_tables, window_tables


def firings(pipeline: Pipeline, windows_name: str, settings: Settings) -> dg.AssetsDefinition:
    """The assets of the firings that raw_events cause; final_windows settle what they warned of."""
    source = source_tables(pipeline, settings.warehouse)
    tables = window_tables(pipeline, windows_name, settings.warehouse)
    return step(
        pipeline,
        FiringsJob(pipeline, windows_name, settings),
        deps=[
            asset_key(source.raw_events),
            asset_key(source.arrival_log),
            asset_key(tables.final_windows),
        ],
    )
