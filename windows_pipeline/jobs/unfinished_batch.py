"""Whether a stream's micro-batch is running, or was stopped between its tables.

A run by days must not start then. Once the log has the micro-batch, the run would compute rows
that the micro-batch, run again, appends a second time; before that, the run's input may change.
"""

from __future__ import annotations

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from windows_pipeline.arrival.log import ArrivalLog
from windows_pipeline.config import Pipeline
from windows_pipeline.storage.tables import PipelineTables
from windows_pipeline.text.problems import RefusedError


class BatchUnfinishedError(RefusedError):
    """A micro-batch is not in all tables; the message names the micro-batch and the fix."""

    def __init__(self, pipeline: Pipeline, number: int) -> None:
        super().__init__(
            f"{pipeline.name}: micro-batch {number} of its stream must be in all tables, but is "
            "not: it was started but not finished. If no stream is active, resume with the "
            f"pipeline's file as it was: windows-pipeline stream {pipeline.name}"
        )


class BatchCameError(BatchUnfinishedError):
    """A micro-batch came while tables were rebuilt; the message names it and the fix."""

    def __init__(self, pipeline: Pipeline, number: int) -> None:
        Exception.__init__(
            self,
            f"{pipeline.name}: no micro-batch may come while tables are rebuilt, but micro-batch "
            f"{number} has. Stop the stream, then: windows-pipeline rebuild {pipeline.name}",
        )


def require_finished_batch(
    spark: SparkSession, tables: PipelineTables, log: ArrivalLog, *, alone: bool = False
) -> None:
    """Requires that the last micro-batch is in all tables.

    Args:
        spark: The session.
        tables: The tables of the pipeline.
        log: The arrival log as it is now.
        alone: Whether every micro-batch that began since then was refused before it wrote rows,
            so that a micro-batch which the log lacks has no rows in any table.

    Raises:
        BatchUnfinishedError: A table may lack rows of the micro-batch.
    """
    last = last_batch(log)
    if last is None and tables.pipeline.source.by_days:
        return
    # The log has the last micro-batch, and lacks a micro-batch that is running.
    coming = 0 if last is None else last + 1
    for number in ([] if last is None else [last]) + ([] if alone else [coming]):
        # Spark writes to `offsets` before a micro-batch, and to `commits` after it.
        begun, ended = (
            is_there(spark, f"{tables.stream_checkpoint}/{folder}/{number}")
            for folder in ("offsets", "commits")
        )
        if begun and not ended:
            raise BatchUnfinishedError(tables.pipeline, number)


def unfinished_logged_batch(
    spark: SparkSession, tables: PipelineTables, log: ArrivalLog
) -> int | None:
    """The newest micro-batch in the log, if it was not finished; else None."""
    try:
        require_finished_batch(spark, tables, log, alone=True)
    except BatchUnfinishedError:
        return last_batch(log)
    return None


def last_batch(log: ArrivalLog) -> int | None:
    """The newest micro-batch in the log; None without one."""
    return max((row.batch for row in log if row.batch is not None), default=None)


def logged_rows(rows: DataFrame, log: ArrivalLog) -> DataFrame:
    """The rows of raw_events or rejected_records without those that the log lacks.

    A micro-batch that was stopped before its log rows left such rows; run again, it keeps them.
    """
    last = last_batch(log)
    if last is None:
        return rows
    return rows.where(F.col("batch").isNull() | (F.col("batch") <= F.lit(last)))


def require_no_batch_since(
    spark: SparkSession, tables: PipelineTables, before: ArrivalLog, log: ArrivalLog
) -> None:
    """Requires that no micro-batch came since the log was read before, or is running.

    Raises:
        BatchUnfinishedError: A micro-batch came.
    """
    newest = last_batch(log)
    if newest is not None and newest != last_batch(before):
        raise BatchUnfinishedError(tables.pipeline, newest)
    require_finished_batch(spark, tables, log)


def is_there(spark: SparkSession, path: str) -> bool:
    """Whether a file exists, wherever Spark can read; its content is not read."""
    try:
        spark.read.text(path).schema  # noqa: B018  Spark Connect looks only when the schema is used
    except AnalysisException as error:
        if error.getCondition() != "PATH_NOT_FOUND":
            raise
        return False
    return True
