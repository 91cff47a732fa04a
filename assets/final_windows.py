"""final_windows: the windows that closed."""

from __future__ import annotations

import dagster as dg

from assets.step import asset_key, step
from windows_pipeline.config import Pipeline
from windows_pipeline.jobs import FinalWindowsJob
from windows_pipeline.settings import Settings
from windows_pipeline.storage.tables import window_tables


def final_windows(pipeline: Pipeline, windows_name: str, settings: Settings) -> dg.AssetsDefinition:
    """The asset that keyed_windows become."""
    tables = window_tables(pipeline, windows_name, settings.warehouse)
    return step(
        pipeline,
        FinalWindowsJob(pipeline, windows_name, settings),
        deps=[asset_key(tables.keyed_windows)],
    )
