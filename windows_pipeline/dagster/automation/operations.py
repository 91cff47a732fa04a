"""Jobs that rebuild and check a pipeline's tables, as the commands of these names do."""

# No deferred annotations here: Dagster reads the annotations of the functions that it calls.

from collections.abc import Iterator
from typing import Any

import dagster as dg
from pyspark.sql import SparkSession

from windows_pipeline.config import Pipeline
from windows_pipeline.dagster.assets.event_order import Event, in_order
from windows_pipeline.dagster.assets.result_events import ResultEvents
from windows_pipeline.dagster.faults import fails_plainly
from windows_pipeline.dagster.run_config import fields_of
from windows_pipeline.dagster.spark_resource import SparkResource
from windows_pipeline.jobs import check_published, published_days
from windows_pipeline.jobs.days.chain import STEPS, all_jobs, rebuild
from windows_pipeline.settings import Settings
from windows_pipeline.storage.writer_lock import writing

_REBUILD: dict[str, Any] = {
    "from": dg.Field(
        dg.Enum("Step", [dg.EnumValue(step) for step in STEPS]),
        is_required=False,
        description="Rebuild from this table on, changed or not; by default the tables that "
        "follow an old definition, and what depends on them.",
    )
}


def rebuild_job(pipeline: Pipeline, settings: Settings) -> dg.JobDefinition:
    """The job that recomputes the tables that follow an old definition."""
    op = f"{pipeline.name}_rebuild_tables"

    @dg.op(name=op, config_schema=_REBUILD, out={}, pool=pipeline.name)
    @fails_plainly
    def rebuild_tables(
        context: dg.OpExecutionContext, spark: dg.ResourceParam[SparkResource]
    ) -> Iterator[Event]:
        with writing(pipeline, settings.warehouse):
            yield from _rebuilt(context, spark.spark_session, pipeline, settings)

    @dg.job(
        name=f"{pipeline.name}_rebuild",
        description=f"Recomputes the tables of {pipeline.name} that follow an old definition.",
        config=fields_of(op, _REBUILD),
    )
    def rebuilding() -> None:
        rebuild_tables()

    return rebuilding


def _rebuilt(
    context: dg.OpExecutionContext, session: SparkSession, pipeline: Pipeline, settings: Settings
) -> Iterator[Event]:
    events = ResultEvents(pipeline, settings, session, context.instance)
    step: str | None = context.op_config.get("from")
    names = []
    for name, result in rebuild(session, pipeline, settings, step, context.log.info):
        names.append(name)
        yield from in_order(context.instance, events.of_job(name, result))
        if not result.published:
            raise dg.Failure(
                f"{name}: a blocking check failed, so the table is not published. The check "
                "`rules` of its asset shows failing rows. Fix their cause, then run the job "
                f"{pipeline.name}_rebuild again, or: windows-pipeline rebuild {pipeline.name}"
            )
    rebuilt = ", ".join(names) or "every table follows the definition; nothing to do"
    context.log.info(f"{pipeline.name}: {rebuilt}")


def check_job(pipeline: Pipeline, settings: Settings) -> dg.JobDefinition:
    """The job that checks all published days, and recounts their values by other code."""

    @dg.op(name=f"{pipeline.name}_check_tables", config_schema={}, out={}, pool=pipeline.name)
    @fails_plainly
    def check_tables(
        context: dg.OpExecutionContext, spark: dg.ResourceParam[SparkResource]
    ) -> Iterator[Event]:
        session = spark.spark_session
        events = ResultEvents(pipeline, settings, session, context.instance)
        failed = []
        for job in all_jobs(pipeline, settings):
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
            wrong = [found for found in results if not found.passed and not found.check.is_warning]
            failed += [f"{name} {found.check.name}" for found in wrong]
            context.log.info(f"{name}: {len(results)} rules, {len(wrong)} fail")
        if failed:
            raise dg.Failure(
                f"{pipeline.name}: these rules do not hold: {', '.join(failed)}. The check `rules` "
                "of each asset shows failing rows of each day."
            )

    @dg.job(
        name=f"{pipeline.name}_check",
        description=f"Checks all published days of {pipeline.name}; recounts their values.",
    )
    def checking() -> None:
        check_tables()

    return checking
