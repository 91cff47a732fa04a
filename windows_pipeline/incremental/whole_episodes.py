"""Earlier alerts that some days continue or end, computed from raw records (E4 to E6).

Earlier windows are computed again from the records, so that the result does not depend on which
earlier days are materialized. Three kinds of earlier alerts count: those that a window of the days
continues; where there are notifications or silences, those of the last window's length before the
days; and silences: those that go on, and those, however old, of keys that have a record again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from typing import NamedTuple

import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from windows_pipeline.arrival.watermark import ArrivalUnit, reads_from
from windows_pipeline.engine.lateness import is_outside_windows
from windows_pipeline.incremental import silences
from windows_pipeline.incremental.alerts import JoinedAlerts
from windows_pipeline.incremental.arrival_units import Arrivals
from windows_pipeline.incremental.closed_days import ClosedDays
from windows_pipeline.incremental.definition import Definition
from windows_pipeline.incremental.records import records_to_read
from windows_pipeline.kernels.time import NEVER_MS
from windows_pipeline.kernels.windows.chunk import Closing
from windows_pipeline.storage.arrival_units import in_arrival_units
from windows_pipeline.storage.instants import timestamp_to_ms, with_instants
from windows_pipeline.storage.joins import join_on
from windows_pipeline.text.instants import day_number

_FIRST_LOOK_BACK_MS = 86_400_000
_FROM_MS = "_from_ms"


class _Found(NamedTuple):
    """The alerts of earlier windows, and where silences end the `SEEN` of these windows."""

    alerts: DataFrame
    windows: DataFrame | None

    def and_of_others(self, other: _Found, keys: DataFrame) -> _Found:
        """Adds the rows of the other, but for those of the keys."""
        alerts = self.alerts.unionByName(join_on(other.alerts, keys, ["key"], "anti"))
        if self.windows is None or other.windows is None:
            return _Found(alerts, None)
        others = join_on(other.windows, keys, ["key"], "anti")
        return _Found(alerts, self.windows.unionByName(others))


@dataclass(frozen=True)
class WholeEpisodes:
    """The alerts of consecutive days with the earlier ones of their episodes.

    Attributes:
        definition: The definition.
        records: The definition's records.
        arrivals: What has arrived.
        days: The days.
        final: The final windows of the days.
        keep: Keeps rows that several queries need.
    """

    definition: Definition
    records: DataFrame
    arrivals: Arrivals
    days: Sequence[date]
    final: DataFrame
    keep: Callable[[DataFrame], DataFrame]

    def joined(self, raised: DataFrame) -> JoinedAlerts:
        """Adds to each alert of the days the start of its episode, which may lie before them.

        If there are notifications or silences, the episodes that a window or a record of the days
        could have continued or ended are added, too.
        """
        whole = self.keep(self._joined(self.keep(raised)))
        is_new, closed = in_arrival_units(self.days), self._closed
        new = whole.where(is_new).drop(silences.NEXT_RECORD)
        return JoinedAlerts(new, whole, is_new, closed, self.days, closed)

    def _joined(self, raised: DataFrame) -> DataFrame:
        """Adds episodes to the alerts of the days; the look-back doubles until all start in it."""
        if self._boundary_ms == NEVER_MS:
            return self._with_episodes(raised, None)
        near = self._near()
        joined = self._with_episodes(raised, near)
        # If a window's end is exclusive, a window that ends at the close time is closed as well.
        begins_earlier = timestamp_to_ms("episode_start") <= self._near_ms
        keys = joined.where(self._is_wanted & begins_earlier).select("key").distinct()
        since = F.lit(self._near_ms - _FIRST_LOOK_BACK_MS).cast("bigint")
        starts = keys.withColumn(_FROM_MS, since)
        if near is not None and near.windows is not None:
            both = starts.unionByName(self._silent(near.windows))
            starts = both.groupBy("key").agg(F.min(_FROM_MS).alias(_FROM_MS))
        return self._look_back(raised, near, joined, starts)

    def _look_back(
        self, raised: DataFrame, near: _Found | None, joined: DataFrame, starts: DataFrame
    ) -> DataFrame:
        """Looks back as far as the episodes of some keys began.

        Args:
            raised: The alerts of the days.
            near: What closed shortly before the days.
            joined: The alerts so far.
            starts: The keys, each with the close time from which its windows are computed.
        """
        spark, schema = joined.sparkSession, starts.schema
        found = starts.toArrow()
        while found.num_rows:
            from_ms = pc.min(found[_FROM_MS]).as_py()
            starts = F.broadcast(spark.createDataFrame(found.select(schema.names), schema))
            closed = self._closed_between(self._of_keys(starts), from_ms, starts)
            if near is not None:
                closed = closed.and_of_others(near, starts.select("key"))
            joined = self._with_episodes(raised, closed)
            wanted = joined.where(self._is_wanted).select("key", "episode_start")
            began = join_on(wanted, starts, ["key"], "inner")
            began = began.where(timestamp_to_ms("episode_start") <= F.col(_FROM_MS))
            again = began.select("key").distinct().withColumn("_again", F.lit(True))
            longer = F.lit(self._boundary_ms) - 2 * (F.lit(self._boundary_ms) - F.col(_FROM_MS))
            from_then = F.when(F.col("_again"), longer).otherwise(F.col(_FROM_MS))
            next_starts = join_on(starts, again, ["key"], "left").select(
                "key", from_then.cast("bigint").alias(_FROM_MS), "_again"
            )
            found = next_starts.toArrow()
            if found["_again"].null_count == found.num_rows:
                break
        return joined

    def _of_keys(self, starts: DataFrame) -> DataFrame:
        """The records of some keys; where silences are windows, those that may matter."""
        spec = self.definition.spec
        # Their windows that end before the key's close time, which lack records, are left out.
        if not spec.has_silences:
            return join_on(self.records, starts, ["key"], "semi")
        rows = join_on(self.records, starts, ["key"], "inner")
        since_ms = F.col(_FROM_MS) - F.lit(spec.look_back_ms)
        return rows.where(timestamp_to_ms("event_time") >= since_ms).drop(_FROM_MS)

    @cached_property
    def _arrival_units(self) -> list[ArrivalUnit]:
        return self.arrivals.arrival_units(self.days)

    @cached_property
    def _closed(self) -> ClosedDays:
        return ClosedDays.of(self._arrival_units, self.definition.spec.close_delay_ms)

    @property
    def _boundary_ms(self) -> int:
        """The close time before the days; `NEVER_MS` if nothing was closed, or a day is missing."""
        return self._closed.before_ms

    @cached_property
    def _overlap_ms(self) -> int | None:
        if self.definition.notifies or self.definition.spec.has_silences:
            return self.definition.spec.length_ms
        return None

    @property
    def _near_ms(self) -> int:
        """The close time from which on windows closed whose episodes may end in the days."""
        return self._boundary_ms - (self._overlap_ms or 0)

    @property
    def _is_wanted(self) -> Column:
        """Whether the whole episode of an alert is needed."""
        wanted = in_arrival_units(self.days)
        if self._overlap_ms is not None:
            wanted |= timestamp_to_ms("window_end") >= self._near_ms
        if self.definition.spec.has_silences:
            ends = timestamp_to_ms(silences.NEXT_RECORD) >= self._boundary_ms
            wanted |= (F.col("record_count") == 0) & F.coalesce(ends, F.lit(True))
        return wanted

    def _with_episodes(self, alerts: DataFrame, before: _Found | None) -> DataFrame:
        """The days' alerts and earlier ones, with the starts of their episodes."""
        windows = self.final.select(*silences.SEEN)
        if before is not None:
            alerts = alerts.unionByName(before.alerts)
            if before.windows is not None:
                windows = windows.unionByName(before.windows)
        if self.definition.spec.has_silences:
            alerts = silences.with_next_record(alerts, windows)
        return self.definition.with_episodes(alerts)

    def _near(self) -> _Found | None:
        """What closed within a window's length before the days; None if windows have no length."""
        if self._overlap_ms is None:
            return None
        return self._closed_between(self.records, self._near_ms)

    def _silent(self, near: DataFrame) -> DataFrame:
        """The keys without a record shortly before the days, each with when it had its last one.

        Args:
            near: `SEEN` of the windows that closed shortly before the days.

        Returns:
            `key` and `_from_ms`: of the last record that made its left window, which is then final.
            Of a key that was silent for more than `MOST_SILENCES_MS`, only if it has a record in
            the days; if no record made its left window, of the key's first record.
        """
        heard = silences.heard_keys(near)
        since_ms = self._near_ms - silences.MOST_SILENCES_MS
        found = self._last_records(self._read(self.records, since_ms), or_first=False)
        found = join_on(found, heard, ["key"], "anti").localCheckpoint()
        # Silences of more than `MOST_SILENCES_MS` cost a scan of all earlier records.
        back = silences.keys_back(self.final.select(*silences.SEEN), near)
        left = join_on(back, found, ["key"], "anti").localCheckpoint()
        if left.isEmpty():
            return found
        records = self._read(join_on(self.records, left, ["key"], "semi"), NEVER_MS)
        return found.unionByName(self._last_records(records, or_first=True).localCheckpoint())

    def _last_records(self, records: DataFrame, *, or_first: bool) -> DataFrame:
        """See `_silent`; the first record stands in only if asked for."""
        spec, time_ms = self.definition.spec, F.col("_event_time_ms")
        makes_left = (time_ms >= F.col("_close_time_ms")) & ~is_outside_windows(spec)
        last_ms = F.max(F.when(makes_left, time_ms))
        if or_first:
            last_ms = F.coalesce(last_ms, F.min(time_ms))
        of_keys = records.where(time_ms < F.lit(self._near_ms)).groupBy("key")
        return of_keys.agg(last_ms.alias(_FROM_MS)).where(F.col(_FROM_MS).isNotNull())

    def _read(self, records: DataFrame, from_ms: int) -> DataFrame:
        """The records before the days from an event time on, with their close times."""
        day, timeline = self._arrival_units[0].day, self.arrivals.timeline
        reads = [read for read in reads_from(timeline, {day: from_ms}) if read.arrival_unit < day]
        return records_to_read(records, timeline, reads, self.definition.spec.close_delay_ms)

    def _closed_between(
        self, records: DataFrame, from_ms: int, starts: DataFrame | None = None
    ) -> _Found:
        """The alerts of the windows that closed from a close time until the days.

        Args:
            records: The records.
            from_ms: The close time.
            starts: The keys, each with a later close time of its own; None for the same for all.
        """
        windows = self._windows(records, Closing(from_ms, self._boundary_ms))
        if self.definition.spec.has_silences:
            if starts is not None:
                windows = join_on(windows, starts, ["key"], "inner")
                is_since = timestamp_to_ms("window_end") >= F.col(_FROM_MS)
                windows = windows.where(is_since).drop(_FROM_MS)
            windows = windows.localCheckpoint()
            return _Found(self.definition.raise_alerts(windows), windows.select(*silences.SEEN))
        # Several queries need them, and each would compute all windows again.
        return _Found(self.definition.raise_alerts(windows).localCheckpoint(), None)

    def _windows(self, records: DataFrame, closing: Closing) -> DataFrame:
        """The windows that closed between two close times, before the days."""
        day = self._arrival_units[0].day
        from_ms = self.definition.lookback_ms(records, [closing.before_ms])[closing.before_ms]
        needed = self.definition.cut(self._read(records, from_ms))
        computed = self.definition.compute(needed, {day_number(day): closing}, only_closed=False)
        windows = computed.where("closed")
        return with_instants(windows).select(
            (F.col("arrival_unit") - F.expr("INTERVAL 1 DAY")).cast("date").alias("arrival_unit"),
            *self.definition.final_columns,
        )
