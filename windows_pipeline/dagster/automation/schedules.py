"""The schedule that materializes a pipeline's tables."""

from __future__ import annotations

from collections.abc import Sequence

import dagster as dg

from windows_pipeline.config import Pipeline
from windows_pipeline.dagster.automation.days_to_run import (
    lacking_days,
    landed_days_of,
    requested,
)
from windows_pipeline.dagster.automation.open_runs import at_work
from windows_pipeline.settings import Settings

_NIGHTLY, _TEN_MINUTES = "30 0 * * *", "*/10 * * * *"


def source_schedule(pipeline: Pipeline, settings: Settings) -> dg.ScheduleDefinition:
    """The schedule of the job that materializes every asset of a pipeline.

    If the pipeline follows its source as a stream, the schedule runs the stream's job, by default
    every ten minutes. Otherwise it runs the job of days, by default each night, for what
    `windows-pipeline run` would compute: the landed days that are not published, as far as no
    missing day blocks them, and, in a run of their own, the ingested days that windows lack. So a
    day whose run failed is requested again at each tick. A tick requests nothing while a run of the
    job is open, or a command writes the pipeline's tables.

    The pipeline's `schedule` may name other times, and start the schedule.
    """
    by_days, declared = pipeline.source.by_days, pipeline.schedule
    job = f"{pipeline.name}_{'all' if by_days else 'stream'}"
    what = (
        f"Computes the newest landed days of {pipeline.name}. Switch on this schedule, or the "
        f"sensor {pipeline.name}_landing to compute a day soon after it has landed."
        if by_days
        else f"Ingests new records of {pipeline.name} and updates all tables. Switch it on."
    )
    enabled = dg.DefaultScheduleStatus.RUNNING, dg.DefaultScheduleStatus.STOPPED

    @dg.schedule(
        job_name=job,
        name=f"{pipeline.name}_daily" if by_days else job,
        cron_schedule=declared.cron or (_NIGHTLY if by_days else _TEN_MINUTES),
        execution_timezone=declared.zone,
        default_status=enabled[0 if declared.enabled else 1],
        description=what,
    )
    def tick(
        context: dg.ScheduleEvaluationContext,
    ) -> Sequence[dg.RunRequest] | dg.SkipReason:
        busy = at_work(context.instance, pipeline, settings, job)
        if busy is not None:
            return dg.SkipReason(busy)
        return _runs_of_days(context, pipeline, settings) if by_days else [dg.RunRequest()]

    return tick


def _runs_of_days(
    context: dg.ScheduleEvaluationContext, pipeline: Pipeline, settings: Settings
) -> Sequence[dg.RunRequest] | dg.SkipReason:
    try:
        landed = landed_days_of(context.instance, pipeline, settings)
    except FileNotFoundError as error:
        return dg.SkipReason(str(error))
    if landed.ingesting:
        return dg.SkipReason(f"a run of {landed.ingesting[0]} is not finished")
    lacking = set(lacking_days(pipeline, settings)).difference(landed.to_run)
    tick = f"at {context.scheduled_execution_time:%Y-%m-%d %H:%M}"
    # New days come first, so that they need not wait for a day that fails again.
    requests = [requested(days, tick) for days in (landed.to_run, lacking) if days]
    return requests or dg.SkipReason(landed.gap or "every landed day is published")
