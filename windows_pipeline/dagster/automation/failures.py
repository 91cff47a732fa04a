"""The sensor that records failed runs of pipelines, so that targets are notified of them."""

# No deferred annotations here: Dagster reads the annotations of the functions that it calls.

from collections.abc import Iterable

import dagster as dg

from windows_pipeline.config import Pipeline
from windows_pipeline.dagster.keys import asset_key
from windows_pipeline.notify import FAILED, note_failure, notifies_of
from windows_pipeline.settings import Settings
from windows_pipeline.storage.tables import tables_of

_WILL_RETRY = "dagster/will_retry"
"""The tag of a failed run, such as one whose process was killed, that Dagster runs again."""


def failure_sensor(pipelines: Iterable[Pipeline], settings: Settings) -> dg.SensorDefinition | None:
    """The sensor of all pipelines with targets for failed runs; None if there is no such pipeline.

    A run belongs to a pipeline NAME if its job's name begins with `NAME_`, or if the run
    materializes tables of the pipeline. The sensor `NAME_notify` then starts the run that notifies.
    """
    every = list(pipelines)
    notifying = [pipeline for pipeline in every if notifies_of(pipeline, FAILED)]
    if not notifying:
        return None
    tables = {
        pipeline.name: {
            asset_key(table) for table in tables_of(pipeline, settings.warehouse).written
        }
        for pipeline in notifying
    }

    @dg.run_failure_sensor(
        name="failed_runs",
        description="Notes failed runs; the sensors NAME_notify send them. "
        "Switch it on beside these.",
    )
    def failed_runs(context: dg.RunFailureSensorContext) -> dg.SkipReason:
        run = context.dagster_run
        stored = context.instance.get_run_by_id(run.run_id)
        if stored is not None and stored.tags.get(_WILL_RETRY, "").lower() == "true":
            return dg.SkipReason(f"Dagster runs {run.run_id} again; a failure of that run is noted")
        noted = []
        # One pipeline's name may begin with another's.
        named = (one.name for one in every if run.job_name.startswith(f"{one.name}_"))
        owner = max(named, key=len, default=None)
        for pipeline in notifying:
            selected = run.asset_selection or frozenset()
            is_of = owner == pipeline.name or bool(selected & tables[pipeline.name])
            # A failed job that notifies would start itself without end.
            if is_of and run.job_name != f"{pipeline.name}_notify":
                # If the UI starts a run of assets, Dagster generates the job's name.
                job = "assets" if run.job_name.startswith("__") else run.job_name
                what = f"run {run.run_id[:8]} of {job}"
                note_failure(pipeline, settings.warehouse, what, _text(context), run.run_id)
                noted.append(pipeline.name)
        return dg.SkipReason(
            f"noted; to be delivered by {', '.join(f'{name}_notify' for name in noted)}"
            if noted
            else "the run is of no pipeline that notifies somebody of failed runs"
        )

    return failed_runs


def _text(context: dg.RunFailureSensorContext) -> str:
    """The error of the first failed step; the run's own text if no step failed."""
    for event in context.get_step_failure_events():
        failure = event.step_failure_data
        if failure.user_failure_data is not None and failure.user_failure_data.description:
            return failure.user_failure_data.description
        if failure.error is not None:
            cause = failure.error.cause or failure.error
            return " ".join(cause.message.split())
    text = context.failure_event.message or "the run failed"
    return f"{text.rstrip('.')}. No step of it failed, so its process may have been killed."
