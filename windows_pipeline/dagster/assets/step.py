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
from windows_pipeline.dagster.assets.episodes import EpisodeChecks
from windows_pipeline.dagster.assets.event_order import with_targets
from windows_pipeline.dagster.assets.metadata import (
    ExtraMetadata,
    Metadata,
    day_metadata,
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

StepEvent = dg.MaterializeResult[None] | dg.AssetCheckEvaluation


def step(
    pipeline: Pipeline,
    job: Job,
    deps: Sequence[dg.AssetKey],
    extra_metadata: ExtraMetadata | None = None,
    episode_checks: EpisodeChecks | None = None,
    *,
    others_of_first: bool = False,
) -> dg.AssetsDefinition:
    """Makes the assets of a job's tables, with its checks.

    A run writes all tables of the job, whichever of their assets is selected. If only checks are
    selected, they run on the published results, and the run writes nothing. Checks are evaluated
    for each day.

    Args:
        pipeline: The pipeline.
        job: The job; the checks belong to the asset of its first table.
        deps: The assets of the tables that the job reads.
        extra_metadata: Computes further metadata of the first table's days.
        episode_checks: The checks of alert rules, if the first table is that of alerts.
        others_of_first: Whether the job computes its other tables from its first table as well.
    """
    main = asset_key(job.tables[0])
    specs = [
        table_spec(pipeline, table, [main, *deps] if number and others_of_first else deps)
        for number, table in enumerate(job.tables)
    ]
    check_specs = [
        rules_spec(main, job.checks, arrival_days(pipeline)),
        *([] if episode_checks is None else episode_checks.specs),
    ]

    @dg.multi_asset(
        name=job.tables[0].name.replace("/", "__"),
        specs=specs,
        check_specs=check_specs,
        partitions_def=arrival_days(pipeline),
        backfill_policy=dg.BackfillPolicy.single_run(),
        can_subset=True,
        pool=pipeline.name,
    )
    @fails_plainly
    def run(
        context: dg.AssetExecutionContext, spark: dg.ResourceParam[SparkResource]
    ) -> Iterator[StepEvent]:
        session = spark.spark_session
        selected = context.op_execution_context.selected_asset_keys
        days = days_of_run(context.op_execution_context, job, session)
        if not selected:
            found = check_published(job, session, days) if RULES in _checked(context) else None
            then = once_published(pipeline)
            checked = [] if found is None else [*rules_evaluations(main, found, days, then)]
            if episode_checks is not None and not _has_days(context.op_execution_context):
                days = episode_checks.all_days(session)
            checked += _episodes(context, episode_checks, session, days)
            yield from with_targets(context.instance, checked)
            return
        context.log.info(f"{job.tables[0].name}: {days_text(days)}")
        try:
            result = run_job(job, session, days)
        except BadFileError as bad:
            raise _not_ingested(pipeline, bad, days) from None
        checked = []
        if RULES in _checked(context):
            again = _again(pipeline, days)
            then = (
                once_published(pipeline)
                if result.published
                else once_blocked(pipeline, again, result.checks)
            )
            checked += rules_evaluations(main, result.checks, days, then)
        if not result.published:
            yield from with_targets(context.instance, checked)
            raise _not_published(pipeline, job, result, days)
        checked += _episodes(context, episode_checks, session, days)
        _warn_of_blocked_days(context, result)
        for table in job.tables:
            if asset_key(table) in selected:
                extra: dict[date, Metadata] = {}
                if extra_metadata is not None and asset_key(table) == main:
                    extra |= extra_metadata(session, days)
                lineage = column_lineage(pipeline, table, job.settings.warehouse)
                extra[days[-1]] = {**lineage, **extra.get(days[-1], {})}
                yield _materialized(context, table, result, days, extra)
        yield from with_targets(context.instance, checked)

    return run


def _materialized(
    context: dg.AssetExecutionContext,
    table: Table,
    result: JobResult,
    days: Sequence[date],
    extra: Mapping[date, Metadata],
) -> dg.MaterializeResult[None]:
    key = asset_key(table)
    for day in days:
        metadata = {**extra.get(day, {}), **day_metadata(table, result, day)}
        context.add_asset_metadata(metadata, key, partition_key=day.isoformat())
    return dg.MaterializeResult(key, metadata=run_metadata(table, result))


def _checked(context: dg.AssetExecutionContext) -> set[str]:
    """The names of the checks that the run evaluates."""
    return {key.name for key in context.selected_asset_check_keys}


def _episodes(
    context: dg.AssetExecutionContext,
    checks: EpisodeChecks | None,
    spark: SparkSession,
    days: Sequence[date],
) -> Iterator[dg.AssetCheckEvaluation]:
    if checks is not None:
        yield from checks.evaluations(spark, days, _checked(context))


def days_of_run(context: dg.OpExecutionContext, job: Job, spark: SparkSession) -> list[date]:
    """The days of a run; all published days for a run without partitions, as of checks alone."""
    return days_of(context.partition_keys) if _has_days(context) else published_days(job, spark)


def _has_days(context: dg.OpExecutionContext) -> bool:
    return context.has_partition_key or context.has_partition_key_range


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
