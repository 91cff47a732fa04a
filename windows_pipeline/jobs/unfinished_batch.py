"""Whether a micro-batch of a stream is under way, or was stopped between its tables.

Once its log rows are there, a run by days would compute what the micro-batch, run again, appends
once more; before that, what is computed may change while it is.
"""

from __future__ import annotations

from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from windows_pipeline.arrival.log import ArrivalLog
from windows_pipeline.config import Pipeline
from windows_pipeline.storage.catalog import stream_checkpoint


class BatchUnfinishedError(Exception):
    """A micro-batch is not in all tables; the message names it and the cure."""

    def __init__(self, pipeline: Pipeline, number: int) -> None:
        super().__init__(
            f"{pipeline.name}: micro-batch {number} of its stream is not in all tables; wait for "
            "it, or if the stream was stopped, let it end first, with the pipeline's file as it "
            f"was: windows-pipeline stream {pipeline.name}"
        )


def require_finished_batch(
    spark: SparkSession,
    pipeline: Pipeline,
    warehouse: str,
    log: ArrivalLog,
    *,
    alone: bool = False,
) -> None:
    """Refuses to go on while the last micro-batch is not in all tables.

    Args:
        spark: The session.
        pipeline: The pipeline.
        warehouse: Where its tables lie.
        log: The arrival log as it is now.
        alone: Whether, since none was under way, each has been refused before it wrote anything,
            so that one which the log does not have is nowhere.

    Raises:
        BatchUnfinishedError: It is not.
    """
    last = _last_batch(log)
    if last is None and pipeline.source.by_days:
        return
    checkpoint = stream_checkpoint(pipeline, warehouse)
    # The log has the last one, and not yet the one that goes on.
    coming = 0 if last is None else last + 1
    for number in ([] if last is None else [last]) + ([] if alone else [coming]):
        # Spark notes a micro-batch's records before it, and the end of it after.
        begun, ended = (
            is_there(spark, f"{checkpoint}/{of}/{number}") for of in ("offsets", "commits")
        )
        if begun and not ended:
            raise BatchUnfinishedError(pipeline, number)


def require_no_batch_since(
    spark: SparkSession, pipeline: Pipeline, warehouse: str, before: ArrivalLog, log: ArrivalLog
) -> None:
    """Refuses to go on where a micro-batch came since the log was read before, or is coming.

    Raises:
        BatchUnfinishedError: One came.
    """
    newest = _last_batch(log)
    if newest is not None and newest != _last_batch(before):
        raise BatchUnfinishedError(pipeline, newest)
    require_finished_batch(spark, pipeline, warehouse, log)


def _last_batch(log: ArrivalLog) -> int | None:
    return max((row.batch for row in log if row.batch is not None), default=None)


def is_there(spark: SparkSession, path: str) -> bool:
    """Whether there is a file, wherever Spark can read; nothing is read of it."""
    try:
        spark.read.text(path).schema  # noqa: B018  Spark Connect looks only when it is asked
    except AnalysisException as error:
        if error.getCondition() != "PATH_NOT_FOUND":
            raise
        return False
    return True
