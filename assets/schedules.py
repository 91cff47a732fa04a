"""The job and the schedule of a pipeline."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import date, timedelta
from typing import TYPE_CHECKING

import dagster as dg
from dagster._core.storage.tags import (
    ASSET_PARTITION_RANGE_END_TAG,
    ASSET_PARTITION_RANGE_START_TAG,
)

from assets.partitions import arrival_days
from assets.step import asset_key
from windows_pipeline.config import Pipeline
from windows_pipeline.settings import Settings, resolve
from windows_pipeline.sources.landed_files import landed_days
from windows_pipeline.tables.catalog import source_tables

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
    """Daily: the newest landed day, and those just before it that are not materialized."""
    days = arrival_days(pipeline)
    raw_events = asset_key(source_tables(pipeline, settings.warehouse).raw_events)

    @dg.schedule(
        job=job,
        name=f"{pipeline.name}_daily",
        cron_schedule="30 0 * * *",
        execution_timezone="UTC",
        description=f"Materializes the newest landed days of {pipeline.name}.",
    )
    def newest_day(context: dg.ScheduleEvaluationContext) -> dg.RunRequest | dg.SkipReason:
        path = resolve(pipeline.source.place, settings.landing)
        known = set(days.get_partition_keys(current_time=context.scheduled_execution_time))
        landed = [day for day in landed_days(path) if day.isoformat() in known]
        if not landed:
            return dg.SkipReason(f"{path} holds no landed day of the pipeline's partitions")
        first = _first_new(landed, context.instance.get_materialized_partitions(raw_events))
        if first is None:
            return dg.SkipReason(f"the newest landed day, {landed[-1]}, is materialized")
        return _request(first.isoformat(), landed[-1].isoformat())

    return newest_day


def _first_new(landed: Sequence[date], materialized: Collection[str]) -> date | None:
    """The first day not materialized of those landed that end, without a gap, with the newest."""
    first = None
    for day, later in zip(reversed(landed), [None, *reversed(landed)], strict=False):
        if later is not None and later - day > timedelta(days=1):
            break
        if day.isoformat() not in materialized:
            first = day
    return first


def _request(first: str, last: str) -> dg.RunRequest:
    """A run of some days; its key makes them be asked for once."""
    if first == last:
        return dg.RunRequest(run_key=last, partition_key=last)
    tags = {ASSET_PARTITION_RANGE_START_TAG: first, ASSET_PARTITION_RANGE_END_TAG: last}
    return dg.RunRequest(run_key=f"{first}...{last}", tags=tags)
