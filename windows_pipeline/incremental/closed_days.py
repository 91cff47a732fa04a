"""Which of some consecutive arrival days closed a window, or passed another instant (rule A4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date

from pyspark.sql import Column
from pyspark.sql import functions as F

from windows_pipeline.arrival.watermark import ArrivalUnit, close_ms
from windows_pipeline.engine.literals import literal
from windows_pipeline.kernels.time import NEVER_MS
from windows_pipeline.kernels.windows.chunk import Closing


@dataclass(frozen=True)
class ClosedDays:
    """The close times of consecutive arrival days.

    Attributes:
        before_ms: The close time before the first day.
        after_ms: The close time after each day, in order; empty if a missing day blocks them.
    """

    before_ms: int
    after_ms: Mapping[date, int]

    @staticmethod
    def of(arrival_units: Sequence[ArrivalUnit], delay_ms: int) -> ClosedDays:
        """The close times of consecutive days of the timeline.

        Args:
            arrival_units: The days, in order.
            delay_ms: How far close times lie behind the watermark (rule A3).
        """
        before_ms = NEVER_MS
        if arrival_units:
            before_ms = close_ms(arrival_units[0].watermark_before_ms, delay_ms)
        return ClosedDays(
            before_ms,
            {unit.day: close_ms(unit.watermark_after_ms, delay_ms) for unit in arrival_units},
        )

    @property
    def closing(self) -> Closing:
        """The close times before and after all days; there must be a day."""
        return Closing(self.before_ms, max(self.after_ms.values()))

    def closing_day(self, last_ms: Column) -> Column:
        """The first day whose close time passed an instant, or else the last day.

        Args:
            last_ms: The last instant of a window (rule B5), in milliseconds since 1970.
        """
        *earlier, last = self.after_ms
        passed = [(day, last_ms < literal(self.after_ms[day], last_ms)) for day in earlier]
        return first_arrival_unit(passed, last)

    def ended_in(self, last_ms: Column) -> Column:
        """The day whose close time passed an instant; null if none of these did."""
        if not self.after_ms:
            return F.lit(None).cast("date")
        before_ms, after_ms = self.closing
        is_passed = (last_ms >= literal(before_ms, last_ms)) & (
            last_ms < literal(after_ms, last_ms)
        )
        return F.when(is_passed, self.closing_day(last_ms))


def first_arrival_unit(arrival_units: Sequence[tuple[date, Column]], last: date) -> Column:
    """The first arrival unit whose condition holds.

    The expression is a tree, not a chain: Spark analyzes expressions recursively, and a chain of
    a year's days overflows its stack.

    Args:
        arrival_units: Arrival units in order, each with its condition. If an arrival unit's
            condition holds, those of all later arrival units hold, too.
        last: The arrival unit to return if no condition holds.
    """
    if not arrival_units:
        return F.lit(last)
    middle = len(arrival_units) // 2
    arrival_unit, holds = arrival_units[middle]
    before = first_arrival_unit(arrival_units[:middle], arrival_unit)
    return F.when(holds, before).otherwise(first_arrival_unit(arrival_units[middle + 1 :], last))
