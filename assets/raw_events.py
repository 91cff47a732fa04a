"""raw_events, with rejected_records and arrival_log."""

from __future__ import annotations

import dagster as dg

from assets.step import step
from windows_pipeline.config import Pipeline
from windows_pipeline.jobs import RawEventsJob
from windows_pipeline.settings import Settings


def raw_events(pipeline: Pipeline, settings: Settings) -> dg.AssetsDefinition:
    """The assets that landed files become."""
    return step(pipeline, RawEventsJob(pipeline, settings), deps=[])
