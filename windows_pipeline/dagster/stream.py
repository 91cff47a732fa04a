"""The assets of a pipeline that follows its source as a stream: one step writes all tables."""

# No deferred annotations here: Dagster reads the annotations of the functions that it calls.

from collections.abc import Iterator, Sequence
from datetime import date

import dagster as dg
from pyspark.sql import SparkSession

from windows_pipeline.arrival.log import ArrivalLog, read_log
from windows_pipeline.config import Pipeline
from windows_pipeline.dagster.catalogue import table_spec
from windows_pipeline.dagster.checks import rules_spec, whole_result
from windows_pipeline.dagster.faults import fails_plainly
from windows_pipeline.dagster.keys import asset_key
from windows_pipeline.dagster.metadata import batch_metadata
from windows_pipeline.dagster.spark_resource import SparkResource
from windows_pipeline.jobs import Job, RawEventsJob, check_published
from windows_pipeline.jobs.days.chain import window_jobs
from windows_pipeline.settings import Settings
from windows_pipeline.storage.table import Table
from windows_pipeline.storage.tables import source_tables
from windows_pipeline.streaming import BatchResult, run_stream
from windows_pipeline.text.counts import counted

_CONFIG = {
    "every": dg.Field(
        str,
        is_required=False,
        description="How often to look for new records ('10 seconds'), until the run is "
        "terminated; by default the run ingests the available records, checks them and ends.",
    )
}
StepEvent = dg.MaterializeResult[None] | dg.AssetCheckResult


def stream_assets(pipeline: Pipeline, settings: Settings) -> dg.AssetsDefinition:
    """The assets of every table that the stream writes, with their checks.

    A run ingests the available records in micro-batches. Then it checks the published results of
    the days that it changed, and ends: no check blocks a micro-batch. A run whose config sets
    `every` continues until it is terminated, and reports each micro-batch when it ends.
    """
    jobs = _jobs(pipeline, settings)
    tables = [table for job in jobs for table in job.tables]

    @dg.multi_asset(
        name=f"{pipeline.name}__stream",
        specs=[_spec(pipeline, job, table) for job in jobs for table in job.tables],
        check_specs=[
            rules_spec(asset_key(job.tables[0]), job.checks, blocks=False) for job in jobs
        ],
        config_schema=_CONFIG,
        pool=f"{pipeline.name}_stream",
    )
    @fails_plainly
    def run(
        context: dg.AssetExecutionContext, spark: dg.ResourceParam[SparkResource]
    ) -> Iterator[StepEvent]:
        session = spark.spark_session
        every: str | None = context.op_execution_context.op_config.get("every")
        batches: list[BatchResult] = []

        def report(result: BatchResult) -> None:
            context.log.info(
                f"micro-batch {result.batch}: {counted(result.accepted, 'record')} accepted, "
                f"{result.rejected} rejected; {counted(result.passed_over, 'file')} skipped"
            )
            if every is None:
                batches.append(result)
            else:
                raw_events = asset_key(tables[0])
                context.log_event(
                    dg.AssetMaterialization(raw_events, metadata=batch_metadata([result]))
                )

        run_stream(session, pipeline, settings, every=every, on_batch=report)
        for table in tables:
            yield dg.MaterializeResult(
                asset_key(table), metadata=_metadata(table, batches, session)
            )
        arrival_log = source_tables(pipeline, settings.warehouse).arrival_log
        days = _days_to_check(batches, read_log(session, arrival_log))
        for job in jobs:
            yield _checked(job, session, days)

    return run


def _jobs(pipeline: Pipeline, settings: Settings) -> list[Job]:
    jobs: list[Job] = [RawEventsJob(pipeline, settings)]
    for name in pipeline.windows:
        jobs += window_jobs(pipeline, name, settings)
    return jobs


def _spec(pipeline: Pipeline, job: Job, table: Table) -> dg.AssetSpec:
    written = {output.name for output in job.tables}
    deps = [asset_key(source) for source in job.inputs if source.name not in written]
    return table_spec(pipeline, table, deps)


def _metadata(
    table: Table, batches: list[BatchResult], spark: SparkSession
) -> dict[str, dg.MetadataValue]:
    metadata = {
        "dagster/row_count": dg.MetadataValue.int(table.count(spark)),
        "delta_version": dg.MetadataValue.int(table.version(spark)),
    }
    return metadata | batch_metadata(batches)


def _checked(job: Job, spark: SparkSession, days: Sequence[date]) -> dg.AssetCheckResult:
    """The result of a table's rules on days; Dagster requires one even for no days."""
    results = check_published(job, spark, days) if days else []
    return whole_result(asset_key(job.tables[0]), results, days)


def _days_to_check(batches: Sequence[BatchResult], log: ArrivalLog) -> list[date]:
    """The days that the micro-batches changed; if there are none, the newest day."""
    changed = {day for batch in batches for day in batch.units}
    return sorted(changed) or sorted({row.arrival_unit for row in log})[-1:]
