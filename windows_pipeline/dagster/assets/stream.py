"""The job that follows a pipeline's source as a stream, and the assets that it fills.

The job reports what it wrote by day. The assets of windows have steps, too, which compute days
again from raw_events; those of the source's tables have none, as only the stream can fill them.
"""

# No deferred annotations here: Dagster reads the annotations of the functions that it calls.

from collections.abc import Callable, Iterator, Sequence
from datetime import date

import dagster as dg
from pyspark.sql import SparkSession

from windows_pipeline.arrival.log import ArrivalLog, read_log
from windows_pipeline.checks.next_steps import once_published
from windows_pipeline.config import Pipeline
from windows_pipeline.dagster.assets.catalogue import source_key, table_spec
from windows_pipeline.dagster.assets.checks import broken, failure_of, rules_evaluations, rules_spec
from windows_pipeline.dagster.assets.event_order import Event, in_order, of_step
from windows_pipeline.dagster.assets.result_events import ResultEvents
from windows_pipeline.dagster.assets.step import days_of_run
from windows_pipeline.dagster.faults import fails_plainly
from windows_pipeline.dagster.keys import asset_key
from windows_pipeline.dagster.one_step_job import one_step_job
from windows_pipeline.dagster.partitions import arrival_days
from windows_pipeline.dagster.spark_resource import SparkResource
from windows_pipeline.jobs import RawEventsJob, check_published
from windows_pipeline.jobs.correction_marker import CorrectionUnfinishedError
from windows_pipeline.jobs.days.chain import checked_days
from windows_pipeline.settings import Settings
from windows_pipeline.sources.bad_files import BadFileError, bad_file_in
from windows_pipeline.storage.table import TableRebuiltError, TableRedefinedError
from windows_pipeline.storage.tables import PipelineTables, tables_of
from windows_pipeline.storage.writer_lock import is_writing
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


def stream_job(pipeline: Pipeline, settings: Settings) -> dg.JobDefinition:
    """The job that ingests the records of the source and updates all tables.

    A run ingests the available records in micro-batches, and reports for each table the days that
    it changed. Then it checks these days, and ends: no check blocks a micro-batch. A run whose
    config sets `every` continues until it is terminated, and reports each micro-batch when it ends.
    A run ends without failing where somebody corrects or rebuilds the tables.
    """

    def follow(context: dg.OpExecutionContext, spark: SparkResource) -> Iterator[Event]:
        session, tables = spark.spark_session, tables_of(pipeline, settings.warehouse)
        events = ResultEvents(tables, settings, session, context.instance)
        every: str | None = context.op_config.get("every")
        batches: list[BatchResult] = []

        def report(result: BatchResult) -> None:
            context.log.info(
                f"micro-batch {result.batch}: {counted(result.accepted, 'record')} accepted, "
                f"{result.rejected} rejected; {counted(result.passed_over, 'file')} skipped; "
                f"{result.ambiguous:,} with a local time that occurs twice"
            )
            if every is None:
                batches.append(result)
                return
            for event in events.of_batch(result):
                context.log_event(event)

        def published(*, is_whole: bool) -> Iterator[Event]:
            log = read_log(session, tables.arrival_log)
            days = _days_to_check(batches, log, is_whole=is_whole)
            checked = [*checked_days(session, tables, settings, days)] if days else []
            evaluated = [*events.of_checked(checked, days)]
            yield from events.of_stream(batches, evaluated)
            yield from in_order(context.instance, evaluated)
            if wrong := broken((name, one) for name, results in checked for one in results):
                raise failure_of(wrong)

        try:
            is_whole = follow_source(session, tables, settings, every, report, context.log.info)
        except Exception as error:
            bad = bad_file_in(error)
            if bad is None:
                raise
            if batches:  # those before the bad file's
                yield from published(is_whole=True)
            raise _stopped(pipeline.name, bad) from None
        yield from published(is_whole=is_whole)

    return one_step_job(
        f"{pipeline.name}_stream",
        f"Ingests new records of {pipeline.name} and updates all of its tables.",
        f"{pipeline.name}_follow",
        follow,
        f"{pipeline.name}_stream",
        _CONFIG,
    )


def source_assets(
    tables: PipelineTables, settings: Settings
) -> list[dg.AssetsDefinition | dg.AssetSpec]:
    """The assets of the tables of a followed source, and the check of their rules."""
    pipeline, job = tables.pipeline, RawEventsJob(tables, settings)
    main = asset_key(job.tables[0])

    @dg.multi_asset_check(
        name=f"{pipeline.name}__raw_events_rules",
        specs=[rules_spec(main, job.checks, blocks=False)],
        can_subset=True,  # otherwise Dagster requires a result without a partition
        pool=pipeline.name,
    )
    @fails_plainly
    def check(
        context: dg.AssetCheckExecutionContext, spark: dg.ResourceParam[SparkResource]
    ) -> Iterator[dg.AssetCheckEvaluation]:
        session = spark.spark_session
        checked = days_of_run(context.op_execution_context, job, session)
        found = check_published(job, session, checked)
        evaluations = rules_evaluations(main, found, checked, once_published(pipeline))
        yield from of_step(context.op_execution_context, evaluations)

    read, days = [source_key(pipeline)], arrival_days(pipeline)
    return [*(table_spec(pipeline, table, read, days) for table in job.tables), check]


def _stopped(name: str, bad: BadFileError) -> dg.Failure:
    return dg.Failure(
        f"{bad}. The file's micro-batch is not ingested, and the stream has stopped before it. Fix "
        f"or remove each file, then run the job {name}_stream again, or: windows-pipeline stream "
        f"{name}"
    )


def follow_source(
    spark: SparkSession,
    tables: PipelineTables,
    settings: Settings,
    every: str | None,
    report: Callable[[BatchResult], None],
    log: Callable[[str], None],
) -> bool:
    """Runs the stream until its end, or until somebody corrects or rebuilds its tables.

    Args:
        spark: The session.
        tables: The tables of the pipeline.
        settings: Where landed files lie.
        every: How often to look for records; None to end after the available ones.
        report: Called with each micro-batch's result.
        log: Called with the reason why the run ends before the stream does.

    Returns:
        Whether the run ended with the stream.

    Raises:
        CorrectionUnfinishedError: A correction was killed; the message names how to resume it.
        TableRebuiltError: A rebuild was killed; the message names how to resume it.
    """
    try:
        run_stream(spark, tables, settings, every=every, on_batch=report)
    except (CorrectionUnfinishedError, TableRebuiltError) as stopped:
        is_done = isinstance(stopped, TableRedefinedError)
        if not is_done and not is_writing(tables.pipeline, settings.warehouse):
            raise
        log(f"a correction or a rebuild ends this run; then start the job again. {stopped}")
        return False
    return True


def _days_to_check(
    batches: Sequence[BatchResult], log: ArrivalLog, *, is_whole: bool
) -> list[date]:
    """The days that the micro-batches changed; if there are none, the newest day.

    None while a correction changes the tables.
    """
    if not is_whole:
        return []
    changed = {day for batch in batches for day in batch.arrival_units}
    return sorted(changed) or sorted({row.arrival_unit for row in log})[-1:]
