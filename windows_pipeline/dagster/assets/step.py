"""Runs a library job as a Dagster step: reports materializations, then their checks."""

# No deferred annotations here: Dagster reads the annotations of the functions that it calls.

from collections.abc import Iterator, Mapping, Sequence
from datetime import date

import dagster as dg
from pyspark.sql import SparkSession

from windows_pipeline.checks.next_steps import failing_days, once_blocked, once_published, run_again
from windows_pipeline.config import Pipeline
from windows_pipeline.dagster.assets.catalogue import column_lineage, table_spec
from windows_pipeline.dagster.assets.checks import RULES, rules_evaluations, rules_spec
from windows_pipeline.dagster.assets.day_materializations import (
    days_with_rows,
    materializations,
)
from windows_pipeline.dagster.assets.episodes import EpisodeChecks
from windows_pipeline.dagster.assets.event_order import has_days, of_step
from windows_pipeline.dagster.assets.metadata import (
    ExtraMetadata,
    Metadata,
    day_metadata,
    main_metadata,
    run_metadata,
)
from windows_pipeline.dagster.faults import fails_plainly
from windows_pipeline.dagster.keys import asset_key
from windows_pipeline.dagster.partitions import arrival_days, days_of
from windows_pipeline.dagster.spark_resource import SparkResource
from windows_pipeline.jobs import Job, JobResult, check_published, published_days, run_job
from windows_pipeline.sources.bad_files import BadFileError
from windows_pipeline.storage.arrival_units import days_text
from windows_pipeline.storage.table import Table

StepEvent = dg.MaterializeResult[None] | dg.AssetMaterialization | dg.AssetCheckEvaluation


def step(
    pipeline: Pipeline,
    job: Job,
    deps: Sequence[dg.AssetKey],
    extra_metadata: ExtraMetadata | None = None,
    episode_checks: EpisodeChecks | None = None,
    *,
    others_of_first: bool = False,
) -> list[dg.AssetsDefinition | dg.AssetSpec]:
    """Makes the asset of a job's first table, with its checks, and the assets of its other tables.

    A run writes all tables of the job, and evaluates all checks. The other tables are assets that
    no run selects: the step reports their days that have rows. If only checks are selected, they
    run on the published results, and the run writes nothing.

    Args:
        pipeline: The pipeline.
        job: The job; the checks belong to the asset of its first table.
        deps: The assets of the tables that the job reads.
        extra_metadata: Computes further metadata of the first table's days.
        episode_checks: The checks of alert rules, if the first table is that of alerts.
        others_of_first: Whether the job computes its other tables from its first table as well.
    """
    table, *others = job.tables
    main, partitions, warehouse = asset_key(table), arrival_days(pipeline), job.settings.warehouse
    check_specs = [
        rules_spec(main, job.checks),
        *([] if episode_checks is None else episode_checks.specs),
    ]

    @dg.multi_asset(
        name=table.name.replace("/", "__"),
        specs=[table_spec(pipeline, table, deps)],
        check_specs=check_specs,
        partitions_def=partitions,
        backfill_policy=dg.BackfillPolicy.single_run(),
        can_subset=True,
        pool=pipeline.name,
    )
    @fails_plainly
    def run(
        context: dg.AssetExecutionContext, spark: dg.ResourceParam[SparkResource]
    ) -> Iterator[StepEvent]:
        session, of_op = spark.spark_session, context.op_execution_context
        days = days_of_run(of_op, job, session)
        if not of_op.selected_asset_keys:
            names = {key.name for key in context.selected_asset_check_keys}
            checked: list[dg.AssetCheckEvaluation] = []
            if RULES in names:
                found = check_published(job, session, days)
                checked += rules_evaluations(main, found, days, once_published(pipeline))
            if episode_checks is not None:
                days = days if has_days(of_op) else episode_checks.all_days(session)
                checked += episode_checks.evaluations(session, days, names)
            yield from of_step(of_op, checked)
            return
        context.log.info(f"{table.name}: {days_text(days)}")
        try:
            result = run_job(job, session, days)
        except BadFileError as bad:
            raise _not_ingested(pipeline, bad, days) from None
        then = (
            once_published(pipeline)
            if result.published
            else once_blocked(pipeline, _again(pipeline, days), result.checks)
        )
        checked = [*rules_evaluations(main, result.checks, days, then)]
        if not result.published:
            yield from of_step(of_op, checked)
            raise _not_published(pipeline, job, result, days)
        if episode_checks is not None:
            checked += episode_checks.evaluations(session, days)
        _warn_of_blocked_days(context, result)
        extra = {} if extra_metadata is None else extra_metadata(session, days)
        lineage = column_lineage(pipeline, table, warehouse)
        extra = {**extra, days[-1]: {**lineage, **extra.get(days[-1], {})}}
        yield _materialized(context, table, result, extra)
        for other in others:
            of_days = days_with_rows(context.instance, other, result)
            yield from materializations(pipeline, warehouse, other, result, of_days)
        yield from of_step(of_op, checked)

    of_others = [main, *deps] if others_of_first else deps
    return [run, *(table_spec(pipeline, other, of_others, partitions) for other in others)]


def _materialized(
    context: dg.AssetExecutionContext,
    table: Table,
    result: JobResult,
    extra: Mapping[date, Metadata],
) -> dg.MaterializeResult[None]:
    key = asset_key(table)
    for day in result.days:
        metadata = {
            **extra.get(day, {}),
            **main_metadata(table, result, day),
            **day_metadata(table, result, day),
        }
        context.add_asset_metadata(metadata, key, partition_key=day.isoformat())
    return dg.MaterializeResult(key, metadata=run_metadata(table, result))


def days_of_run(context: dg.OpExecutionContext, job: Job, spark: SparkSession) -> list[date]:
    """The days of a run; all published days for a run without partitions, as of checks alone."""
    return days_of(context.partition_keys) if has_days(context) else published_days(job, spark)


def _not_published(
    pipeline: Pipeline, job: Job, result: JobResult, days: Sequence[date]
) -> dg.Failure:
    failed = [found for found in result.checks if not found.passed and found.check.blocking]
    names = ", ".join(found.check.name for found in failed)
    wrong = failing_days(result.checks, days)
    then = once_blocked(pipeline, _again(pipeline, days), failed)
    rules = "; ".join(f"{found.check.name}: {found.check.description}" for found in failed)
    return dg.Failure(
        f"{job.tables[0].name}: {names} failed on {days_text(wrong)}. What must hold: {rules}. The "
        f"check `rules` of each day shows failing rows. {then(wrong[0])}"
    )


def _not_ingested(pipeline: Pipeline, bad: BadFileError, days: Sequence[date]) -> dg.Failure:
    return dg.Failure(
        f"{bad}. The run ingested none of its days, {days_text(days)}, as a file of "
        f"{days_text(sorted(bad.days))} is bad. Fix or remove each file, then "
        f"{_again(pipeline, days)}"
    )


def _again(pipeline: Pipeline, days: Sequence[date]) -> str:
    again = f"materialize the days again (job {pipeline.name}_all)"
    return f"{again}, or: {run_again(pipeline, days)}" if pipeline.source.by_days else again


def _warn_of_blocked_days(context: dg.AssetExecutionContext, result: JobResult) -> None:
    blocked = [day for day, facts in result.facts.items() if "blocked_by" in facts]
    if blocked:
        missing = result.facts[blocked[0]]["blocked_by"]
        context.log.warning(
            f"blocked by a missing day: {days_text(blocked)}; nothing closes before the raw day "
            f"{missing} is ingested. Materialize raw_events of {missing} (its files may have "
            "landed), then the blocked days again."
        )
