"""The asset `corrections`, and the job that corrects published final windows."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from datetime import date

import dagster as dg
from pyspark.sql import SparkSession

from windows_pipeline.config import Pipeline
from windows_pipeline.dagster.assets.catalogue import table_spec
from windows_pipeline.dagster.assets.checks import failure_of
from windows_pipeline.dagster.assets.event_order import Event, in_order
from windows_pipeline.dagster.assets.result_events import ResultEvents
from windows_pipeline.dagster.keys import asset_key
from windows_pipeline.dagster.one_step_job import one_step_job
from windows_pipeline.dagster.partitions import arrival_days
from windows_pipeline.dagster.spark_resource import SparkResource
from windows_pipeline.jobs.correction.run import (
    CorrectionResult,
    correct,
    plan_corrections,
)
from windows_pipeline.jobs.days.runs import changed_since
from windows_pipeline.settings import Settings
from windows_pipeline.storage.tables import tables_of
from windows_pipeline.storage.writer_lock import writing

_CONFIG = {
    "from": dg.Field(str, description="The first arrival day to recompute, such as 2013-01-02."),
    "to": dg.Field(
        str,
        is_required=False,
        description="The last arrival day to recompute; by default the last published day.",
    ),
    "cause": dg.Field(
        str, description="The reason for the correction; each row of corrections records it."
    ),
}


def corrections(pipeline: Pipeline, windows_name: str, settings: Settings) -> dg.AssetSpec:
    """The asset of the table `corrections`, which only the correction job writes."""
    tables = tables_of(pipeline, settings.warehouse).of(windows_name)
    return table_spec(
        pipeline,
        tables.corrections,
        deps=[asset_key(tables.final_windows)],
        partitions=arrival_days(pipeline),
    )


def correction_job(pipeline: Pipeline, settings: Settings) -> dg.JobDefinition:
    """The job that corrects published results; its run config names the days and the reason."""

    def correct_windows(context: dg.OpExecutionContext, spark: SparkResource) -> Iterator[Event]:
        config = context.op_config
        first = _day(config, "from")
        last = _day(config, "to") if "to" in config else None
        if last is not None and last < first:
            raise dg.Failure(
                f"to: must not be before from, {first}, but is {last}; write a later day, or leave "
                "`to` out for all days from that one on"
            )
        with writing(pipeline, settings.warehouse):
            yield from _corrected(context, spark.spark_session, pipeline, settings, first, last)

    return one_step_job(
        f"{pipeline.name}_correction",
        f"Recomputes published days of {pipeline.name} after a change of raw records or of the "
        "grace, and records in corrections which results differ.",
        f"{pipeline.name}_correct",
        correct_windows,
        pipeline.name,
        _CONFIG,
    )


def _corrected(
    context: dg.OpExecutionContext,
    session: SparkSession,
    pipeline: Pipeline,
    settings: Settings,
    first: date,
    last: date | None,
) -> Iterator[Event]:
    """Corrects all definitions, or none of them if one cannot be corrected."""
    cause = context.op_config["cause"]
    tables = tables_of(pipeline, settings.warehouse, grace_may_differ=True)
    names = plan_corrections(session, tables, settings, first, last, cause)
    events = ResultEvents(tables, settings, session, context.instance)
    for text in changed_since(session, tables, settings, first, last):
        context.log.warning(text)
    for name in names:
        result = correct(session, tables, name, settings, first, last, cause, context.log.info)
        yield from in_order(context.instance, events.of_correction(name, result, cause))
        if not result.published:
            raise _not_published(pipeline.name, name, result, context.op_config)
        context.log.info(
            f"{name}: the recomputed results equal the published results; nothing was changed"
            if result.number is None
            else f"{name}: correction {result.number} is published"
        )


def _day(config: Mapping[str, str], field: str) -> date:
    """A day of the run's config.

    Raises:
        dg.Failure: The text is no day.
    """
    try:
        return date.fromisoformat(config[field])
    except ValueError:
        raise dg.Failure(
            f"{field}: must be a day such as 2013-01-02, not {config[field]!r}"
        ) from None


def _not_published(
    pipeline: str, windows_name: str, correction: CorrectionResult, config: Mapping[str, str]
) -> dg.Failure:
    table, result = correction.results[-1]
    failed = [(table, one) for one in result.checks if not one.passed and one.check.blocking]
    to = f" --to {config['to']}" if "to" in config else ""
    command = (
        f"windows-pipeline correct {pipeline} --windows {windows_name} --from {config['from']}{to} "
        f"--cause {shlex.quote(config['cause'])}"
    )
    return failure_of(
        failed,
        f"So the correction is not finished. Fix the cause, then run the job {pipeline}_correction "
        f"again with the same config, or: {command}",
    )
