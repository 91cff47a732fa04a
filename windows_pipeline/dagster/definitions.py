"""Combines the assets, checks, jobs, schedules and resources of pipelines to definitions."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Mapping

import dagster as dg

from windows_pipeline.config import ConfigError, Pipeline, load_folder
from windows_pipeline.dagster.assets.conditions import conditions_sensor
from windows_pipeline.dagster.assets.corrections import correction_job
from windows_pipeline.dagster.assets.stream import stream_job
from windows_pipeline.dagster.assets.tables import pipeline_assets
from windows_pipeline.dagster.automation.failures import failure_sensor
from windows_pipeline.dagster.automation.landing import landing_sensor
from windows_pipeline.dagster.automation.notify import notify_sensor
from windows_pipeline.dagster.automation.operations import (
    check_job,
    maintenance_job,
    rebuild_job,
    weekly_schedule,
)
from windows_pipeline.dagster.automation.schedules import source_schedule
from windows_pipeline.dagster.io_manager import results_resource
from windows_pipeline.dagster.keys import asset_key
from windows_pipeline.dagster.spark_resource import spark_resource
from windows_pipeline.settings import Settings
from windows_pipeline.storage.tables import tables_of
from windows_pipeline.text.markdown import plain

_NO_NAME = re.compile(r"[^A-Za-z0-9_]")
_LOGGER = logging.getLogger("windows_pipeline.definitions")


def build_definitions(
    pipelines: Iterable[Pipeline],
    settings: Settings,
    *,
    assets: Iterable[dg.AssetsDefinition | dg.AssetSpec] | None = None,
    resources: Mapping[str, dg.ResourceDefinition] | None = None,
) -> dg.Definitions:
    """Builds the Dagster definitions of pipelines.

    A pipeline NAME has the jobs `NAME_all`, `NAME_correction`, `NAME_rebuild`, `NAME_check` and
    `NAME_maintenance`, the schedules `NAME_daily` and `NAME_weekly_maintenance`, and the sensors
    `NAME_landing` and `NAME_automation`. One that follows its source as a stream has the job and
    the schedule `NAME_stream` for `NAME_daily`, and no such sensors. One with `notify` has the
    sensor and the job `NAME_notify`, too; the sensor `failed_runs` notes failed runs for these. Its
    assets form the group NAME and have keys such as `NAME/raw_events` and
    `NAME/WINDOWS/final_windows`.

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
    assets = [*assets, *_files_with_mistakes(settings)]
    if resources is None:
        resources = {"spark": spark_resource(settings), "io_manager": results_resource()}
    of_days = [
        dg.define_asset_job(
            f"{pipeline.name}_all",
            selection=_tables_of(pipeline, settings),
            description=_what_days_do(pipeline),
        )
        for pipeline in every
    ]
    notifying = [notify_sensor(pipeline, settings) for pipeline in every if pipeline.notify]
    jobs: list[dg.JobDefinition] = []
    schedules: list[dg.ScheduleDefinition] = []
    sensors: list[dg.SensorDefinition] = list(notifying)
    for pipeline in every:
        of_commands = (correction_job, rebuild_job, check_job, maintenance_job)
        jobs += [job(pipeline, settings) for job in of_commands]
        schedules += [source_schedule(pipeline, settings), weekly_schedule(pipeline)]
        if pipeline.source.by_days:
            sensors += [landing_sensor(pipeline, settings), conditions_sensor(pipeline)]
        else:
            jobs.append(stream_job(pipeline, settings))
    of_failures = failure_sensor(every, settings)
    return dg.Definitions(
        assets=list(assets),
        jobs=[*of_days, *jobs, *(sensor.job for sensor in notifying)],
        schedules=schedules,
        sensors=sensors if of_failures is None else [*sensors, of_failures],
        resources=dict(resources),
        executor=dg.in_process_executor,
    )


def _tables_of(pipeline: Pipeline, settings: Settings) -> dg.AssetSelection:
    """What the job that materializes days selects.

    A step evaluates its checks in any case. As these are not selected, Dagster does not wait for
    an evaluation of each day. The checks of the tables that a stream fills have no step.
    """
    tables = dg.AssetSelection.groups(pipeline.name).without_checks()
    if pipeline.source.by_days:
        return tables
    raw_events = asset_key(tables_of(pipeline, settings.warehouse).raw_events)
    return tables | dg.AssetSelection.checks_for_assets(raw_events)


def _what_days_do(pipeline: Pipeline) -> str:
    """The description of the job that materializes selected days."""
    if pipeline.source.by_days:
        return f"Materializes all tables of {pipeline.name} for the selected arrival days."
    return (
        f"Computes the windows of {pipeline.name} of the selected arrival days again, from the "
        "records that its stream has brought."
    )


def _files_with_mistakes(settings: Settings) -> list[dg.AssetSpec]:
    """An asset for each pipeline file that is skipped, so that the UI shows its mistakes.

    Nothing materializes it; its description has the mistakes, each with file, line and fix.
    """
    try:
        problems = load_folder(settings.pipelines, settings.modules).problems
    except ConfigError:  # there is no folder
        return []
    advice = (
        "The file is skipped; its tables stay as they are. Correct it, then reload definitions."
    )
    return [
        dg.AssetSpec(
            dg.AssetKey(["mistakes", _NO_NAME.sub("_", file.name)]),
            group_name="mistakes",
            kinds={"yaml"},
            description="\n".join(
                [
                    f"{plain(str(file))} has mistakes. {advice}\n",
                    *(f"- {plain(text)}" for text in of_file),
                ]
            ),
        )
        for file, of_file in problems.items()
    ]


def right_pipelines(settings: Settings) -> list[Pipeline]:
    """The pipelines of the settings' folder; a file with a mistake is skipped with a warning.

    Raises:
        ConfigError: There is no folder of pipelines.
    """
    loaded = load_folder(settings.pipelines, settings.modules)
    for problem in loaded.all_problems:
        _LOGGER.warning("this pipeline file is skipped, because it has a mistake: %s", problem)
    return list(loaded.pipelines.values())
