"""Runs of a job that are not finished, beside which none is started."""

from __future__ import annotations

import dagster as dg

_OPEN = [
    status
    for status in dg.DagsterRunStatus
    if status
    not in (dg.DagsterRunStatus.SUCCESS, dg.DagsterRunStatus.FAILURE, dg.DagsterRunStatus.CANCELED)
]


def open_run(instance: dg.DagsterInstance, job: str) -> str | None:
    """The id of a run of a job that is queued or has not ended; None if there is none."""
    found = instance.get_run_records(dg.RunsFilter(job_name=job, statuses=_OPEN), limit=1)
    return found[0].dagster_run.run_id if found else None
