"""The automation condition of a definition's tables: when Dagster is to compute days of them."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from functools import reduce
from operator import or_

import dagster as dg

from windows_pipeline.config import Pipeline
from windows_pipeline.query.state import computable_days
from windows_pipeline.settings import Settings
from windows_pipeline.storage.catalog import specs_of
from windows_pipeline.storage.writer_lock import is_writing


class DaysToCompute(dg.AutomationCondition[dg.AssetKey]):
    """True for the ingested days that the windows of a definition lack.

    The pipeline's tables say which days these are, not Dagster's events. A day after a missing day
    is not requested (rule A2). A day that read records of a day which was ingested again is
    requested (rule E4). While a command writes the pipeline's tables, no day is.
    """

    def __init__(self, pipeline: Pipeline, windows_name: str, settings: Settings) -> None:
        """Looks at one definition of a pipeline, in the warehouse of the settings."""
        self._pipeline = pipeline
        self._windows_name = windows_name
        self._tables = specs_of(pipeline, settings.warehouse)
        self._warehouse = settings.warehouse

    @property
    def name(self) -> str:
        """The name in the UI."""
        return "DAYS_TO_COMPUTE"

    @property
    def description(self) -> str:
        """What the UI says of the condition."""
        return "Ingested, not computed, and blocked by no missing day"

    def evaluate(
        self, context: dg.AutomationContext[dg.AssetKey]
    ) -> dg.AutomationResult[dg.AssetKey]:
        """Reads the pipeline's tables, without Spark.

        Raises:
            TableDamagedError: A file of a table is damaged.
            UnreadableTableError: Only Spark can read a table.
        """
        days: set[str] = set()
        if not is_writing(self._pipeline, self._warehouse):
            lacking = computable_days(self._tables, self._windows_name)
            days = {day.isoformat() for day in lacking}
        found = context.candidate_subset.compute_intersection_with_partition_keys(days)
        return dg.AutomationResult(context, found)


def windows_condition(
    pipeline: Pipeline,
    windows_name: str,
    settings: Settings,
    raw_events: dg.AssetKey,
    tables: Iterable[dg.AssetKey],
) -> dg.AutomationCondition[dg.AssetKey] | None:
    """The condition by which Dagster requests days of a definition's tables; None for a stream.

    It is the same for all tables of the definition, so that they are requested together. A day is
    requested once: when it becomes one of `DaysToCompute`, or when another run ingested it again
    and the day is to be computed. A day whose run fails is requested again after that only: what a
    failed run wrote of earlier tables requests nothing.

    Args:
        pipeline: The pipeline.
        windows_name: The definition.
        settings: Where the tables lie.
        raw_events: The table that the definition is computed from.
        tables: The tables of the definition; where the run of one fails for a day, or is in
            progress, none of them is requested for it.
    """
    if not pipeline.source.by_days:
        return None
    condition = dg.AutomationCondition
    to_compute = DaysToCompute(pipeline, windows_name, settings)
    ingested = condition.newly_updated() & ~condition.executed_with_root_target()
    begins = to_compute.newly_true() | condition.asset_matches(raw_events, ingested)
    failed = _any_of(tables, condition.execution_failed())
    computing = _any_of(tables, condition.in_progress())
    ingesting = condition.asset_matches(raw_events, condition.in_progress())
    # A run that is seen at work ends the request, also where the day had failed before.
    handled = condition.newly_requested() | failed.newly_true() | computing
    return begins.since(handled) & to_compute & ~computing & ~ingesting


def _any_of(
    tables: Iterable[dg.AssetKey], holds: dg.AutomationCondition[dg.AssetKey | dg.AssetCheckKey]
) -> dg.AutomationCondition[dg.AssetKey]:
    """True for the days for which a condition holds of at least one of the tables."""
    return reduce(or_, (dg.AutomationCondition.asset_matches(key, holds) for key in tables))


def conditions_sensor(pipeline: Pipeline) -> dg.SensorDefinition:
    """The sensor of a pipeline whose days are ingested whole, which evaluates conditions.

    Several days are requested as a backfill, which is one run.
    """
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
            description=f"Computes the ingested days of {pipeline.name} that have no windows. Not "
            f"needed beside {pipeline.name}_landing or {pipeline.name}_daily.",
        )
