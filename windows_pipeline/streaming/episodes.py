"""Episodes and notifications of a micro-batch, with the rows of runs by days (rules E5, E6, H1).

The rows of a micro-batch's first arrival day are those of the day so far: they replace the rows
that earlier micro-batches of the day wrote.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from windows_pipeline.engine.literals import literal
from windows_pipeline.incremental import silences
from windows_pipeline.incremental.alerts import EPISODE, JoinedAlerts, standing
from windows_pipeline.incremental.closed_days import ClosedDays
from windows_pipeline.incremental.definition import Definition
from windows_pipeline.kernels.time import NEVER_MS
from windows_pipeline.storage.arrival_units import in_arrival_units
from windows_pipeline.storage.fetched_rows import FetchedRows
from windows_pipeline.storage.instants import ms_to_timestamp, timestamp_to_ms
from windows_pipeline.storage.joins import join_on
from windows_pipeline.streaming.scope import BatchScope
from windows_pipeline.streaming.silences import SilencesBefore


@dataclass(frozen=True)
class BatchEpisodes:
    """The episodes that a micro-batch and its arrival days begin, continue or end.

    Attributes:
        definition: The definition.
        scope: The micro-batch's arrival days and close times.
        from_ms: The event time from which on records matter to windows that are not closed.
        final: The windows that the micro-batch closed.
    """

    definition: Definition
    scope: BatchScope
    from_ms: int
    final: FetchedRows

    def joined(self, raised: DataFrame) -> JoinedAlerts:
        """Joins the alerts with stored ones of the episodes of the days, or that these may end."""
        met, spark, is_new = self._with_continued(raised), raised.sparkSession, ~self._is_earlier
        ids = met.select(*EPISODE).unionByName(self._of_day_so_far(spark)).distinct()
        new = whole = met.where(is_new)
        first = ids.agg(timestamp_to_ms(F.min("episode_start"))).collect()[0][0]
        if first is not None:
            stored = self._stored(spark, first)
            stored = stored.where(F.col("window_end") >= ms_to_timestamp(F.lit(first)))
            known = join_on(stored.select(*whole.columns), ids, list(EPISODE), "semi")
            whole = whole.unionByName(known)
        if self.definition.spec.has_silences:
            closing = self._closed_by_days.closing
            is_before_day = self._closed_before(closing.before_ms)
            seen = self._seen(spark)
            before = SilencesBefore(self.definition, seen, is_before_day, closing)
            whole = before.added_to(whole)
        # Both the episodes and the notifications are made of them.
        whole = whole.localCheckpoint(eager=False) if self.definition.notifies else whole
        days, closed = self.scope.arrival_units, self.scope.closed_days
        return JoinedAlerts(new, whole, is_new, closed, days, self._closed_by_days)

    @cached_property
    def _closed_by_days(self) -> ClosedDays:
        """The close times before the first arrival day, and after each of them."""
        timeline, days = self.scope.timeline, self.scope.arrival_units
        units = [unit for unit in timeline.arrival_units if unit.day in days]
        return ClosedDays.of(units, self.definition.spec.close_delay_ms)

    def _with_continued(self, raised: DataFrame) -> DataFrame:
        """The new alerts, and the earlier ones that these may continue."""
        spec, before_ms, from_ms = self.definition.spec, self.scope.closing.before_ms, self.from_ms
        if before_ms > NEVER_MS and spec.length_ms is not None:
            from_ms = before_ms - spec.length_ms
        since_ms = from_ms if from_ms > NEVER_MS else None
        earlier = self._stored(raised.sparkSession, since_ms)
        if since_ms is not None:
            earlier = earlier.where(F.col("window_end") >= self.scope.not_before(from_ms))
        without_start = raised.withColumn("episode_start", F.lit(None).cast("timestamp"))
        known = earlier.select(*without_start.columns)
        return self.definition.with_episodes(without_start.unionByName(known))

    def _of_day_so_far(self, spark: SparkSession) -> DataFrame:
        """The episodes that the day has had or may end, and the silences that may go on."""
        near_ms = self.definition.spec.length_ms
        of_day, since_ms = in_arrival_units(self.scope.arrival_units[:1]), None
        if near_ms is not None and self._closed_by_days.before_ms > NEVER_MS:
            since_ms = self._closed_by_days.before_ms - near_ms
            of_day |= F.col("window_end") >= ms_to_timestamp(F.lit(since_ms))
        found = self._stored(spark, since_ms).where(of_day).select(*EPISODE)
        if not self.definition.spec.has_silences:
            return found
        table = self.definition.tables.episodes
        before = [day for day in table.arrival_units(spark) if day <= self.scope.arrival_units[0]]
        if before:
            newest = table.of_arrival_units(spark, [max(before)])
            found = found.unionByName(newest.where(F.col("open_until").isNull()).select(*EPISODE))
        return found

    def _seen(self, spark: SparkSession) -> DataFrame:
        """`SEEN` of the windows that the arrival days closed so far."""
        earlier = self.definition.tables.final_windows.of_arrival_units(
            spark, self.scope.arrival_units[:1]
        )
        both = self.final.frame.select(*silences.SEEN).unionByName(
            earlier.where(self._is_earlier).select(*silences.SEEN)
        )
        return both.localCheckpoint()

    def _stored(self, spark: SparkSession, since_ms: int | None) -> DataFrame:
        """The standing alerts of earlier micro-batches."""
        stored = self.definition.tables.alerts.read(spark, since_ms=since_ms)
        return standing(stored).where(self._is_earlier)

    @property
    def _is_earlier(self) -> Column:
        return self._closed_before(self.scope.closing.before_ms)

    def _closed_before(self, before_ms: int) -> Column:
        """Whether a window was closed at a close time."""
        last_ms = self.definition.spec.last_instant(timestamp_to_ms("window_end"))
        return last_ms < literal(before_ms, last_ms)
