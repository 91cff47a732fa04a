"""Episodes and notifications of a micro-batch, with the rows of runs by days (rules E5, E6, H1).

The rows of a micro-batch's first arrival day are those of the day so far: they replace the rows
that earlier micro-batches of the day wrote.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from windows_pipeline.engine.literals import literal
from windows_pipeline.incremental import silences
from windows_pipeline.incremental.alerts import EPISODE, standing
from windows_pipeline.incremental.closed_days import ClosedDays
from windows_pipeline.incremental.definition import Definition
from windows_pipeline.kernels.time import NEVER_MS
from windows_pipeline.storage.arrival_units import in_arrival_units
from windows_pipeline.storage.fetched_rows import FetchedRows, fetched_rows
from windows_pipeline.storage.instants import ms_to_timestamp, timestamp_to_ms
from windows_pipeline.storage.joins import join_on
from windows_pipeline.storage.tables import WindowTables
from windows_pipeline.streaming.scope import BatchScope
from windows_pipeline.streaming.silences import SilencesBefore


@dataclass(frozen=True)
class BatchEpisodes:
    """The episodes that a micro-batch and its arrival days begin, continue or end.

    Attributes:
        definition: The definition.
        tables: The definition's tables.
        notifies: Whether there are notifications.
        scope: The micro-batch's arrival days and close times.
        joined: The micro-batch's alerts and the earlier ones that these may continue, with the
            starts of their episodes.
        closed: The windows that the micro-batch closed.
        is_earlier: Whether a window was closed before the micro-batch.
    """

    definition: Definition
    tables: WindowTables
    notifies: bool
    scope: BatchScope
    joined: DataFrame
    closed: DataFrame
    is_earlier: Column

    def episodes(self) -> FetchedRows:
        """All rows that the micro-batch's arrival days have now."""
        days, table = self.scope.arrival_units, self.tables.episodes
        rows = self.definition.episodes(self._whole, days, self._closed_days)
        typed = rows.select(*[F.col(field.name).cast(field.dataType) for field in table.schema])
        return fetched_rows(typed, may_fetch=table.is_written_by_driver(rows.sparkSession))

    def notifications(self) -> DataFrame:
        """The rows that the micro-batch adds; computed once."""
        closed_days, is_new = self.scope.closed_days, ~self.is_earlier
        return self.definition.notifications(self._whole, is_new, closed_days).localCheckpoint()

    @cached_property
    def _closed_days(self) -> ClosedDays:
        """The close times before the first arrival day, and after each of them."""
        days = self.scope.arrival_units
        units = [unit for unit in self.scope.timeline.arrival_units if unit.day in days]
        return ClosedDays.of(units, self.definition.spec.close_delay_ms)

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
        if self.definition.spec.has_silences:
            closing, spec = self._closed_days.closing, self.definition.spec
            last_ms = spec.last_instant(timestamp_to_ms("window_end"))
            is_before_day = last_ms < literal(closing.before_ms, last_ms)
            before = SilencesBefore(
                self.definition, self.tables, self._seen, is_before_day, closing
            )
            whole = before.added_to(whole)
        # Both the episodes and the notifications are made of them.
        return whole.localCheckpoint(eager=False) if self.notifies else whole

    def _of_day_so_far(self) -> DataFrame:
        """The episodes that the day has had or may end, and the silences that may go on."""
        near_ms = self.definition.spec.length_ms
        of_day, since_ms = in_arrival_units(self.scope.arrival_units[:1]), None
        if near_ms is not None and self._closed_days.before_ms > NEVER_MS:
            since_ms = self._closed_days.before_ms - near_ms
            of_day |= F.col("window_end") >= ms_to_timestamp(F.lit(since_ms))
        found = self._stored(since_ms).where(of_day).select(*EPISODE)
        if not self.definition.spec.has_silences:
            return found
        table, spark = self.tables.episodes, self.joined.sparkSession
        before = [day for day in table.arrival_units(spark) if day <= self.scope.arrival_units[0]]
        if before:
            newest = table.of_arrival_units(spark, [max(before)])
            found = found.unionByName(newest.where(F.col("open_until").isNull()).select(*EPISODE))
        return found

    @cached_property
    def _seen(self) -> DataFrame:
        """`SEEN` of the windows that the arrival days closed so far."""
        spark, final = self.closed.sparkSession, self.tables.final_windows
        earlier = final.of_arrival_units(spark, self.scope.arrival_units[:1])
        both = self.closed.select(*silences.SEEN).unionByName(
            earlier.where(self.is_earlier).select(*silences.SEEN)
        )
        return both.localCheckpoint()

    def _stored(self, since_ms: int | None) -> DataFrame:
        """The standing alerts of earlier micro-batches."""
        table = self.tables.alerts
        return standing(table.read(self.joined.sparkSession, since_ms=since_ms)).where(
            self.is_earlier
        )
