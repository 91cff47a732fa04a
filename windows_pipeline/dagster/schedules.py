"""The schedule that materializes a pipeline's tables, with its job."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import date, timedelta

import dagster as dg

from windows_pipeline.config import Pipeline
from windows_pipeline.dagster.partitions import arrival_days, range_tags
from windows_pipeline.dagster.step import asset_key
from windows_pipeline.settings import Settings, resolve
from windows_pipeline.sources.landed_files import landed_days
from windows_pipeline.storage.catalog import source_tables


def source_schedule(pipeline: Pipeline, settings: Settings) -> dg.ScheduleDefinition:
    """The schedule of the job that materializes every asset of a pipeline.

    Every ten minutes where the pipeline follows its source as a stream. Else daily: the newest
    landed days, and those just before them that are not there yet, or failed. A day failed where
    any asset's last run for the day did; the schedule asks for such a day each night until the day
    is materialized. What one step never began for a day, as of a definition that is new, is left
    to a backfill.
    """
    job = dg.define_asset_job(
        f"{pipeline.name}_all",
        selection=dg.AssetSelection.groups(pipeline.name),
        description=f"All tables of {pipeline.name}, for some arrival days.",
    )
    if not pipeline.source.by_days:
        return dg.ScheduleDefinition(
            name=f"{pipeline.name}_stream",
            job=job,
            cron_schedule="*/10 * * * *",
            execution_timezone="UTC",
            description=f"Ingests what came to {pipeline.name}, and computes what follows.",
        )

    @dg.schedule(
        job=job,
        name=f"{pipeline.name}_daily",
        cron_schedule="30 0 * * *",
        execution_timezone="UTC",
        description=f"Materializes the newest landed days of {pipeline.name}.",
    )
    def newest_days(
        context: dg.ScheduleEvaluationContext,
    ) -> Sequence[dg.RunRequest] | dg.SkipReason:
        return _runs_of_newest_days(context, pipeline, settings, job.name)

    return newest_days


def _runs_of_newest_days(
    context: dg.ScheduleEvaluationContext, pipeline: Pipeline, settings: Settings, job: str
) -> Sequence[dg.RunRequest] | dg.SkipReason:
    days = arrival_days(pipeline)
    raw_events = asset_key(source_tables(pipeline, settings.warehouse).raw_events)
    path = resolve(pipeline.source.required_path, settings.landing)
    known = set(days.get_partition_keys(current_time=context.scheduled_execution_time))
    landed = [day for day in landed_days(path) if day.isoformat() in known]
    if not landed:
        return dg.SkipReason(f"{path} holds no landed day of the pipeline's partitions")
    newest = _without_gap(landed)
    failed = _failed(context.instance, _assets_of(context, job), newest, days)
    there = context.instance.get_materialized_partitions(raw_events)
    new = {day for day in newest if day.isoformat() not in there}
    asked = _firsts(new, failed)
    if not asked:
        return dg.SkipReason(f"the newest landed day, {landed[-1]}, is materialized")
    tick = context.scheduled_execution_time.date().isoformat()
    return [_request(first.isoformat(), newest[-1].isoformat(), tick) for first in asked]


def _without_gap(landed: Sequence[date]) -> list[date]:
    """The landed days that end, without a gap, with the newest one."""
    first = len(landed) - 1
    while first and landed[first] - landed[first - 1] == timedelta(days=1):
        first -= 1
    return list(landed[first:])


def _assets_of(context: dg.ScheduleEvaluationContext, job: str) -> Iterable[dg.AssetKey]:
    repository = context.repository_def
    if repository is None:
        raise ValueError(f"{job}: evaluate its schedule within the project's definitions")
    return repository.get_job(job).asset_layer.executable_asset_keys


def _failed(
    instance: dg.DagsterInstance,
    assets: Iterable[dg.AssetKey],
    among: Sequence[date],
    days: dg.DailyPartitionsDefinition,
) -> set[date]:
    """Of some days those for which the last run of an asset ended without it."""
    keys = [day.isoformat() for day in among]
    told = (instance.get_status_by_partition(asset, keys, days) or {} for asset in assets)
    return {
        date.fromisoformat(key)
        for of_asset in told
        for key, status in of_asset.items()
        if status == dg.AssetPartitionStatus.FAILED
    }


def _firsts(new: set[date], failed: set[date]) -> list[date]:
    """The first days of the ranges to ask for, each up to the newest day.

    Days behind the last one that failed come by themselves first, so that a day that fails again
    does not hold them up. Then all from the first on: a raw day that is missing holds back what
    follows it.
    """
    last_failed = max(failed, default=date.min)
    firsts = [min((day for day in new if day > last_failed), default=None)]
    if failed:
        firsts.append(min(new | failed))
    return list(dict.fromkeys(day for day in firsts if day is not None))


def _request(first: str, last: str, tick: str) -> dg.RunRequest:
    """A run of some days; its key has it asked for once a tick."""
    if first == last:
        return dg.RunRequest(run_key=f"{last} on {tick}", partition_key=last)
    return dg.RunRequest(run_key=f"{first}...{last} on {tick}", tags=range_tags(first, last))
