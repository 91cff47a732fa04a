"""Earlier alerts that some days continue or end, computed from raw records (E4 to E6).

Earlier windows are computed again from the records, so that the result does not depend on which
earlier days are materialized. Three kinds of earlier alerts count: those that a window of the days
continues; where there are notifications, those of the last window's length before the days; and
the silences, however old, of keys that have a record again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from typing import NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from windows_pipeline.arrival.watermark import ArrivalUnit, close_ms, reads_from
from windows_pipeline.config import BoundAggregates
from windows_pipeline.engine.lateness import is_outside_windows
from windows_pipeline.incremental import silences
from windows_pipeline.incremental.alerts import RuleSql, broken_rules, with_episodes
from windows_pipeline.incremental.arrival_units import Arrivals
from windows_pipeline.incremental.lookback import lookback_from_ms
from windows_pipeline.incremental.notifications import longest_overlap_ms
from windows_pipeline.incremental.records import day_number, records_to_read
from windows_pipeline.incremental.windows import arrival_unit_windows
from windows_pipeline.jobs.windows_job import cut_for_windows
from windows_pipeline.kernels.time import NEVER_MS
from windows_pipeline.kernels.windows.chunk import Closing
from windows_pipeline.storage.arrival_units import in_arrival_units
from windows_pipeline.storage.instants import timestamp_to_ms, with_instants
from windows_pipeline.storage.joins import join_on
from windows_pipeline.tuning import Tuning
from windows_pipeline.windows import PipelineWindows, SlidingWindows, has_silences

_FIRST_LOOK_BACK_MS = 86_400_000


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


class AlertedWindows(NamedTuple):
    """A definition of windows with alerts, as far as their computation needs it.

    Attributes:
        spec: The windows.
        aggregates: Their aggregates.
        rules: The alert rules.
        columns: The columns of final windows, without `arrival_unit`.
        tuning: How records are cut into shards.
    """

    spec: PipelineWindows
    aggregates: BoundAggregates
    rules: Mapping[str, RuleSql]
    columns: Sequence[str]
    tuning: Tuning


@dataclass(frozen=True)
class EarlierAlerts:
    """The earlier alerts of consecutive days.

    Attributes:
        definition: How the windows and their alerts are computed.
        notifies: Whether there are notifications.
        records: The definition's records.
        arrivals: What has arrived.
        days: The days.
        raised: The alerts of the days; others may be among them.
        final: The final windows of the days; others may be among them.
    """

    definition: AlertedWindows
    notifies: bool
    records: DataFrame
    arrivals: Arrivals
    days: Sequence[date]
    raised: DataFrame
    final: DataFrame

    def joined(self) -> DataFrame:
        """Adds to each alert of the days the start of its episode, which may lie before them.

        The look-back doubles until every episode starts within it.

        Returns:
            The days' alerts and all earlier alerts of their episodes. If there are notifications,
            also the episodes that a window or a record of the days could have continued or ended;
            where silences are windows, with `NEXT_RECORD`.
        """
        if self._boundary_ms == NEVER_MS:
            return self._with_episodes(None)
        near = self._near()
        joined = self._with_episodes(near)
        # If a window's end is exclusive, a window that ends at the close time is closed as well.
        begins_earlier = timestamp_to_ms("episode_start") <= self._near_ms
        keys = joined.where(self._is_wanted & begins_earlier).select("key").distinct()
        silent_from_ms = None
        if near is not None and near.windows is not None:
            back = silences.keys_back(self._final, near.windows)
            silent = self._last_heard(back).localCheckpoint()
            silent_from_ms = silent.agg(F.min("_last_ms")).collect()[0][0]
            keys = keys.unionByName(silent.select("key")).distinct()
        found = keys.toArrow()
        if not found.num_rows:
            return joined
        from_ms = self._near_ms - _FIRST_LOOK_BACK_MS
        if silent_from_ms is not None:
            from_ms = min(from_ms, silent_from_ms)
        keys = joined.sparkSession.createDataFrame(found, keys.schema)
        return self._look_back(near, F.broadcast(keys), from_ms)

    def _look_back(self, near: _Found | None, keys: DataFrame, from_ms: int) -> DataFrame:
        """Looks back as far as the episodes of some keys began."""
        of_keys = join_on(self.records, keys, ["key"], "semi")
        while True:
            found = self._closed_between(of_keys, from_ms)
            joined = self._with_episodes(found if near is None else found.and_of_others(near, keys))
            begins_earlier = timestamp_to_ms("episode_start") <= from_ms
            if joined.where(self._is_wanted & begins_earlier).isEmpty():
                return joined
            from_ms = self._boundary_ms - 2 * (self._boundary_ms - from_ms)

    @cached_property
    def _arrival_units(self) -> list[ArrivalUnit]:
        return self.arrivals.arrival_units(self.days)

    @cached_property
    def _boundary_ms(self) -> int:
        """The close time before the days; `NEVER_MS` if nothing was closed, or a day is missing."""
        if not self._arrival_units:
            return NEVER_MS
        return close_ms(
            self._arrival_units[0].watermark_before_ms, self.definition.spec.close_delay_ms
        )

    @cached_property
    def _overlap_ms(self) -> int | None:
        return longest_overlap_ms(self.definition.spec) if self.notifies else None

    @property
    def _near_ms(self) -> int:
        """The close time from which on windows closed whose episodes may end in the days."""
        return self._boundary_ms - (self._overlap_ms or 0)

    @cached_property
    def _ends_silences(self) -> bool:
        return self.notifies and has_silences(self.definition.spec)

    @cached_property
    def _raised(self) -> DataFrame:
        return self.raised.where(in_arrival_units(self.days))

    @cached_property
    def _final(self) -> DataFrame:
        return self.final.where(in_arrival_units(self.days)).select(*silences.SEEN)

    @property
    def _is_wanted(self) -> Column:
        """Whether the whole episode of an alert is needed."""
        wanted = in_arrival_units(self.days)
        if self._overlap_ms is not None:
            wanted |= timestamp_to_ms("window_end") >= self._near_ms
        if self._ends_silences:
            ends = timestamp_to_ms(silences.NEXT_RECORD) >= self._boundary_ms
            wanted |= F.coalesce(ends, F.lit(False))
        return wanted

    def _with_episodes(self, before: _Found | None) -> DataFrame:
        """The days' alerts and earlier ones, with the starts of their episodes."""
        alerts, windows = self._raised, self._final
        if before is not None:
            alerts = alerts.unionByName(before.alerts)
            if before.windows is not None:
                windows = windows.unionByName(before.windows)
        if self._ends_silences:
            alerts = silences.with_next_record(alerts, windows)
        return with_episodes(alerts, self.definition.rules)

    def _near(self) -> _Found | None:
        """What closed within a window's length before the days; None if windows have no length."""
        if self._overlap_ms is None:
            return None
        return self._closed_between(self.records, self._near_ms)

    def _last_heard(self, keys: DataFrame) -> DataFrame:
        """When keys had their last record before those that closed shortly before the days.

        Returns:
            `key` and `_last_ms`: of the last record that made its left window, which is then
            final; if there is none, of the key's first record. Keys without a record are left out.
        """
        left = keys.localCheckpoint()
        heard = left.limit(0).withColumn("_last_ms", F.lit(None).cast("bigint"))
        # Silences of more than `MOST_SILENCES_MS` cost a scan of all earlier records.
        for from_ms in (self._near_ms - silences.MOST_SILENCES_MS, NEVER_MS):
            if left.isEmpty():
                break
            records = self._read(join_on(self.records, left, ["key"], "semi"), from_ms)
            found = self._last_records(records, self._near_ms, or_first=from_ms == NEVER_MS)
            found = found.localCheckpoint()
            heard = heard.unionByName(found)
            left = join_on(left, found, ["key"], "anti").localCheckpoint()
        return heard

    def _last_records(self, records: DataFrame, until_ms: int, *, or_first: bool) -> DataFrame:
        """See `_last_heard`; the first record stands in only if asked for."""
        spec, time_ms = self.definition.spec, F.col("_event_time_ms")
        assert isinstance(spec, SlidingWindows)  # noqa: S101  only these have silences
        makes_left = (time_ms >= F.col("_close_time_ms")) & ~is_outside_windows(spec)
        last_ms = F.max(F.when(makes_left, time_ms))
        if or_first:
            last_ms = F.coalesce(last_ms, F.min(time_ms))
        of_keys = records.where(time_ms < F.lit(until_ms)).groupBy("key")
        return of_keys.agg(last_ms.alias("_last_ms")).where(F.col("_last_ms").isNotNull())

    def _read(self, records: DataFrame, from_ms: int) -> DataFrame:
        """The records before the days from an event time on, with their close times."""
        day, timeline = self._arrival_units[0].day, self.arrivals.timeline
        reads = [read for read in reads_from(timeline, {day: from_ms}) if read.arrival_unit < day]
        return records_to_read(records, timeline, reads, self.definition.spec.close_delay_ms)

    def _closed_between(self, records: DataFrame, from_ms: int) -> _Found:
        """The alerts of the windows that closed from a close time until the days."""
        windows = self._windows(records, Closing(from_ms, self._boundary_ms))
        if self._ends_silences:
            windows = windows.localCheckpoint()
            return _Found(
                broken_rules(windows, self.definition.rules), windows.select(*silences.SEEN)
            )
        # Several queries need them, and each would compute all windows again.
        return _Found(broken_rules(windows, self.definition.rules).localCheckpoint(), None)

    def _windows(self, records: DataFrame, closing: Closing) -> DataFrame:
        """The windows that closed between two close times, before the days."""
        spec, aggregates, _, columns, tuning = self.definition
        day = self._arrival_units[0].day
        from_ms = lookback_from_ms(records, spec, [closing.before_ms])[closing.before_ms]
        windows = arrival_unit_windows(
            cut_for_windows(self._read(records, from_ms), spec, tuning),
            spec,
            aggregates,
            {day_number(day): closing},
            tuning=tuning,
        ).where("closed")
        return with_instants(windows).select(
            (F.col("arrival_unit") - F.expr("INTERVAL 1 DAY")).cast("date").alias("arrival_unit"),
            *columns,
        )
