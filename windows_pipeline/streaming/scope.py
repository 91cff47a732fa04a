"""Which windows a micro-batch closes, and which records they need (rules A4, H1)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

from pyspark.sql import Column
from pyspark.sql import functions as F

from windows_pipeline.arrival.watermark import Read, Timeline, build_timeline, close_ms
from windows_pipeline.engine.literals import coarse_from_ms
from windows_pipeline.incremental.closed_days import ClosedDays
from windows_pipeline.kernels.time import NEVER_MS
from windows_pipeline.kernels.windows.chunk import Closing
from windows_pipeline.storage.instants import ms_to_timestamp
from windows_pipeline.streaming.log_state import LogState


@dataclass(frozen=True)
class BatchScope:
    """The arrival units and close times of a micro-batch.

    Attributes:
        timeline: All arrival units up to and including the micro-batch's.
        arrival_units: The micro-batch's arrival days, in order; windows are computed for the last.
        closed_days: The close times before the micro-batch and after each of its arrival days.
    """

    timeline: Timeline
    arrival_units: tuple[date, ...]
    closed_days: ClosedDays

    @property
    def closing(self) -> Closing:
        """The close times before and after the micro-batch."""
        return self.closed_days.closing

    def not_before(self, from_ms: int) -> Column:
        """An instant at or before a time, to compare with a table's column.

        Spark uses the comparison to skip files of older records.
        """
        return ms_to_timestamp(F.lit(coarse_from_ms(from_ms, self.closing.after_ms)))

    @property
    def with_records(self) -> set[date]:
        """The arrival units that have records."""
        return {
            arrival_unit.day
            for arrival_unit in self.timeline.arrival_units
            if arrival_unit.max_event_time_ms > NEVER_MS
        }

    def reads(self, from_ms: int) -> list[Read]:
        """The arrival units that windows read: the micro-batch's, and those from `from_ms` on."""
        return [
            Read(self.arrival_units[-1], arrival_unit.day, from_ms)
            for arrival_unit in self.timeline.arrival_units
            if arrival_unit.max_event_time_ms >= from_ms or arrival_unit.day in self.arrival_units
        ]


def scope_of(
    before: LogState,
    after: LogState,
    batch: int,
    delay_ms: int,
    first_day: date,
    idle_after_ms: int | None,
) -> BatchScope:
    """Finds the arrival units and close times of a micro-batch.

    Args:
        before: The stream before the micro-batch.
        after: The stream after it.
        batch: The micro-batch's number.
        delay_ms: How far the windows' close time lies behind the watermark (rule A3).
        first_day: The pipeline's first arrival unit.
        idle_after_ms: How far a source partition may lag and still hold windows open.
    """
    timeline = build_timeline(after.log, first_day, idle_after_ms)
    arrival_units = tuple(sorted({row.arrival_unit for row in after.log if row.batch == batch}))
    after_ms = {
        unit.day: close_ms(unit.watermark_after_ms, delay_ms)
        for unit in timeline.arrival_units
        if unit.day in arrival_units[:-1]
    }
    after_ms[arrival_units[-1]] = close_ms(after.watermark_ms, delay_ms)
    closed_days = ClosedDays(close_ms(before.watermark_ms, delay_ms), after_ms)
    return BatchScope(timeline, arrival_units, closed_days)
