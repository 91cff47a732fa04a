"""What a micro-batch closes, and which records its windows need (rules A4, H1)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

from windows_pipeline.arrival.log import arrivals_in
from windows_pipeline.arrival.watermark import Read, Timeline, build_timeline, close_ms
from windows_pipeline.kernels.time import NEVER_MS
from windows_pipeline.kernels.windows.chunk import Closing
from windows_pipeline.streaming.standing import Standing


@dataclass(frozen=True)
class BatchScope:
    """The windows that a micro-batch concerns.

    Attributes:
        timeline: The units, the micro-batch's among them.
        units: Its arrival days, in order; the last one is the target that windows have.
        closing: The close times around it.
        closed_by: By arrival day of its own but the last, in order, the close time after it, where
            the day raised that.
    """

    timeline: Timeline
    units: tuple[date, ...]
    closing: Closing
    closed_by: tuple[tuple[date, int], ...]

    @property
    def with_records(self) -> set[date]:
        """The units of the log that have records."""
        return {unit.day for unit in self.timeline.units if unit.max_event_time_ms > NEVER_MS}

    def reads(self, from_ms: int) -> list[Read]:
        """The units whose records it needs, where only those from an event time on matter."""
        return [
            Read(self.units[-1], unit.day, from_ms)
            for unit in self.timeline.units
            if unit.max_event_time_ms >= from_ms or unit.day in self.units
        ]


def scope_of(
    before: Standing,
    after: Standing,
    batch: int,
    delay_ms: int,
    first_day: date,
    idle_after_ms: int | None,
) -> BatchScope:
    """Tells what a micro-batch concerns.

    Args:
        before: Where the stream stood before it.
        after: Where it stands with it.
        batch: Its number.
        delay_ms: How far the windows' close time lies behind stream time (rule A3).
        first_day: The pipeline's first unit.
        idle_after_ms: How far a source partition may lag and still hold windows open.
    """
    timeline = build_timeline(arrivals_in(after.log), first_day, idle_after_ms)
    units = tuple(sorted({row.arrival_unit for row in after.log if row.batch == batch}))
    closing = Closing(
        close_ms(before.watermark_ms, delay_ms), close_ms(after.watermark_ms, delay_ms)
    )
    earlier = set(units[:-1])
    closed_by = tuple(
        (unit.day, close_ms(unit.watermark_after_ms, delay_ms))
        for unit in timeline.units
        if unit.day in earlier and unit.watermark_after_ms > unit.watermark_before_ms
    )
    return BatchScope(timeline, units, closing, closed_by)
