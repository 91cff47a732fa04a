"""The job that keeps a pipeline's tables readable, and its schedule."""

# No deferred annotations here: Dagster reads the annotations of the functions that it calls.

import dagster as dg

from windows_pipeline.config import Pipeline
from windows_pipeline.dagster.faults import fails_plainly
from windows_pipeline.dagster.spark_resource import SparkResource
from windows_pipeline.settings import Settings
from windows_pipeline.storage.maintenance import maintain
from windows_pipeline.storage.tables import all_tables


def maintenance_job(pipeline: Pipeline, settings: Settings) -> dg.JobDefinition:
    """The job that merges small files, and deletes files that no retained version needs."""

    @dg.op(name=f"{pipeline.name}_maintain", config_schema={}, pool=pipeline.name)
    @fails_plainly
    def maintain_tables(
        context: dg.OpExecutionContext, spark: dg.ResourceParam[SparkResource]
    ) -> None:
        session = spark.spark_session
        for table in all_tables(pipeline, settings.warehouse):
            report = maintain(session, table) if table.exists(session) else "does not exist yet"
            context.log.info(f"{table.name}: {report}")

    @dg.job(
        name=f"{pipeline.name}_maintenance",
        description=f"Merges small files of {pipeline.name}'s tables and deletes unused files.",
    )
    def maintenance() -> None:
        maintain_tables()

    return maintenance


def weekly_schedule(pipeline: Pipeline) -> dg.ScheduleDefinition:
    """The schedule that maintains a pipeline's tables each Sunday."""
    return dg.ScheduleDefinition(
        name=f"{pipeline.name}_weekly_maintenance",
        job_name=f"{pipeline.name}_maintenance",
        cron_schedule="0 4 * * 0",
        execution_timezone="UTC",
    )
