"""Says from the arrival log what some units' windows need (rules A2 to A4)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from windows_pipeline.arrival.log import ArrivalLog, arrivals_in
from windows_pipeline.arrival.merge import Merge
from windows_pipeline.arrival.watermark import (
    Read,
    Timeline,
    Unit,
    build_timeline,
    close_ms,
    reads_from,
)
from windows_pipeline.compat.local_frame import small_frame
from windows_pipeline.config import Pipeline
from windows_pipeline.incremental.lookback import reached_from_ms
from windows_pipeline.incremental.records import records_to_read, target_of
from windows_pipeline.kernels.time import NEVER_MS
from windows_pipeline.kernels.windows.chunk import Closing
from windows_pipeline.windows import GracedRows, PipelineWindows

Facts = dict[str, int | str]
"""What a run reports of a unit: `rejected`, `late`, `closed_through_ms`, `held_back_by`."""


@dataclass(frozen=True)
class Arrivals:
    """What has arrived, as the windows of one definition see it."""

    log: ArrivalLog
    timeline: Timeline
    spec: PipelineWindows
    first_day: date

    def closings(self, days: Sequence[date]) -> dict[int, Closing]:
        """The close times around each day that is not held back, by target number."""
        return {target_of(unit.day): self._closing(unit) for unit in self.units(days)}

    def units(self, days: Sequence[date]) -> list[Unit]:
        """The units of those days that are not held back."""
        found = (self.timeline.unit(day) for day in days)
        return [unit for unit in found if unit is not None]

    def _closing(self, unit: Unit) -> Closing:
        return Closing(
            close_ms(unit.watermark_before_ms, self.spec.close_delay_ms),
            close_ms(unit.watermark_after_ms, self.spec.close_delay_ms),
        )

    def rejected(self, days: Sequence[date]) -> dict[date, int]:
        """How many records of each ingested day were rejected."""
        wanted = set(days)
        # Each row of a batch's part of a unit says the same.
        parts = {
            (row.arrival_unit, row.batch): row.unit_rejected
            for row in self.log
            if row.arrival_unit in wanted
        }
        rejected: dict[date, int] = {}
        for (unit, _), of_part in parts.items():
            rejected[unit] = rejected.get(unit, 0) + of_part
        return rejected

    def merge(self, idle_after_ms: int | None) -> Merge:
        """How far the merge of the source partitions has come with what is not held back."""
        ready = (row for row in self.log if row.arrival_unit < self.next_day)
        return Merge(idle_after_ms).after(arrivals_in(ready))

    @property
    def next_day(self) -> date:
        """The first day that is not there: what later days wait for."""
        return self.first_day + timedelta(days=len(self.timeline.units))

    def reads(self, raw_events: DataFrame, days: Sequence[date]) -> list[Read]:
        """The units whose records the windows of these days need."""
        closes_ms = {unit.day: self._closing(unit).before_ms for unit in self.units(days)}
        # What came later may only lead further back than needed.
        arrived = raw_events.where(F.col("arrival_unit") <= F.lit(max(days)))
        from_ms = reached_from_ms(arrived, self.spec, closes_ms.values())
        return reads_from(self.timeline, {day: from_ms[at] for day, at in closes_ms.items()})

    def records(self, raw_events: DataFrame, days: Sequence[date]) -> DataFrame:
        """The records that the windows of these days need; see `records_to_read`."""
        return self.records_of(raw_events, days, self.reads(raw_events, days))

    def records_of(
        self, raw_events: DataFrame, days: Sequence[date], reads: Sequence[Read]
    ) -> DataFrame:
        """The same, where it is known which units are read."""
        if isinstance(self.spec, GracedRows):
            targets = [unit.day for unit in self.units(days)]
            earliest_ms = min((read.from_ms for read in reads), default=NEVER_MS)
            return self._records_once(raw_events, targets, earliest_ms)
        return records_to_read(raw_events, self.timeline, reads, self.spec.close_delay_ms)

    def _records_once(self, raw_events: DataFrame, days: Sequence[date], from_ms: int) -> DataFrame:
        """Each record once, with the last of the days as its target."""
        reads = reads_from(self.timeline, {max(days): from_ms} if days else {})
        read = {one.arrival_unit for one in reads}
        # However late the records of a day are, the day has to say so.
        reads += [Read(max(days), day, from_ms) for day in days if day not in read]
        delay_ms, is_new = self.spec.close_delay_ms, F.col("arrival_unit").isin(list(days))
        return records_to_read(raw_events, self.timeline, reads, delay_ms, is_new=is_new)


def arrivals_of(pipeline: Pipeline, log: ArrivalLog, spec: PipelineWindows) -> Arrivals:
    """What the log of a pipeline says to the windows of one definition."""
    first_day = pipeline.partitions.start
    timeline = build_timeline(arrivals_in(log), first_day, pipeline.source.idle_after)
    return Arrivals(log, timeline, spec, first_day)


def units_frame(spark: SparkSession, arrivals: Arrivals, days: Sequence[date]) -> DataFrame:
    """A row a day: what was landed, and the close times around it.

    Returns:
        `arrival_unit`, `_computed_day`, `ingested` (bigint: accepted and rejected),
        `_close_before_ms` and
        `_close_after_ms` (bigint, null where held back) and `held_back_by` (date: the missing
        unit, null where none is).
    """
    closings = arrivals.closings(days)
    ingested = dict.fromkeys(days, 0) | arrivals.rejected(days)
    for row in arrivals.log:
        if row.arrival_unit in ingested:
            ingested[row.arrival_unit] += row.rows
    rows = []
    for day in days:
        closing = closings.get(target_of(day))
        before_ms, after_ms = closing or (None, None)
        waits_for = None if closing else arrivals.next_day
        rows.append((day, target_of(day), ingested[day], before_ms, after_ms, waits_for))
    return small_frame(
        spark,
        rows,
        "arrival_unit date, _computed_day int, ingested bigint, _close_before_ms bigint, "
        "_close_after_ms bigint, held_back_by date",
    )


def stretches_frame(spark: SparkSession, arrivals: Arrivals, days: Sequence[date]) -> DataFrame:
    """A row a day that is not held back: since when there is no gap, and what was before that.

    What goes on from unit to unit, as the numbers of firings, can be followed through days
    without a gap only.

    Returns:
        `arrival_unit`, `since` (date) and `_stream_before_ms` (bigint: stream time before `since`).
    """
    rows: list[tuple[date, date, int]] = []
    for unit in arrivals.units(sorted(set(days))):
        since, before_ms = unit.day, unit.watermark_before_ms
        if rows and rows[-1][0] == unit.day - timedelta(days=1):
            _, since, before_ms = rows[-1]
        rows.append((unit.day, since, before_ms))
    return small_frame(spark, rows, "arrival_unit date, since date, _stream_before_ms bigint")


def day_facts(arrivals: Arrivals, days: Sequence[date]) -> dict[date, Facts]:
    """What is to be said of each day: rejected records, how far it closed, what it waits for."""
    facts: dict[date, Facts] = {
        day: {"rejected": rejected} for day, rejected in arrivals.rejected(days).items()
    }
    closings = arrivals.closings(days)
    for day in days:
        closing = closings.get(target_of(day))
        of_day = facts.setdefault(day, {})
        if closing is None:
            of_day["held_back_by"] = arrivals.next_day.isoformat()
        elif closing.after_ms != NEVER_MS:
            of_day["closed_through_ms"] = closing.after_ms
    return facts
