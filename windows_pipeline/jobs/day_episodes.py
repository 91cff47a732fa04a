"""The episodes that each day lists: its own, and silences of earlier days (rules B8, E5, E6).

Nothing is read of days that closed more than `MOST_SILENCES_MS` before or after the wanted days.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from functools import cached_property

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from windows_pipeline.compat.local_frame import small_frame
from windows_pipeline.incremental.alerts import episodes, standing
from windows_pipeline.incremental.arrival_units import Arrivals
from windows_pipeline.incremental.records import day_number
from windows_pipeline.incremental.silences import (
    MOST_SILENCES_MS,
    SEEN,
    heard_keys,
    unbroken,
)
from windows_pipeline.incremental.whole_episodes import episodes_of_days
from windows_pipeline.jobs.alerts import AlertsJob
from windows_pipeline.jobs.computed_days import computed_days_in
from windows_pipeline.jobs.job import published_days
from windows_pipeline.kernels.time import NEVER_MS
from windows_pipeline.kernels.windows.chunk import Closing
from windows_pipeline.storage.joins import join_on
from windows_pipeline.windows import has_silences

_OF_DAY = ("arrival_unit", "rule", "key", "episode_start")


def days_of_alerts(job: AlertsJob, spark: SparkSession) -> list[date]:
    """The days whose alerts are computed, also those without an alert."""
    computed = computed_days_in(spark, job.computed_days_table)
    return sorted(computed.union(published_days(job, spark)))


@dataclass(frozen=True)
class DayEpisodes:
    """The episodes of some days.

    Attributes:
        job: The definition.
        spark: The session.
        arrivals: What has arrived.
        days: The days, at least one.
    """

    job: AlertsJob
    spark: SparkSession
    arrivals: Arrivals
    days: Sequence[date]

    def listed(self) -> DataFrame:
        """The episodes that each day lists; see `episodes_of_days`."""
        alerts = standing(self._alerts(self._range))
        found = episodes(alerts, by=["arrival_unit"])
        earlier = self._earlier
        if earlier is not None:
            found = found.unionByName(earlier)
        final = self._final([*self._range, *self.following])
        rows = [(day, self.closed_ms(day)) for day in self.days]
        closes = small_frame(self.spark, rows, "listed_on date, _closed_ms bigint")
        return episodes_of_days(found, final, self.job.windows.spec, self.job.rules, closes)

    def changed_before(self, *, corrected: bool) -> set[tuple[date, str]]:
        """The earlier days and rules that opened a silence which the days end.

        Args:
            corrected: Whether the days were corrected: then silences count that go on, too, as the
                correction may have removed the record that ended them.
        """
        if self._earlier is None:
            return set()
        silent = self._earlier
        if not corrected:
            silent = join_on(silent, heard_keys(self._final(self._range)), ["key"], "semi")
        pairs = silent.select("arrival_unit", "rule").distinct().collect()
        return {(row["arrival_unit"], row["rule"]) for row in pairs}

    @cached_property
    def following(self) -> list[date]:
        """The days after the last one in which silences of the days are followed."""
        last_ms = self.closed_ms(self._range[-1])
        if last_ms is None or not self._has_silences:
            return []
        return [
            day
            for day, closing in self._closings.items()
            if day > self._range[-1] and closing.before_ms <= last_ms + MOST_SILENCES_MS
        ]

    def closed_ms(self, day: date) -> int | None:
        """The close time after a day; None if no window can be closed."""
        closing = self._closings.get(day)
        return None if closing is None or closing.after_ms == NEVER_MS else closing.after_ms

    def blocked_by(self, day: date) -> date | None:
        """The missing day that blocks a day; None if no day is missing before it."""
        return None if day in self._closings else self.arrivals.next_day

    @cached_property
    def _earlier(self) -> DataFrame | None:
        """The episodes of earlier days whose silence was open before the days; None if none was."""
        before = self._before
        if not before:
            return None
        alerts = standing(self._alerts(before))
        silent = alerts.where(F.col("record_count") == 0).select(*_OF_DAY, "window_end")
        # Most silent keys have a record on the day before, so the second pass looks at few keys.
        for days in (before[-1:], before):
            first = silent.agg(F.min("arrival_unit")).collect()[0][0]
            if first is None:
                return None
            windows = self._final([day for day in days if day >= first])
            silent = unbroken(silent, windows).localCheckpoint()
        if silent.isEmpty():
            return None
        of_silent = join_on(alerts, silent.drop("window_end"), _OF_DAY, "semi")
        return episodes(of_silent, by=["arrival_unit"]).localCheckpoint()

    @cached_property
    def _before(self) -> list[date]:
        """The days before the days whose silences may be open."""
        first = self._closings.get(self._range[0])
        if first is None or first.before_ms == NEVER_MS or not self._has_silences:
            return []
        return [
            day
            for day, closing in self._closings.items()
            if day < self._range[0] and closing.after_ms >= first.before_ms - MOST_SILENCES_MS
        ]

    @cached_property
    def _range(self) -> list[date]:
        """The days, and those between them."""
        first, last = min(self.days), max(self.days)
        between = {day for day in self._closings if first <= day <= last}
        return sorted(between.union(self.days))

    @cached_property
    def _closings(self) -> dict[date, Closing]:
        """The close times around each day that no missing day blocks, in order."""
        days = [arrival_unit.day for arrival_unit in self.arrivals.timeline.arrival_units]
        closings = self.arrivals.closings(days)
        return {day: closings[day_number(day)] for day in days}

    @property
    def _has_silences(self) -> bool:
        return has_silences(self.job.windows.spec)

    def _alerts(self, days: Sequence[date]) -> DataFrame:
        return self.job.window_tables.alerts.of_arrival_units(self.spark, days)

    def _final(self, days: Sequence[date]) -> DataFrame:
        final = self.job.window_tables.final_windows.of_arrival_units(self.spark, days)
        return final.select(*SEEN)
