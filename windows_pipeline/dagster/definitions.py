"""Combines the assets, checks, jobs, schedules and resources of pipelines to definitions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import dagster as dg

from windows_pipeline.config import Pipeline
from windows_pipeline.dagster.corrections import correction_job
from windows_pipeline.dagster.io_manager import results_resource
from windows_pipeline.dagster.maintenance import weekly_schedule
from windows_pipeline.dagster.notify import notify_sensor
from windows_pipeline.dagster.operations import check_job, rebuild_job
from windows_pipeline.dagster.schedules import source_schedule
from windows_pipeline.dagster.spark_resource import spark_resource
from windows_pipeline.dagster.tables import pipeline_assets
from windows_pipeline.settings import Settings


def build_definitions(
    pipelines: Iterable[Pipeline],
    settings: Settings,
    *,
    assets: Iterable[dg.AssetsDefinition | dg.AssetSpec] | None = None,
    resources: Mapping[str, dg.ResourceDefinition] | None = None,
) -> dg.Definitions:
    """Builds the Dagster definitions of pipelines.

    A pipeline NAME has the jobs `NAME_all`, `NAME_correction`, `NAME_rebuild`, `NAME_check` and
    `NAME_maintenance`, and the schedules `NAME_daily` and `NAME_weekly_maintenance`. One that
    follows its source as a stream has the job and the schedule `NAME_stream` for `NAME_daily`; one
    with `notify` has the sensor and the job `NAME_notify`, too. Its assets form the group NAME and
    have keys such as `NAME/raw_events` and `NAME/WINDOWS/final_windows`.

    Args:
        pipelines: The pipelines, with distinct names.
        settings: Where tables and landed files lie, and how Spark runs.
        assets: All assets of the definitions, including any assets of the project's own; by
            default `pipeline_assets` of each pipeline.
        resources: The resources `spark` and `io_manager`; by default `spark_resource` and
            `results_resource`.

    Returns:
        The definitions; each run is one process with one Spark session. Runs that write the tables
        of a pipeline share the pool NAME, and a stream's runs the pool `NAME_stream`: an instance
        whose pools have the granularity `run` runs one of them at a time.
    """
    every = list(pipelines)
    if assets is None:
        assets = [asset for pipeline in every for asset in pipeline_assets(pipeline, settings)]
    if resources is None:
        resources = {"spark": spark_resource(settings), "io_manager": results_resource()}
    schedules = [
        schedule
        for pipeline in every
        for schedule in (source_schedule(pipeline, settings), weekly_schedule(pipeline, settings))
    ]
    sensors = [
        sensor for pipeline in every if (sensor := notify_sensor(pipeline, settings)) is not None
    ]
    return dg.Definitions(
        assets=list(assets),
        jobs=[
            *(schedule.job for schedule in schedules),
            *(
                dg.define_asset_job(
                    f"{pipeline.name}_all",
                    selection=dg.AssetSelection.groups(pipeline.name),
                    description=f"Computes the windows of {pipeline.name} of the selected arrival "
                    "days again, from the records that its stream has brought.",
                )
                for pipeline in every
                if not pipeline.source.by_days
            ),
            *(
                job(pipeline, settings)
                for pipeline in every
                for job in (correction_job, rebuild_job, check_job)
            ),
            *(sensor.job for sensor in sensors),
        ],
        schedules=schedules,
        sensors=sensors,
        resources=dict(resources),
        executor=dg.in_process_executor,
    )
