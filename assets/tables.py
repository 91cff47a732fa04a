"""Makes one asset for each table of each pipeline in the folder of pipeline files."""

from __future__ import annotations

from collections.abc import Iterable

import dagster as dg

from windows_pipeline.config import Pipeline
from windows_pipeline.dagster import pipeline_assets
from windows_pipeline.settings import Settings


def table_assets(
    pipelines: Iterable[Pipeline], settings: Settings
) -> list[dg.AssetsDefinition | dg.AssetSpec]:
    """The assets of all tables, with their checks; add the project's other assets here."""
    return [asset for pipeline in pipelines for asset in pipeline_assets(pipeline, settings)]
