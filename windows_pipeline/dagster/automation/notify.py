"""The sensor that notifies people of a pipeline's alerts, and the job that it starts."""

# No deferred annotations here: Dagster reads the annotations of the functions that it calls.

import json
import time

import dagster as dg

from windows_pipeline.config import Pipeline
from windows_pipeline.dagster.faults import fails_plainly
from windows_pipeline.dagster.one_step_job import fields_of
from windows_pipeline.notify import BusyError, WrongTargetsError, deliver, what_is_due
from windows_pipeline.settings import Settings
from windows_pipeline.text.counts import counted

_LEAST_SECONDS = 60
"""The least time between two looks."""
_RETRY_SECONDS = 600
"""The least time between two tries of what waits, as after a message that was not taken."""
_CONFIG = {
    "all": dg.Field(
        bool,
        default_value=False,
        description="Whether also events are sent that are older than a target's max_age.",
    ),
    "again": dg.Field(
        bool,
        default_value=False,
        description="Whether also events are sent that were set aside, as a target refused them.",
    ),
}


def notify_job(pipeline: Pipeline, settings: Settings) -> dg.JobDefinition:
    """The job that does what `windows-pipeline notify` does; it needs no Spark."""
    op, job_name = f"{pipeline.name}_send", f"{pipeline.name}_notify"

    @dg.op(name=op, config_schema=_CONFIG)
    @fails_plainly
    def send(context: dg.OpExecutionContext) -> None:
        every, again = context.op_config["all"], context.op_config["again"]
        wrong: ValueError | None = None
        try:
            sent = deliver(pipeline, settings, every=every, again=again)
        except WrongTargetsError as error:
            sent, wrong = error.sent, error
        for one in sent:
            for message in one.messages:
                context.log.info(f"{one.target}: {message}")
            for message in one.refused:
                context.log.warning(f"{one.target} set aside: {message}")
            context.log.info(
                f"{one.target}: {counted(len(one.messages), 'message')} of "
                f"{counted(one.events, 'event')}; {one.old} too old; {one.set_aside} set aside; "
                f"{one.waiting} wait{one.reason and f': {one.reason}'}"
            )
        if wrong is not None:
            raise wrong
        problems = [
            f"{one.target}: {one.reason}. The events wait; the next run of {job_name} sends them"
            for one in sent
            if one.failed
        ] + [
            f"{one.target} refused the content of {message}. It is set aside; a run of {job_name} "
            "with again: true sends it again"
            for one in sent
            for message in one.refused
        ]
        if problems:
            raise dg.Failure(
                f"{pipeline.name}: a message must be taken, and was not: {'; '.join(problems)}"
            )

    @dg.job(
        name=job_name,
        description=f"Sends the targets of {pipeline.name} what happened to episodes of alerts.",
        config=fields_of(op, _CONFIG),
    )
    def notify() -> None:
        send()

    return notify


def notify_sensor(pipeline: Pipeline, settings: Settings) -> dg.SensorDefinition:
    """The sensor of a pipeline's targets.

    A tick only looks for new versions of notifications and for events that wait. It starts a run if
    there are any, as a message may take longer than a tick.
    """
    job = notify_job(pipeline, settings)

    @dg.sensor(
        name=f"{pipeline.name}_notify",
        job=job,
        minimum_interval_seconds=_LEAST_SECONDS,
        description=f"Sends new alerts of {pipeline.name} to its targets. Switch it on; without it "
        "nobody is notified.",
    )
    def new_events(context: dg.SensorEvaluationContext) -> dg.SensorResult | dg.SkipReason:
        newest = context.instance.get_run_records(dg.RunsFilter(job_name=job.name), limit=1)
        if newest and not newest[0].dagster_run.is_finished:
            return dg.SkipReason(f"run {newest[0].dagster_run.run_id} is not finished")
        try:
            due = what_is_due(pipeline, settings)
        except BusyError as error:
            return dg.SkipReason(str(error))
        cursor = json.dumps(due.versions, sort_keys=True)
        if due.versions and cursor != context.cursor:
            return dg.SensorResult(run_requests=[dg.RunRequest()], cursor=cursor)
        ended = newest[0].end_time if newest else None
        if not due.waits:
            return dg.SkipReason("nothing happened to an episode of alerts since the last run")
        if ended is not None and time.time() - ended < _RETRY_SECONDS:
            return dg.SkipReason(f"events wait; the last try was less than {_RETRY_SECONDS} s ago")
        return dg.SensorResult(run_requests=[dg.RunRequest()], cursor=cursor)

    return new_events
