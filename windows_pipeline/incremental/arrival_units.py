"""What the arrival log says about computed days: close times, reads, missing days (A2 to A4)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from windows_pipeline.arrival.log import ArrivalLog
from windows_pipeline.arrival.merge import Merge
from windows_pipeline.arrival.watermark import (
    ArrivalUnit,
    Read,
    Timeline,
    build_timeline,
    close_ms,
    partitions_after,
    reads_from,
)
from windows_pipeline.compat.local_frame import small_frame
from windows_pipeline.config import Pipeline
from windows_pipeline.incremental.lookback import lookback_from_ms
from windows_pipeline.incremental.records import records_to_read
from windows_pipeline.kernels.time import NEVER_MS
from windows_pipeline.kernels.windows.chunk import Closing
from windows_pipeline.text.instants import day_number
from windows_pipeline.windows import PipelineWindows

Facts = dict[str, int | str]
"""What a run reports of a day: `rejected`, `late`, `closed_through_ms`, `blocked_by`."""
_MOST_NAMES = 20
"""The most source partitions that a fact lists."""


@dataclass(frozen=True)
class Arrivals:
    """What has arrived, for the windows of one definition.

    Attributes:
        log: The arrival log.
        timeline: Stream times and watermarks of the arrival units before the first missing one.
        spec: The windows.
        first_day: The pipeline's first arrival unit.
    """

    log: ArrivalLog
    timeline: Timeline
    spec: PipelineWindows
    first_day: date

    def closings(self, days: Sequence[date]) -> dict[int, Closing]:
        """The close times around each day that no missing day blocks, by day number."""
        return {
            day_number(arrival_unit.day): self._closing(arrival_unit)
            for arrival_unit in self.arrival_units(days)
        }

    def arrival_units(self, days: Sequence[date]) -> list[ArrivalUnit]:
        """The arrival units of the days that no missing day blocks."""
        found = (self.timeline.arrival_unit(day) for day in days)
        return [arrival_unit for arrival_unit in found if arrival_unit is not None]

    def _closing(self, arrival_unit: ArrivalUnit) -> Closing:
        return Closing(
            close_ms(arrival_unit.watermark_before_ms, self.spec.close_delay_ms),
            close_ms(arrival_unit.watermark_after_ms, self.spec.close_delay_ms),
        )

    def accepted(self, days: Sequence[date]) -> dict[date, int]:
        """How many records of each day were accepted; 0 for a day that is not ingested."""
        accepted = dict.fromkeys(days, 0)
        for row in self.log:
            if row.arrival_unit in accepted:
                accepted[row.arrival_unit] += row.rows
        return accepted

    def rejected(self, days: Sequence[date]) -> dict[date, int]:
        """How many records of each ingested day were rejected."""
        wanted = set(days)
        # All rows of a micro-batch's part of an arrival unit repeat its number of rejected records.
        parts = {
            (row.arrival_unit, row.batch): row.arrival_unit_rejected
            for row in self.log
            if row.arrival_unit in wanted
        }
        rejected: dict[date, int] = {}
        for (arrival_unit, _), of_part in parts.items():
            rejected[arrival_unit] = rejected.get(arrival_unit, 0) + of_part
        return rejected

    def partition_facts(self, days: Sequence[date], idle_after_ms: int | None) -> dict[date, Facts]:
        """What to report of the source partitions of each day that no missing day blocks (A4)."""
        facts: dict[date, Facts] = {}
        for arrival_unit in self.arrival_units(days):
            rows = (row for row in self.log if row.arrival_unit == arrival_unit.day)
            found = partitions_after(arrival_unit, rows, idle_after_ms)
            facts[arrival_unit.day] = {name: _listed(of) for name, of in found.items() if of}
        return facts

    def merge(self, idle_after_ms: int | None) -> Merge:
        """The merge of the source partitions of the arrival units before the first missing one."""
        ready = (row for row in self.log if row.arrival_unit < self.next_day)
        return Merge(idle_after_ms).after(ready)

    @property
    def next_day(self) -> date:
        """The first missing day; it blocks all later ones."""
        return self.first_day + timedelta(days=len(self.timeline.arrival_units))

    def reads(self, raw_events: DataFrame, days: Sequence[date]) -> list[Read]:
        """The arrival units whose records the windows of these days need."""
        closes_ms = {
            arrival_unit.day: self._closing(arrival_unit).before_ms
            for arrival_unit in self.arrival_units(days)
        }
        # A superset is harmless: more records can only lengthen the look-back.
        arrived = raw_events.where(F.col("arrival_unit") <= F.lit(max(days)))
        from_ms = lookback_from_ms(arrived, self.spec, closes_ms.values())
        return reads_from(self.timeline, {day: from_ms[at] for day, at in closes_ms.items()})

    def records(self, raw_events: DataFrame, days: Sequence[date]) -> DataFrame:
        """The records that the windows of these days need; see `records_to_read`."""
        return self.records_of(raw_events, days, self.reads(raw_events, days))

    def records_of(
        self, raw_events: DataFrame, days: Sequence[date], reads: Sequence[Read]
    ) -> DataFrame:
        """The records that the windows of these days need, from known arrival units."""
        if self.spec.row_order:  # each record has a row of its own, final on one day
            unblocked = [arrival_unit.day for arrival_unit in self.arrival_units(days)]
            earliest_ms = min((read.from_ms for read in reads), default=NEVER_MS)
            return self._records_once(raw_events, unblocked, earliest_ms)
        return records_to_read(raw_events, self.timeline, reads, self.spec.close_delay_ms)

    def _records_once(self, raw_events: DataFrame, days: Sequence[date], from_ms: int) -> DataFrame:
        """Each record once, as if the last of the days were the only computed day."""
        reads = reads_from(self.timeline, {max(days): from_ms} if days else {})
        arrival_units_read = {read.arrival_unit for read in reads}
        # A day reads all its own records, because it lists the late ones.
        reads += [Read(max(days), day, from_ms) for day in days if day not in arrival_units_read]
        delay_ms, is_new = self.spec.close_delay_ms, F.col("arrival_unit").isin(list(days))
        return records_to_read(raw_events, self.timeline, reads, delay_ms, is_new=is_new)


def arrivals_of(pipeline: Pipeline, log: ArrivalLog, spec: PipelineWindows) -> Arrivals:
    """What has arrived, by a pipeline's log, for the windows of one definition."""
    first_day = pipeline.partitions.start
    timeline = build_timeline(log, first_day, pipeline.source.idle_after)
    return Arrivals(log, timeline, spec, first_day)


