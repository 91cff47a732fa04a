"""Runs a library job as a Dagster step: reports materializations, then their checks."""

# No deferred annotations here: Dagster reads the annotations of the functions that it calls.

from collections.abc import Iterator, Sequence
from datetime import date

import dagster as dg
from pyspark.sql import SparkSession

from windows_pipeline.checks.next_steps import failing_days, once_blocked, run_again
from windows_pipeline.config import Pipeline
from windows_pipeline.dagster.assets.catalogue import table_spec
from windows_pipeline.dagster.assets.checks import RULES, broken, failure_of, rules_spec
from windows_pipeline.dagster.assets.episodes import EpisodeChecks
from windows_pipeline.dagster.assets.event_order import has_days, of_step
from windows_pipeline.dagster.assets.metadata import run_metadata
from windows_pipeline.dagster.assets.result_events import ResultEvents
from windows_pipeline.dagster.faults import fails_plainly
from windows_pipeline.dagster.keys import asset_key
from windows_pipeline.dagster.partitions import arrival_days, days_of
from windows_pipeline.dagster.spark_resource import SparkResource
from windows_pipeline.jobs import (
    AlertsJob,
    Job,
    JobResult,
    check_published,
    published_days,
    run_job,
)
from windows_pipeline.notify import note_failure
from windows_pipeline.sources.bad_files import BadFileError
from windows_pipeline.storage.arrival_units import days_text

StepEvent = dg.MaterializeResult[None] | dg.AssetMaterialization | dg.AssetCheckEvaluation


def step(
    pipeline: Pipeline,
    job: Job,
    deps: Sequence[dg.AssetKey],
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
        others_of_first: Whether the job computes its other tables from its first table as well.
    """
    table, *others = job.tables
    main, partitions = asset_key(table), arrival_days(pipeline)
    check_specs = [rules_spec(main, job.checks)]
    if isinstance(job, AlertsJob):
        check_specs += EpisodeChecks(job.of_pipeline, job.windows_name, job.settings).specs

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
        session, of_op, of_run = spark.spark_session, context.op_execution_context, job.for_run()
        events = ResultEvents(job.of_pipeline, job.settings, session, context.instance)
        days = days_of_run(of_op, job, session)
        if not of_op.selected_asset_keys:
            yield from _checked(of_op, of_run, session, events, days)
            return
        context.log.info(f"{table.name}: {days_text(days)}")
        try:
            result = run_job(of_run, session, days)
        except BadFileError as bad:
            raise _not_ingested(pipeline, bad, days) from None
        found = list(events.of_job(table.name, result, _again(pipeline, days)))
        checked = [one for one in found if isinstance(one, dg.AssetCheckEvaluation)]
        made = [one for one in found if isinstance(one, dg.AssetMaterialization)]
        if not result.published:
            yield from of_step(of_op, checked)
            raise _not_published(pipeline, job, result, days)
        _warn_of_blocked_days(context, result)
        for one in made:
            if one.asset_key == main:
                context.add_asset_metadata(one.metadata, main, partition_key=one.partition)
        yield dg.MaterializeResult(main, metadata=run_metadata(table, result))
        yield from (one for one in made if one.asset_key != main)
        yield from of_step(of_op, checked)
        if wrong := broken((table.name, one) for one in result.checks):
            # The run goes on, as the rows are published; somebody is to know all the same.
            text, warehouse = str(failure_of(wrong).description), job.settings.warehouse
            context.log.error(text)
            what = f"a rule of {table.name} in run {of_op.run_id[:8]}"
            note_failure(pipeline, warehouse, what, text, f"{of_op.run_id} {table.name}")

    of_others = [main, *deps] if others_of_first else deps
    return [run, *(table_spec(pipeline, other, of_others, partitions) for other in others)]


def _checked(
    context: dg.OpExecutionContext,
    job: Job,
    spark: SparkSession,
    events: ResultEvents,
    days: Sequence[date],
) -> Iterator[dg.AssetCheckEvaluation]:
    """The evaluations of a run of checks alone, on the published results.

    Raises:
        dg.Failure: A rule does not hold.
    """
    name, names = job.tables[0].name, {key.name for key in context.selected_asset_check_keys}
    results = check_published(job, spark, days) if RULES in names else []
    found = [*events.of_checks(name, results, days)] if RULES in names else []
    found += events.of_episodes(name, days if has_days(context) else None, names)
    yield from of_step(context, found)
    if wrong := broken((name, one) for one in results):
        raise failure_of(wrong)


def days_of_run(context: dg.OpExecutionContext, job: Job, spark: SparkSession) -> list[date]:
    """The days of a run; all published days for a run without partitions, as of checks alone."""
    return days_of(context.partition_keys) if has_days(context) else published_days(job, spark)


def _not_published(
    pipeline: Pipeline, job: Job, result: JobResult, days: Sequence[date]
) -> dg.Failure:
    failed = [found for found in result.checks if not found.passed and found.check.blocking]
    then = once_blocked(pipeline, _again(pipeline, days), failed)
    first = failing_days(result.checks, days)[0]
    return failure_of(((job.tables[0].name, found) for found in failed), then(first))


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
