"""Runs a library job as a Dagster step: reports checks first, then materializations."""

# No deferred annotations here: Dagster reads the annotations of the functions that it calls.

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date

import dagster as dg
from pyspark.sql import SparkSession

from windows_pipeline.checks.run import CheckResult
from windows_pipeline.config import Pipeline
from windows_pipeline.dagster.faults import fails_plainly
from windows_pipeline.dagster.metadata import (
    check_event,
    check_metadata,
    day_metadata,
    table_metadata,
)
from windows_pipeline.dagster.partitions import arrival_days, days_of
from windows_pipeline.dagster.spark_resource import SparkResource
from windows_pipeline.jobs import Job, JobResult, check_published, published_days, run_job
from windows_pipeline.storage.arrival_units import days_text
from windows_pipeline.storage.table import Table

StepEvent = dg.MaterializeResult[None] | dg.AssetCheckResult
ExtraMetadata = Callable[[SparkSession, Sequence[date]], Mapping[str, dg.MetadataValue]]


def asset_key(table: Table) -> dg.AssetKey:
    """A table's asset key: the parts of its name."""
    return dg.AssetKey(table.name.split("/"))


def step(
    pipeline: Pipeline,
    job: Job,
    deps: Sequence[dg.AssetKey],
    extra_metadata: ExtraMetadata | None = None,
) -> dg.AssetsDefinition:
    """Makes the assets of a job's tables, with its checks.

    A run writes all tables of the job, whichever of their assets is selected. If only checks are
    selected, they run on the published results, and the run writes nothing.

    Args:
        pipeline: The pipeline.
        job: The job; the checks belong to the asset of its first table.
        deps: The assets of the tables that the job reads.
        extra_metadata: Computes further metadata of the first table.
    """
    main = asset_key(job.tables[0])
    specs = [
        dg.AssetSpec(
            asset_key(table),
            deps=deps,
            group_name=pipeline.name,
            kinds={"pyspark", "delta"},
            description=table.description,
            metadata={"location": table.location},
        )
        for table in job.tables
    ]
    check_specs = [
        dg.AssetCheckSpec(
            check.name, asset=main, description=check.description, blocking=check.blocking
        )
        for check in job.checks
    ]

    @dg.multi_asset(
        name=job.tables[0].name.replace("/", "__"),
        specs=specs,
        check_specs=check_specs,
        partitions_def=arrival_days(pipeline),
        backfill_policy=dg.BackfillPolicy.single_run(),
        can_subset=True,
    )
    @fails_plainly
    def run(
        context: dg.AssetExecutionContext, spark: dg.ResourceParam[SparkResource]
    ) -> Iterator[StepEvent]:
        session = spark.spark_session
        selected = context.op_execution_context.selected_asset_keys
        if not selected:
            results = check_published(job, session, _days(context, job, session))
            yield from _check_results(context, main, results)
            return
        days = _days(context, job, session)
        context.log.info(f"{job.tables[0].name}: {days_text(days)}")
        result = run_job(job, session, days)
        yield from _check_results(context, main, result.checks)
        if not result.published:
            raise _not_published(job, result)
        _warn_of_blocked_days(context, result)
        for table in job.tables:
            key = asset_key(table)
            if key not in selected:
                continue
            for day in days:
                context.add_asset_metadata(
                    day_metadata(table, result, day), key, partition_key=day.isoformat()
                )
            if extra_metadata and key == main:
                # Only for the last day: Dagster stores a copy for each day.
                context.add_asset_metadata(
                    extra_metadata(session, days), key, partition_key=days[-1].isoformat()
                )
            yield dg.MaterializeResult(key, metadata=table_metadata(table, result))

    return run


def _days(context: dg.AssetExecutionContext, job: Job, spark: SparkSession) -> list[date]:
    if context.has_partition_key or context.has_partition_key_range:
        return days_of(context.partition_keys)
    return published_days(job, spark)


def _check_results(
    context: dg.AssetExecutionContext, main: dg.AssetKey, results: Sequence[CheckResult]
) -> Iterator[dg.AssetCheckResult]:
    selected = {key.name for key in context.selected_asset_check_keys}
    for result in results:
        if result.check.name in selected:
            yield check_event(main, result.check, check_metadata(result), passed=result.passed)


def _not_published(job: Job, result: JobResult) -> dg.Failure:
    failed = [
        found.check.name for found in result.checks if not found.passed and found.check.blocking
    ]
    return dg.Failure(
        f"{job.tables[0].name}: {', '.join(failed)} failed, so the run published nothing and the "
        "table is unchanged. Each check's description says what must hold, and its metadata shows "
        "failing rows. Fix their cause and materialize the days again."
    )


def _warn_of_blocked_days(context: dg.AssetExecutionContext, result: JobResult) -> None:
    blocked = [day for day, facts in result.facts.items() if "blocked_by" in facts]
    if blocked:
        missing = result.facts[blocked[0]]["blocked_by"]
        context.log.warning(
            f"blocked by a missing day: {days_text(blocked)}; nothing closes before the raw day "
            f"{missing} is ingested. Materialize raw_events of {missing} (its files may have "
            "landed), then the blocked days again."
        )
