"""Jobs of one step, such as those that do what a command does."""

# No deferred annotations here: Dagster reads the annotations of the functions that it calls.

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import dagster as dg

from windows_pipeline.dagster.faults import fails_plainly
from windows_pipeline.dagster.spark_resource import SparkResource

Step = Callable[[dg.OpExecutionContext, SparkResource], Iterator[Any]]


def one_step_job(
    name: str,
    description: str,
    op: str,
    step: Step,
    pool: str,
    fields: Mapping[str, dg.Field] | None = None,
) -> dg.JobDefinition:
    """A job of one step, whose expected faults are failures in plain words.

    Args:
        name: The job's name.
        description: What it does.
        op: The step's name.
        step: The step; it yields the events that Dagster stores.
        pool: The pool of which one run at a time is at work.
        fields: The fields of its config.
    """

    @dg.op(name=op, config_schema=dict(fields or {}), out={}, pool=pool)
    @fails_plainly
    def run(
        context: dg.OpExecutionContext, spark: dg.ResourceParam[SparkResource]
    ) -> Iterator[Any]:
        yield from step(context, spark)

    config: dict[str, Any] = {"config": fields_of(op, fields)} if fields else {}

    @dg.job(name=name, description=description, **config)
    def job() -> None:
        run()

    return job


def fields_of(op: str, fields: Mapping[str, Any]) -> dg.ConfigMapping:
    """A job's config that has the fields of its only step, and nothing else.

    Without it the launchpad has them below `ops`, the step's name and `config`, beside the config
    of executors and loggers.

    Args:
        op: The step's name.
        fields: Its fields.
    """
    return dg.ConfigMapping(
        config_schema=dict(fields),
        config_fn=lambda config: {"ops": {op: {"config": config}}},
    )
