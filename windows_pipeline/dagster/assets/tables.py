"""The assets of a pipeline's tables: one asset for each table."""

from __future__ import annotations

import dagster as dg

from windows_pipeline.config import Pipeline
from windows_pipeline.dagster.assets.catalogue import source_key, source_spec
from windows_pipeline.dagster.assets.conditions import windows_condition
from windows_pipeline.dagster.assets.corrections import corrections
from windows_pipeline.dagster.assets.step import step
from windows_pipeline.dagster.assets.stream import source_assets
from windows_pipeline.dagster.keys import asset_key
from windows_pipeline.jobs import (
    AlertsJob,
    FinalWindowsJob,
    FiringsJob,
    KeyedWindowsJob,
    RawEventsJob,
)
from windows_pipeline.settings import Settings
from windows_pipeline.storage.tables import PipelineTables, tables_of

Assets = list[dg.AssetsDefinition | dg.AssetSpec]


def pipeline_assets(pipeline: Pipeline, settings: Settings) -> Assets:
    """Makes the assets of all tables of a pipeline, with their checks.

    If a step writes several tables, its asset is that of the first; the others are assets that
    runs do not select, and that the step reports. Where a stream fills the tables, the source's
    have no step; those of windows compute days again.

    Args:
        pipeline: The pipeline.
        settings: The location of the tables, and how Spark runs.

    Returns:
        The definitions; the steps need the resource `spark`, see `spark_resource`.
    """
    made: Assets = [source_spec(pipeline)]
    tables = tables_of(pipeline, settings.warehouse)
    if pipeline.source.by_days:
        made += step(pipeline, RawEventsJob(tables, settings), deps=[source_key(pipeline)])
    else:
        made += source_assets(tables, settings)
    for name in pipeline.windows:
        made += _window_assets(tables, name, settings)
    return made


def _window_assets(source: PipelineTables, windows_name: str, settings: Settings) -> Assets:
    """The assets of the tables of one window definition."""
    pipeline, tables = source.pipeline, source.of(windows_name)
    keyed_windows = step(
        pipeline,
        KeyedWindowsJob(source, windows_name, settings),
        deps=[
            asset_key(source.raw_events),
            asset_key(source.arrival_log),
            asset_key(source.rejected_records),
        ],
    )
    final_windows = step(
        pipeline,
        FinalWindowsJob(source, windows_name, settings),
        deps=[asset_key(tables.keyed_windows)],
    )
    warnings = tables.early_warnings
    alerts = step(
        pipeline,
        AlertsJob(source, windows_name, settings),
        # The job reads raw_events for episodes that began before the run's days.
        deps=[
            asset_key(tables.final_windows),
            asset_key(source.raw_events),
            *([asset_key(warnings)] if warnings.is_written else []),
        ],
        others_of_first=True,  # notifications are of alerts
    )
    made = [*keyed_windows, *final_windows, *alerts]
    if pipeline.windows[windows_name].trigger is not None:
        # final_windows confirms or withdraws the early warnings of firings.
        firings = step(
            pipeline,
            FiringsJob(source, windows_name, settings),
            deps=[
                asset_key(source.raw_events),
                asset_key(source.arrival_log),
                asset_key(tables.final_windows),
            ],
        )
        made += firings
    steps = [assets for assets in made if isinstance(assets, dg.AssetsDefinition)]
    reported = [asset for asset in made if isinstance(asset, dg.AssetSpec)]
    keys = [key for assets in steps for key in assets.keys]
    condition = windows_condition(
        pipeline, windows_name, settings, asset_key(source.raw_events), keys
    )
    return [
        *dg.map_asset_specs(
            lambda spec: spec.replace_attributes(automation_condition=condition), steps
        ),
        *reported,
        corrections(pipeline, windows_name, settings),
    ]
