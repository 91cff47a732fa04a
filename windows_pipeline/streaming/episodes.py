"""Episodes and notifications of a micro-batch, with the rows of runs by days (rules E5, E6, H1).

The rows of a micro-batch's first arrival day are those of the day so far: they replace the rows
that earlier micro-batches of the day wrote.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from windows_pipeline.arrival.watermark import ArrivalUnit, close_ms
from windows_pipeline.engine.lateness import last_instant
from windows_pipeline.engine.literals import literal
from windows_pipeline.incremental import silences
from windows_pipeline.incremental.alerts import EPISODE, standing
from windows_pipeline.incremental.notifications import longest_overlap_ms
from windows_pipeline.jobs.alerts import AlertsJob
from windows_pipeline.jobs.notifications import episodes_of_days, notification_rows
from windows_pipeline.kernels.time import NEVER_MS
from windows_pipeline.kernels.windows.chunk import Closing
from windows_pipeline.storage.arrival_units import in_arrival_units
from windows_pipeline.storage.fetched_rows import FetchedRows, fetched_rows
from windows_pipeline.storage.instants import ms_to_timestamp, timestamp_to_ms
from windows_pipeline.storage.joins import join_on
from windows_pipeline.streaming.scope import BatchScope
from windows_pipeline.streaming.silences import SilencesBefore
from windows_pipeline.windows import has_silences


@dataclass(frozen=True)
class BatchEpisodes:
    """The episodes that a micro-batch and its arrival days begin, continue or end.

    Attributes:
        job: The definition.
        scope: The micro-batch's arrival days and close times.
        joined: The micro-batch's alerts and the earlier ones that these may continue, with the
            starts of their episodes.
        closed: The windows that the micro-batch closed.
        is_earlier: Whether a window was closed before the micro-batch.
    """

    job: AlertsJob
    scope: BatchScope
    joined: DataFrame
    closed: DataFrame
    is_earlier: Column

    def episodes(self) -> FetchedRows:
        """All rows that the micro-batch's arrival days have now."""
        days, table = self.scope.arrival_units, self.job.window_tables.episodes
        rows = episodes_of_days(self.job, self._whole, days, self._units)
        typed = rows.select(*[F.col(field.name).cast(field.dataType) for field in table.schema])
        return fetched_rows(typed, may_fetch=table.is_written_by_driver(rows.sparkSession))

    def notifications(self, closing_arrival_unit: Callable[[Column], Column]) -> DataFrame:
        """The rows that the micro-batch adds; computed once.

        Args:
            closing_arrival_unit: The arrival unit whose close time passed an instant.
        """
        closing = self.scope.closing

        def ended_in(last_ms: Column) -> Column:
            is_passed = (last_ms >= literal(closing.before_ms, last_ms)) & (
                last_ms < literal(closing.after_ms, last_ms)
            )
            return F.when(is_passed, closing_arrival_unit(last_ms))

        rows = notification_rows(self.job, self._whole, ~self.is_earlier, ended_in)
        return rows.localCheckpoint()

    @cached_property
    def _units(self) -> list[ArrivalUnit]:
        days = self.scope.arrival_units
        return [unit for unit in self.scope.timeline.arrival_units if unit.day in days]

    @cached_property
    def _day_closing(self) -> Closing:
        """The close times before the first arrival day, and after the micro-batch."""
        delay_ms = self.job.windows.spec.close_delay_ms
        before_ms = close_ms(self._units[0].watermark_before_ms, delay_ms)
        return Closing(before_ms, self.scope.closing.after_ms)

    @cached_property
    def _whole(self) -> DataFrame:
        """All alerts so far of the episodes of the days, and of those that the days may end."""
        met = self.joined
        ids = met.select(*EPISODE).unionByName(self._of_day_so_far()).distinct()
        whole = met.where(~self.is_earlier)
        first = ids.agg(timestamp_to_ms(F.min("episode_start"))).collect()[0][0]
        if first is not None:
            stored = self._stored(first)
            stored = stored.where(F.col("window_end") >= ms_to_timestamp(F.lit(first)))
            known = join_on(stored.select(*whole.columns), ids, list(EPISODE), "semi")
            whole = whole.unionByName(known)
        if has_silences(self.job.windows.spec):
            closing, spec = self._day_closing, self.job.windows.spec
            last_ms = last_instant(spec, timestamp_to_ms("window_end"))
            is_before_day = last_ms < literal(closing.before_ms, last_ms)
            before = SilencesBefore(self.job, self._seen, is_before_day, closing)
            whole = before.added_to(whole)
        # Both the episodes and the notifications are made of them.
        return whole if self.job.notifications is None else whole.localCheckpoint(eager=False)

    def _of_day_so_far(self) -> DataFrame:
        """The episodes that the day has had or may end, and the silences that may go on."""
        near_ms = longest_overlap_ms(self.job.windows.spec)
        of_day, since_ms = in_arrival_units(self.scope.arrival_units[:1]), None
        if near_ms is not None and self._day_closing.before_ms > NEVER_MS:
            since_ms = self._day_closing.before_ms - near_ms
            of_day |= F.col("window_end") >= ms_to_timestamp(F.lit(since_ms))
        found = self._stored(since_ms).where(of_day).select(*EPISODE)
        if not has_silences(self.job.windows.spec):
            return found
        table, spark = self.job.window_tables.episodes, self.joined.sparkSession
        before = [day for day in table.arrival_units(spark) if day <= self.scope.arrival_units[0]]
        if before:
            newest = table.of_arrival_units(spark, [max(before)])
            found = found.unionByName(newest.where(F.col("open_until").isNull()).select(*EPISODE))
        return found

    @cached_property
    def _seen(self) -> DataFrame:
        """`SEEN` of the windows that the arrival days closed so far."""
        spark, final = self.closed.sparkSession, self.job.window_tables.final_windows
        earlier = final.of_arrival_units(spark, self.scope.arrival_units[:1])
        both = self.closed.select(*silences.SEEN).unionByName(
            earlier.where(self.is_earlier).select(*silences.SEEN)
        )
        return both.localCheckpoint()

    def _stored(self, since_ms: int | None) -> DataFrame:
        """The standing alerts of earlier micro-batches."""
        table = self.job.window_tables.alerts
        return standing(table.read(self.joined.sparkSession, since_ms=since_ms)).where(
            self.is_earlier
        )
