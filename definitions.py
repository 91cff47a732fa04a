"""The one place that wires assets, resources, jobs and schedules; workspace.yaml names it."""

from __future__ import annotations

import logging
from pathlib import Path

import dagster as dg

from assets.alerts import alerts
from assets.corrections import correction_job, corrections
from assets.final_windows import final_windows
from assets.firings import firings
from assets.keyed_windows import keyed_windows
from assets.maintenance import maintenance_job, weekly_schedule
from assets.raw_events import raw_events
from assets.schedules import all_assets_job, newest_day_schedule
from assets.stream import every_ten_minutes, stream_assets
from resources.results import results_resource
from resources.spark import spark_resource
from windows_pipeline.config import Pipeline, load_folder
from windows_pipeline.settings import Settings, load_settings

_LOGGER = logging.getLogger("windows_pipeline.definitions")


def build_definitions(settings: Settings) -> dg.Definitions:
    """The definitions of every pipeline in the settings' folder, but of files with mistakes."""
    loaded = load_folder(settings.pipelines)
    for problem in loaded.all_problems:
        _LOGGER.warning("its pipeline is left out: %s", problem)
    pipelines = list(loaded.pipelines.values())
    jobs = {pipeline.name: all_assets_job(pipeline) for pipeline in pipelines}
    upkeep = {pipeline.name: maintenance_job(pipeline, settings) for pipeline in pipelines}
    mending = [correction_job(pipeline, settings) for pipeline in pipelines]
    return dg.Definitions(
        assets=[asset for pipeline in pipelines for asset in _assets(pipeline, settings)],
        jobs=[*jobs.values(), *upkeep.values(), *mending],
        schedules=[
            schedule
            for pipeline in pipelines
            for schedule in (
                newest_day_schedule(pipeline, jobs[pipeline.name], settings)
                if pipeline.source.by_days
                else every_ten_minutes(pipeline, jobs[pipeline.name]),
                weekly_schedule(pipeline, upkeep[pipeline.name]),
            )
        ],
        resources={"spark": spark_resource(settings), "io_manager": results_resource()},
        # One process and one Spark session a run.
        executor=dg.in_process_executor,
    )


def _assets(pipeline: Pipeline, settings: Settings) -> list[dg.AssetsDefinition | dg.AssetSpec]:
    if not pipeline.source.by_days:
        return [stream_assets(pipeline, settings)]
    made: list[dg.AssetsDefinition | dg.AssetSpec] = [raw_events(pipeline, settings)]
    for name, windows in pipeline.windows.items():
        made += [
            keyed_windows(pipeline, name, settings),
            final_windows(pipeline, name, settings),
            corrections(pipeline, name, settings),
            alerts(pipeline, name, settings),
            *([] if windows.trigger is None else [firings(pipeline, name, settings)]),
        ]
    return made


defs = build_definitions(load_settings(Path(__file__).parent))
