"""The schedule that materializes a pipeline's tables."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from datetime import date, timedelta

import dagster as dg

from windows_pipeline.config import Pipeline
from windows_pipeline.dagster.automation.logged_days import logged_days
from windows_pipeline.dagster.automation.open_runs import at_work, command_at_work
from windows_pipeline.dagster.keys import asset_key
from windows_pipeline.dagster.partitions import arrival_days, range_tags
from windows_pipeline.settings import Settings, resolve
from windows_pipeline.sources.landed_files import landed_days
from windows_pipeline.storage.tables import source_tables

_NIGHTLY, _TEN_MINUTES = "30 0 * * *", "*/10 * * * *"


def source_schedule(pipeline: Pipeline, settings: Settings) -> dg.ScheduleDefinition:
    """The schedule of the job that materializes every asset of a pipeline.

    If the pipeline follows its source as a stream, the schedule runs the stream's job, by default
    every ten minutes, while no run of it is open. Otherwise it runs the job of days, by default
    each night, for the unbroken run of landed days that ends with the newest landed day: for the
    days that are not in the arrival log nor in an open run, and for the days that failed. A day
    failed if the last run of any asset for it failed; each tick requests it until it succeeds.
    Days that an asset was never run for, as after a new window definition, need a backfill. A tick
    while a command writes the pipeline's tables requests nothing; the next tick does.

    The pipeline's `schedule` may name other times, and start the schedule.
    """
    by_days = pipeline.source.by_days
    declared = pipeline.schedule
    cron = declared.cron or (_NIGHTLY if by_days else _TEN_MINUTES)
    enabled = dg.DefaultScheduleStatus.RUNNING, dg.DefaultScheduleStatus.STOPPED
    status = enabled[0 if declared.enabled else 1]
    if not by_days:
        return _stream_schedule(pipeline, settings, cron, status)

    job = f"{pipeline.name}_all"

    @dg.schedule(
        job_name=job,
        name=f"{pipeline.name}_daily",
        cron_schedule=cron,
        execution_timezone=declared.zone,
        default_status=status,
        description=f"Materializes the newest landed days of {pipeline.name}.",
    )
    def newest_days(
        context: dg.ScheduleEvaluationContext,
    ) -> Sequence[dg.RunRequest] | dg.SkipReason:
        return _runs_of_newest_days(context, pipeline, settings, job)

    return newest_days


def _stream_schedule(
    pipeline: Pipeline, settings: Settings, cron: str, status: dg.DefaultScheduleStatus
) -> dg.ScheduleDefinition:
    """Runs the stream's job, unless a run of it or a command is at work."""
    job = f"{pipeline.name}_stream"

    @dg.schedule(
        job_name=job,
        name=job,
        cron_schedule=cron,
        execution_timezone=pipeline.schedule.zone,
        default_status=status,
        description=f"Ingests new records of {pipeline.name} and updates all of its tables.",
    )
    def new_records(context: dg.ScheduleEvaluationContext) -> dg.RunRequest | dg.SkipReason:
        busy = at_work(context.instance, pipeline, settings, job)
        return dg.RunRequest() if busy is None else dg.SkipReason(busy)

    return new_records


def _runs_of_newest_days(
    context: dg.ScheduleEvaluationContext, pipeline: Pipeline, settings: Settings, job: str
) -> Sequence[dg.RunRequest] | dg.SkipReason:
    busy = command_at_work(pipeline, settings)
    if busy is not None:
        return dg.SkipReason(f"{busy}; the next tick requests the days that lack results then")
    days = arrival_days(pipeline)
    raw_events = asset_key(source_tables(pipeline, settings.warehouse).raw_events)
    path = resolve(pipeline.source.required_path, settings.landing)
    known = set(days.get_partition_keys(current_time=context.scheduled_execution_time))
    landed = [day for day in landed_days(path) if day.isoformat() in known]
    if not landed:
        return dg.SkipReason(f"{path} contains no landed day within the pipeline's partitions")
    newest = _newest_without_gap(landed)
    failed = _of_status(
        context.instance,
        _assets_of(context, job),
        newest,
        days,
        dg.AssetPartitionStatus.FAILED,
    )
    active = _of_status(
        context.instance, [raw_events], newest, days, dg.AssetPartitionStatus.IN_PROGRESS
    )
    published = logged_days(context.instance, pipeline, settings)
    new = set(newest) - published - active
    firsts = _first_days(new, failed)
    if not firsts and active:
        return dg.SkipReason(f"a run of {min(active)} is not finished")
    if not firsts:
        return dg.SkipReason(
            f"the newest landed day, {landed[-1]}, is materialized"
            f"{_gap(newest[0], pipeline, published)}"
        )
    tick = context.scheduled_execution_time.date().isoformat()
    return [_request(first.isoformat(), newest[-1].isoformat(), tick) for first in firsts]


def _newest_without_gap(landed: Sequence[date]) -> list[date]:
    """The longest run of consecutive landed days that ends with the newest landed day."""
    first = len(landed) - 1
    while first and landed[first] - landed[first - 1] == timedelta(days=1):
        first -= 1
    return list(landed[first:])


def _gap(first: date, pipeline: Pipeline, published: Collection[date]) -> str:
    """A clause on the missing day before the newest landed days; nothing if none is missing."""
    missing = first - timedelta(days=1)
    if first <= pipeline.partitions.start or missing in published:
        return ""
    return f"; nothing closes before the raw day {missing}, which has not landed, is ingested"


def _assets_of(context: dg.ScheduleEvaluationContext, job: str) -> Iterable[dg.AssetKey]:
    repository = context.repository_def
    if repository is None:
        raise ValueError(
            f"{job}: its schedule must be evaluated with a repository, but the context has none; "
            "evaluate it within the project's definitions"
        )
    return repository.get_job(job).asset_layer.executable_asset_keys


def _of_status(
    instance: dg.DagsterInstance,
    assets: Iterable[dg.AssetKey],
    candidates: Sequence[date],
    days: dg.DailyPartitionsDefinition,
    wanted: dg.AssetPartitionStatus,
) -> set[date]:
    """The days for which at least one asset has a status by its last run."""
    keys = [day.isoformat() for day in candidates]
    statuses = (instance.get_status_by_partition(asset, keys, days) or {} for asset in assets)
    return {
        date.fromisoformat(key)
        for status_by_key in statuses
        for key, status in status_by_key.items()
        if status == wanted
    }


def _first_days(new: set[date], failed: set[date]) -> list[date]:
    """The first days of the ranges to request; each range ends with the newest day.

    The first range holds the new days after the last failed day, so that a day that fails again
    does not delay them. The second range starts at the first new or failed day, because a missing
    raw day blocks all later days.
    """
    last_failed = max(failed, default=date.min)
    firsts = [min((day for day in new if day > last_failed), default=None)]
    if failed:
        firsts.append(min(new | failed))
    return list(dict.fromkeys(day for day in firsts if day is not None))


def _request(first: str, last: str, tick: str) -> dg.RunRequest:
    """Requests a run of a range of days; the run key makes it unique within a tick."""
    if first == last:
        return dg.RunRequest(run_key=f"{last} on {tick}", partition_key=last)
    return dg.RunRequest(run_key=f"{first}...{last} on {tick}", tags=range_tags(first, last))
