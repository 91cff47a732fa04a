"""What is at work on a pipeline, so that no second run is started beside it."""

from __future__ import annotations

import dagster as dg

from windows_pipeline.config import Pipeline
from windows_pipeline.dagster.assets.command_run import fail_killed
from windows_pipeline.settings import Settings
from windows_pipeline.storage.writer_lock import is_writing

_OPEN = [
    status
    for status in dg.DagsterRunStatus
    if status
    not in (dg.DagsterRunStatus.SUCCESS, dg.DagsterRunStatus.FAILURE, dg.DagsterRunStatus.CANCELED)
]


def at_work(
    instance: dg.DagsterInstance, pipeline: Pipeline, settings: Settings, job: str
) -> str | None:
    """A sentence on what is at work: an open run of the job, or a command; None if nothing is.

    A run is open if it is queued or has not ended. That of a command that was killed ends here.
    """
    fail_killed(instance, pipeline.name)
    found = instance.get_run_records(dg.RunsFilter(job_name=job, statuses=_OPEN), limit=1)
    if found:
        return f"run {found[0].dagster_run.run_id} is not finished"
    if is_writing(pipeline, settings.warehouse):
        return f"a command or a job that changes tables of {pipeline.name} is not finished"
    return None
