"""Jobs that rebuild, check and maintain a pipeline's tables, as the commands of these names do."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import dagster as dg

from windows_pipeline.config import Pipeline
from windows_pipeline.dagster.assets.checks import OfTable, broken, failure_of
from windows_pipeline.dagster.assets.event_order import Event, in_order
from windows_pipeline.dagster.assets.result_events import ResultEvents
from windows_pipeline.dagster.one_step_job import one_step_job
from windows_pipeline.dagster.spark_resource import SparkResource
from windows_pipeline.jobs import check_published, published_days
from windows_pipeline.jobs.days.chain import all_jobs, rebuild
from windows_pipeline.settings import Settings
from windows_pipeline.steps import Step
from windows_pipeline.storage.maintenance import maintain
from windows_pipeline.storage.tables import tables_of
from windows_pipeline.storage.writer_lock import writing

_REBUILD: dict[str, Any] = {
    "from": dg.Field(
        dg.Enum("Step", [dg.EnumValue(step.value) for step in Step]),
        is_required=False,
        description="Rebuild from this table on, changed or not; by default the tables that "
        "follow an old definition, and what depends on them.",
    )
}


def rebuild_job(pipeline: Pipeline, settings: Settings) -> dg.JobDefinition:
    """The job that recomputes the tables that follow an old definition."""

    def rebuild_tables(context: dg.OpExecutionContext, spark: SparkResource) -> Iterator[Event]:
        session, step = spark.spark_session, context.op_config.get("from")
        tables = tables_of(pipeline, settings.warehouse)
        events = ResultEvents(tables, settings, session, context.instance)
        names = []
        with writing(pipeline, settings.warehouse):
            for name, result in rebuild(session, tables, settings, step, context.log.info):
                names.append(name)
                yield from in_order(context.instance, events.of_job(name, result))
                if not result.published:
                    raise failure_of(
                        broken((name, one) for one in result.checks),
                        "So the table is not published. Fix the cause, then run the job "
                        f"{pipeline.name}_rebuild again, or: windows-pipeline rebuild "
                        f"{pipeline.name}",
                    )
        rebuilt = ", ".join(names) or "every table follows the definition; nothing to do"
        context.log.info(f"{pipeline.name}: {rebuilt}")

    return one_step_job(
        f"{pipeline.name}_rebuild",
        f"Recomputes the tables of {pipeline.name} that follow an old definition.",
        f"{pipeline.name}_rebuild_tables",
        rebuild_tables,
        pipeline.name,
        _REBUILD,
    )


def check_job(pipeline: Pipeline, settings: Settings) -> dg.JobDefinition:
    """The job that checks all published days, and recounts their values by other code."""

    def check_tables(context: dg.OpExecutionContext, spark: SparkResource) -> Iterator[Event]:
        session, tables = spark.spark_session, tables_of(pipeline, settings.warehouse)
        events = ResultEvents(tables, settings, session, context.instance)
        failed: list[OfTable] = []
        for job in all_jobs(tables, settings):
            name = job.tables[0].name
            if not all(table.exists(session) for table in job.tables):
                context.log.info(f"{name}: the table does not exist yet")
                continue
            arrived = {row.arrival_unit for row in job.arrived(session)}
            days = sorted(arrived.union(published_days(job, session)))
            if not days:
                continue
            results = check_published(job, session, days, recount=True)
            evaluations = [*events.of_checks(name, results, days), *events.of_episodes(name)]
            yield from in_order(context.instance, evaluations)
            wrong = broken((name, one) for one in results)
            failed += wrong
            context.log.info(f"{name}: {len(results)} rules, {len(wrong)} fail")
        if failed:
            raise failure_of(failed)

    return one_step_job(
        f"{pipeline.name}_check",
        f"Checks all published days of {pipeline.name}; recounts their values.",
        f"{pipeline.name}_check_tables",
        check_tables,
        pipeline.name,
    )


def maintenance_job(pipeline: Pipeline, settings: Settings) -> dg.JobDefinition:
    """The job that merges small files, and deletes files that no retained version needs."""

    def maintain_tables(context: dg.OpExecutionContext, spark: SparkResource) -> Iterator[Event]:
        session = spark.spark_session
        for table in tables_of(pipeline, settings.warehouse).written:
            report = maintain(session, table) if table.exists(session) else "does not exist yet"
            context.log.info(f"{table.name}: {report}")
        yield from ()

    return one_step_job(
        f"{pipeline.name}_maintenance",
        f"Merges small files of {pipeline.name}'s tables and deletes unused files.",
        f"{pipeline.name}_maintain",
        maintain_tables,
        pipeline.name,
    )


def weekly_schedule(pipeline: Pipeline) -> dg.ScheduleDefinition:
    """The schedule that maintains a pipeline's tables each Sunday."""
    return dg.ScheduleDefinition(
        name=f"{pipeline.name}_weekly_maintenance",
        job_name=f"{pipeline.name}_maintenance",
        cron_schedule="0 4 * * 0",
        execution_timezone="UTC",
        description=f"Merges small files of {pipeline.name}'s tables and deletes unused files on "
        "Sundays. Switch it on once days come regularly.",
    )
