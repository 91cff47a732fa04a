"""Stream times and watermark around every arrival unit: a scan over the arrival log.

The log has one row for each arrival unit and source partition, so it stays small however many
records there are. This module needs no Spark.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from itertools import accumulate

from windows_pipeline.kernels.time import NEVER_MS


@dataclass(frozen=True, slots=True)
class ArrivedPart:
    """A row of the log: a source partition's part of an arrival unit.

    Attributes:
        arrival_unit: The arrival day.
        source_partition: The source partition; None if the arrival unit has no accepted records.
        max_event_time_ms: The largest event time of the part; None without records.
        watermark_ms: The stored watermark after the part (rule A4); None if none was stored.
        batch: The micro-batch that ingested the part; None for a day that was ingested whole.
    """

    arrival_unit: date
    source_partition: str | None
    max_event_time_ms: int | None
    watermark_ms: int | None = None
    batch: int | None = None


@dataclass(frozen=True, slots=True)
class ArrivalUnit:
    """An arrival unit before the first missing one.

    Attributes:
        day: The arrival day.
        stream_time_before_ms: The stream time of each source partition before the arrival unit
            (rule A2).
        watermark_before_ms: The watermark before the arrival unit: the smallest stream time of the
            active source partitions, never falling (rule A4). Watermark less grace is the close
            time.
        watermark_after_ms: The watermark after the arrival unit.
        max_event_time_ms: The largest event time in the arrival unit; NEVER_MS without records.
    """

    day: date
    stream_time_before_ms: dict[str, int]
    watermark_before_ms: int
    watermark_after_ms: int
    max_event_time_ms: int


@dataclass(frozen=True, slots=True)
class Timeline:
    """The arrival units up to the first missing one, in order."""

    arrival_units: tuple[ArrivalUnit, ...]

    def arrival_unit(self, day: date) -> ArrivalUnit | None:
        """The arrival unit of a day; None if that day, or one before it, is missing."""
        if not self.arrival_units:
            return None
        index = (day - self.arrival_units[0].day).days
        return self.arrival_units[index] if 0 <= index < len(self.arrival_units) else None


def build_timeline(
    log: Iterable[ArrivedPart], first_day: date, idle_after_ms: int | None = None
) -> Timeline:
    """Scans the log from the first day to the first missing day (rules A2, A4).

    Args:
        log: The arrival log's rows, in any order.
        first_day: The pipeline's first arrival unit.
        idle_after_ms: A source partition that lags behind the furthest one by more is idle,
            and does not limit the watermark; None for no limit.
    """
    by_day: dict[date, list[ArrivedPart]] = {}
    for row in log:
        by_day.setdefault(row.arrival_unit, []).append(row)
    arrival_units: list[ArrivalUnit] = []
    stream_time_ms: dict[str, int] = {}
    watermark_ms = NEVER_MS
    day = first_day
    while day in by_day:
        before_ms, watermark_before_ms = dict(stream_time_ms), watermark_ms
        arrival_unit_max_ms = NEVER_MS
        for row in by_day[day]:
            stored_ms = NEVER_MS if row.watermark_ms is None else row.watermark_ms
            watermark_ms = max(watermark_ms, stored_ms)
            if row.source_partition is None or row.max_event_time_ms is None:
                continue
            arrival_unit_max_ms = max(arrival_unit_max_ms, row.max_event_time_ms)
            known_ms = stream_time_ms.get(row.source_partition, NEVER_MS)
            stream_time_ms[row.source_partition] = max(known_ms, row.max_event_time_ms)
        watermark_ms = max(watermark_ms, slowest_active(stream_time_ms, idle_after_ms))
        arrival_units.append(
            ArrivalUnit(day, before_ms, watermark_before_ms, watermark_ms, arrival_unit_max_ms)
        )
        day += timedelta(days=1)
    return Timeline(tuple(arrival_units))


def slowest_active(stream_time_ms: Mapping[str, int], idle_after_ms: int | None) -> int:
    """The smallest stream time of the source partitions that are not idle (rule A4)."""
    if not stream_time_ms:
        return NEVER_MS
    furthest_ms = max(stream_time_ms.values())
    idle_below_ms = NEVER_MS if idle_after_ms is None else furthest_ms - idle_after_ms
    return min(time_ms for time_ms in stream_time_ms.values() if time_ms >= idle_below_ms)


@dataclass(frozen=True, slots=True)
class Read:
    """The records of one arrival unit that the windows of a computed day need.

    Attributes:
        computed_day: The arrival day whose windows are computed.
        arrival_unit: The arrival day whose records are read.
        from_ms: The event time from which records matter. The computed day's own records are all
            read, whatever their event time.
    """

    computed_day: date
    arrival_unit: date
    from_ms: int


def reads_from(timeline: Timeline, from_ms: Mapping[date, int]) -> list[Read]:
    """The arrival units whose records the windows of some days need.

    Args:
        timeline: The arrival units.
        from_ms: For each computed day, the event time from which records matter to its windows.
    """
    # If no arrival unit up to one has so late an event time, no earlier one has.
    latest_so_far_ms = list(
        accumulate((arrival_unit.max_event_time_ms for arrival_unit in timeline.arrival_units), max)
    )
    reads = []
    for day, earliest_ms in from_ms.items():
        reads.append(Read(day, day, earliest_ms))
        index = (day - timeline.arrival_units[0].day).days - 1
        while index >= 0 and latest_so_far_ms[index] >= earliest_ms:
            arrival_unit = timeline.arrival_units[index]
            if arrival_unit.max_event_time_ms >= earliest_ms:
                reads.append(Read(day, arrival_unit.day, earliest_ms))
            index -= 1
    return reads


def close_ms(stream_time_ms: int, delay_ms: int) -> int:
    """Stream time, or watermark, less the delay (rules A3, A4); NEVER_MS stays NEVER_MS."""
    return NEVER_MS if stream_time_ms == NEVER_MS else stream_time_ms - delay_ms
