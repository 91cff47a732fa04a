"""The notifications of a micro-batch, with the same rows as runs by days (rules E6, H1)."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from windows_pipeline.engine.literals import literal
from windows_pipeline.incremental import silences
from windows_pipeline.incremental.alerts import standing
from windows_pipeline.incremental.notifications import EPISODE
from windows_pipeline.jobs.alerts import AlertsJob
from windows_pipeline.jobs.notifications import notification_rows
from windows_pipeline.kernels.windows.chunk import Closing
from windows_pipeline.storage.instants import ms_to_timestamp, timestamp_to_ms
from windows_pipeline.storage.joins import join_on
from windows_pipeline.streaming.silences import SilencesBefore
from windows_pipeline.windows import has_silences


def notifications_of_batch(
    job: AlertsJob,
    joined: DataFrame,
    closed: DataFrame,
    is_earlier: Column,
    closing: Closing,
    closing_arrival_unit: Callable[[Column], Column],
) -> DataFrame:
    """Returns the rows of notifications that a micro-batch adds; computed once.

    Args:
        job: The definition.
        joined: The micro-batch's alerts and the earlier ones that these may continue, or that the
            micro-batch may end, with the starts of their episodes.
        closed: The windows that the micro-batch closed.
        is_earlier: Whether a window was closed before the micro-batch.
        closing: The close times before and after the micro-batch.
        closing_arrival_unit: The arrival unit whose close time passed an instant.
    """
    met = joined.localCheckpoint()
    whole = met.where(~is_earlier)
    first = met.agg(timestamp_to_ms(F.min("episode_start"))).collect()[0][0]
    if first is not None:
        table = job.window_tables.alerts
        stored = standing(table.read(met.sparkSession, since_ms=first)).where(is_earlier)
        stored = stored.where(F.col("window_end") >= ms_to_timestamp(F.lit(first)))
        episodes = met.select(*EPISODE).distinct()
        whole = whole.unionByName(
            join_on(stored.select(*whole.columns), episodes, list(EPISODE), "semi")
        )

    if has_silences(job.windows.spec):
        seen = closed.select(*silences.SEEN).localCheckpoint()
        ended = SilencesBefore(job, seen, is_earlier, closing)
        whole = ended.added_to(whole)

    def ended_in(last_ms: Column) -> Column:
        is_passed = (last_ms >= literal(closing.before_ms, last_ms)) & (
            last_ms < literal(closing.after_ms, last_ms)
        )
        return F.when(is_passed, closing_arrival_unit(last_ms))

    return notification_rows(job, whole, ~is_earlier, ended_in).localCheckpoint()