def arrival_units_frame(spark: SparkSession, arrivals: Arrivals, days: Sequence[date]) -> DataFrame:
    """A row a day: how many records were ingested, and the close times around the day.

    Returns:
        `arrival_unit`, `_computed_day`, `ingested` (bigint: accepted and rejected records),
        `_close_before_ms` and `_close_after_ms` (bigint; null if a missing day blocks it), and
        `blocked_by` (date: the missing day; null if none is missing).
    """
    closings = arrivals.closings(days)
    accepted, rejected = arrivals.accepted(days), arrivals.rejected(days)
    rows = []
    for day in days:
        closing = closings.get(day_number(day))
        before_ms, after_ms = closing or (None, None)
        blocked_by = None if closing else arrivals.next_day
        ingested = accepted[day] + rejected.get(day, 0)
        rows.append((day, day_number(day), ingested, before_ms, after_ms, blocked_by))
    return small_frame(
        spark,
        rows,
        "arrival_unit date, _computed_day int, ingested bigint, _close_before_ms bigint, "
        "_close_after_ms bigint, blocked_by date",
    )


def closing_frame(spark: SparkSession, arrivals: Arrivals, days: Sequence[date]) -> DataFrame:
    """A row a day: how many records were accepted, and how far they moved the watermark.

    Returns:
        `arrival_unit`, `records` (bigint), `_watermark_before_ms`, `_watermark_after_ms` and
        `_closed_through_ms` (bigint: the close time after the day). The times are null if a missing
        day blocks the day, or before the first record.
    """
    accepted = arrivals.accepted(days)
    rows = []
    for day in days:
        arrival_unit, times_ms = arrivals.timeline.arrival_unit(day), (NEVER_MS, NEVER_MS, NEVER_MS)
        if arrival_unit is not None:
            closed_ms = close_ms(arrival_unit.watermark_after_ms, arrivals.spec.close_delay_ms)
            times_ms = (
                arrival_unit.watermark_before_ms,
                arrival_unit.watermark_after_ms,
                closed_ms,
            )
        known_ms = [None if ms == NEVER_MS else ms for ms in times_ms]
        rows.append((day, accepted[day], *known_ms))
    return small_frame(
        spark,
        rows,
        "arrival_unit date, records bigint, _watermark_before_ms bigint, "
        "_watermark_after_ms bigint, _closed_through_ms bigint",
    )


def gapless_days_frame(spark: SparkSession, arrivals: Arrivals, days: Sequence[date]) -> DataFrame:
    """A row a day that no missing day blocks: the start of its run of consecutive days.

    Checks that compare a day with the day before, such as those of firing numbers, hold only
    within such a run.

    Returns:
        `arrival_unit`, `_since` (date: the first day of the run) and `_watermark_before_ms`
        (bigint: the watermark before that day).
    """
    rows: list[tuple[date, date, int]] = []
    for arrival_unit in arrivals.arrival_units(sorted(set(days))):
        since, before_ms = arrival_unit.day, arrival_unit.watermark_before_ms
        if rows and rows[-1][0] == arrival_unit.day - timedelta(days=1):
            _, since, before_ms = rows[-1]
        rows.append((arrival_unit.day, since, before_ms))
    return small_frame(spark, rows, "arrival_unit date, _since date, _watermark_before_ms bigint")


def _listed(names: Sequence[str]) -> str:
    more = len(names) - _MOST_NAMES
    return ", ".join([*names[:_MOST_NAMES], *([f"and {more:,} more"] if more > 0 else [])])


def day_facts(arrivals: Arrivals, days: Sequence[date]) -> dict[date, Facts]:
    """What to report of each day: rejected records, its close time, the day that blocks it."""
    facts: dict[date, Facts] = {
        day: {"rejected": rejected} for day, rejected in arrivals.rejected(days).items()
    }
    closings = arrivals.closings(days)
    for day in days:
        closing = closings.get(day_number(day))
        of_day = facts.setdefault(day, {})
        if closing is None:
            of_day["blocked_by"] = arrivals.next_day.isoformat()
        elif closing.after_ms != NEVER_MS:
            of_day["closed_through_ms"] = closing.after_ms
    return facts
