"""Whether a stream's last micro-batch was stopped between its tables.

Its log rows are there by then, so a run by days would compute what the micro-batch, run again,
appends once more.
"""

from __future__ import annotations

from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from windows_pipeline.config import Pipeline
from windows_pipeline.jobs.log import ArrivalLog
from windows_pipeline.tables.catalog import stream_checkpoint


class BatchUnfinishedError(Exception):
    """A micro-batch is not in all tables; the message names it and the cure."""

    def __init__(self, pipeline: Pipeline, number: int) -> None:
        super().__init__(
            f"{pipeline.name}: micro-batch {number} of its stream is not in all tables; wait for "
            f"it, or if the stream was stopped, let it end first: windows-pipeline stream "
            f"{pipeline.name}"
        )


def require_finished_batch(
    spark: SparkSession, pipeline: Pipeline, warehouse: str, log: ArrivalLog
) -> None:
    """Refuses to go on while the last micro-batch is not in all tables.

    Raises:
        BatchUnfinishedError: It is not.
    """
    last = last_batch(log)
    if last is None:
        return
    checkpoint = stream_checkpoint(pipeline, warehouse)
    for number in (last, last + 1):  # the log has the last one, and not yet the one that goes on
        # Spark notes a micro-batch's records before it, and the end of it after.
        begun, ended = (
            _exists(spark, f"{checkpoint}/{of}/{number}") for of in ("offsets", "commits")
        )
        if begun and not ended:
            raise BatchUnfinishedError(pipeline, number)


def last_batch(log: ArrivalLog) -> int | None:
    """The newest micro-batch that a log has."""
    return max((row.batch for row in log if row.batch is not None), default=None)


def _exists(spark: SparkSession, path: str) -> bool:
    """Whether there is a file, wherever Spark can read; nothing is read of it."""
    try:
        spark.read.text(path).schema  # noqa: B018  Spark Connect looks only when it is asked
    except AnalysisException as error:
        if error.getCondition() != "PATH_NOT_FOUND":
            raise
        return False
    return True
