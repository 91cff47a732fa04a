"""The job that keeps a pipeline's tables readable, and its schedule."""

# No deferred annotations here: Dagster reads those of the functions it calls.

import dagster as dg

from resources.spark import SparkResource
from windows_pipeline.config import Pipeline
from windows_pipeline.settings import Settings
from windows_pipeline.storage.maintenance import maintain
from windows_pipeline.storage.tables import all_tables


def maintenance_job(pipeline: Pipeline, settings: Settings) -> dg.JobDefinition:
    """The job that joins small files and deletes those that no version needs any more."""

    @dg.op(name=f"{pipeline.name}_maintain", config_schema={})
    def maintain_tables(
        context: dg.OpExecutionContext, spark: dg.ResourceParam[SparkResource]
    ) -> None:
        session = spark.spark_session
        for table in all_tables(pipeline, settings.warehouse):
            done = maintain(session, table) if table.exists(session) else "not there yet"
            context.log.info(f"{table.name}: {done}")

    @dg.job(
        name=f"{pipeline.name}_maintenance",
        description=f"Joins small files of {pipeline.name}'s tables and deletes unused ones.",
    )
    def maintenance() -> None:
        maintain_tables()

    return maintenance


def weekly_schedule(pipeline: Pipeline, job: dg.JobDefinition) -> dg.ScheduleDefinition:
    """Weekly, on Sunday."""
    return dg.ScheduleDefinition(
        name=f"{pipeline.name}_weekly_maintenance",
        job=job,
        cron_schedule="0 4 * * 0",
        execution_timezone="UTC",
    )
