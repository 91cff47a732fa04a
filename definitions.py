"""The Dagster definitions of all pipeline files; workspace.yaml names this module."""

from __future__ import annotations

from pathlib import Path

import dagster as dg

from assets.tables import table_assets
from resources.steps import step_resources
from windows_pipeline import dagster as factory
from windows_pipeline.settings import Settings, load_settings


def build_definitions(settings: Settings) -> dg.Definitions:
    """The definitions of all pipelines in the settings' folder; skips files with mistakes."""
    pipelines = factory.right_pipelines(settings)
    return factory.build_definitions(
        pipelines,
        settings,
        assets=table_assets(pipelines, settings),
        resources=step_resources(settings),
    )


defs = build_definitions(load_settings(Path(__file__).parent))
