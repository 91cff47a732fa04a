"""The sensor that evaluates the automation conditions of a pipeline's tables."""

from __future__ import annotations

import warnings

import dagster as dg

from windows_pipeline.config import Pipeline


def automation_sensor(pipeline: Pipeline) -> dg.AutomationConditionSensorDefinition | None:
    """The sensor of a pipeline whose days are ingested whole; None for a stream.

    Several days are requested as a backfill, which is one run.
    """
    if not pipeline.source.by_days:
        return None
    enabled = dg.DefaultSensorStatus.RUNNING, dg.DefaultSensorStatus.STOPPED
    declared = pipeline.schedule.automation
    with warnings.catch_warnings():
        # The dependency is bounded, so that a change of what is beta comes with an upgrade.
        warnings.simplefilter("ignore", dg.BetaWarning)
        return dg.AutomationConditionSensorDefinition(
            f"{pipeline.name}_automation",
            target=dg.AssetSelection.groups(pipeline.name).without_checks(),
            use_user_code_server=True,  # Dagster's daemon does not know `DaysToCompute`
            default_status=enabled[0 if declared.enabled else 1],
            description=f"Computes the ingested days of {pipeline.name} that have no windows.",
        )
