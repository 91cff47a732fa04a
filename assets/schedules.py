"""The job and the schedule of a pipeline."""

from __future__ import annotations

from typing import TYPE_CHECKING

import dagster as dg

from assets.partitions import arrival_days
from windows_pipeline.config import Pipeline
from windows_pipeline.settings import Settings, resolve
from windows_pipeline.sources.landed_files import landed_days

if TYPE_CHECKING:
    from dagster._core.definitions.unresolved_asset_job_definition import (
        UnresolvedAssetJobDefinition,
    )


def all_assets_job(pipeline: Pipeline) -> UnresolvedAssetJobDefinition:
    """The job that materializes every asset of a pipeline."""
    return dg.define_asset_job(
        f"{pipeline.name}_all",
        selection=dg.AssetSelection.groups(pipeline.name),
        description=f"All tables of {pipeline.name}, for some arrival days.",
    )


def newest_day_schedule(
    pipeline: Pipeline, job: UnresolvedAssetJobDefinition, settings: Settings
) -> dg.ScheduleDefinition:
    """Daily: the newest landed day, if it was not asked for before."""
    days = arrival_days(pipeline)

    @dg.schedule(
        job=job,
        name=f"{pipeline.name}_daily",
        cron_schedule="30 0 * * *",
        execution_timezone="UTC",
        description=f"Materializes the newest landed day of {pipeline.name}.",
    )
    def newest_day(context: dg.ScheduleEvaluationContext) -> dg.RunRequest | dg.SkipReason:
        path = resolve(pipeline.source.place, settings.landing)
        known = set(days.get_partition_keys(current_time=context.scheduled_execution_time))
        landed = [day.isoformat() for day in landed_days(path) if day.isoformat() in known]
        if not landed:
            return dg.SkipReason(f"{path} holds no landed day of the pipeline's partitions")
        # The key makes a day be asked for once.
        return dg.RunRequest(run_key=landed[-1], partition_key=landed[-1])

    return newest_day
