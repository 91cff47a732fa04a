"""Stream time and close time of every arrival unit: a prefix scan over the arrival log.

Nothing here knows Spark: the log has a row for each unit and source partition, so it is small
whatever the records are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from itertools import accumulate

from windows_pipeline.kernels.time import NEVER_MS


@dataclass(frozen=True, slots=True)
class Arrival:
    """A source partition's part of an arrival unit, as the log has it.

    Attributes:
        arrival_unit: The arrival day.
        source_partition: None in the row of a unit without accepted records.
        max_event_time_ms: The largest event time in it; None without records.
        watermark_ms: The stream time in force after it, where it was decided on and stored (rule
            A4); else None.
        batch: The micro-batch that brought it; None of a day that was ingested whole.
    """

    arrival_unit: date
    source_partition: str | None
    max_event_time_ms: int | None
    watermark_ms: int | None = None
    batch: int | None = None


@dataclass(frozen=True, slots=True)
class Unit:
    """An arrival unit in the contiguous prefix of the log.

    Attributes:
        day: The arrival day.
        stream_time_before_ms: By source partition, stream time before the unit (rule A2).
        watermark_before_ms: The stream time in force before it: the smallest over the active
            source partitions, never falling (rule A4). Less grace it is the close time.
        watermark_after_ms: The same after it.
        max_event_time_ms: The largest event time in it, NEVER_MS without records.
    """

    day: date
    stream_time_before_ms: dict[str, int]
    watermark_before_ms: int
    watermark_after_ms: int
    max_event_time_ms: int


@dataclass(frozen=True, slots=True)
class Timeline:
    """The units up to the first one that is missing, in order."""

    units: tuple[Unit, ...]

    def unit(self, day: date) -> Unit | None:
        """The unit of a day, None where it is past the prefix."""
        if not self.units:
            return None
        place = (day - self.units[0].day).days
        return self.units[place] if 0 <= place < len(self.units) else None


def build_timeline(
    log: Iterable[Arrival], first_day: date, idle_after_ms: int | None = None
) -> Timeline:
    """Scans the log from the first day to the first gap (rules A2, A4).

    Args:
        log: The arrival log's rows, in any order.
        first_day: The pipeline's first unit.
        idle_after_ms: How far a source partition may lag behind the furthest one and still
            hold windows open; None for no limit.
    """
    by_day: dict[date, list[Arrival]] = {}
    for row in log:
        by_day.setdefault(row.arrival_unit, []).append(row)
    units: list[Unit] = []
    stream_time: dict[str, int] = {}
    watermark = NEVER_MS
    day = first_day
    while day in by_day:
        before, before_ms = dict(stream_time), watermark
        unit_max = NEVER_MS
        for row in by_day[day]:
            watermark = max(watermark, NEVER_MS if row.watermark_ms is None else row.watermark_ms)
            if row.source_partition is None or row.max_event_time_ms is None:
                continue
            unit_max = max(unit_max, row.max_event_time_ms)
            known = stream_time.get(row.source_partition, NEVER_MS)
            stream_time[row.source_partition] = max(known, row.max_event_time_ms)
        watermark = max(watermark, slowest_active(stream_time, idle_after_ms))
        units.append(Unit(day, before, before_ms, watermark, unit_max))
        day += timedelta(days=1)
    return Timeline(tuple(units))


def slowest_active(stream_time: Mapping[str, int], idle_after_ms: int | None) -> int:
    """The smallest stream time of the source partitions that are not idle (rule A4)."""
    if not stream_time:
        return NEVER_MS
    furthest = max(stream_time.values())
    idle_below = NEVER_MS if idle_after_ms is None else furthest - idle_after_ms
    return min(time for time in stream_time.values() if time >= idle_below)


@dataclass(frozen=True, slots=True)
class Read:
    """What the windows of one unit need from another's records.

    Attributes:
        target: The unit whose windows are computed.
        unit: The unit whose records are read.
        from_ms: Only records from this event time on can matter, but for the target's own,
            which are all read.
    """

    target: date
    arrival_unit: date
    from_ms: int


def reads_from(timeline: Timeline, from_ms: Mapping[date, int]) -> list[Read]:
    """Which units' records the windows of some units need.

    Args:
        timeline: The units.
        from_ms: By target day, from which event time on records matter to its windows.
    """
    # Before a unit whose prefix maximum is too early, every unit is.
    reached_ms = list(accumulate((unit.max_event_time_ms for unit in timeline.units), max))
    reads = []
    for day, earliest_ms in from_ms.items():
        reads.append(Read(day, day, earliest_ms))
        place = (day - timeline.units[0].day).days - 1
        while place >= 0 and reached_ms[place] >= earliest_ms:
            unit = timeline.units[place]
            if unit.max_event_time_ms >= earliest_ms:
                reads.append(Read(day, unit.day, earliest_ms))
            place -= 1
    return reads


def close_ms(stream_time_ms: int, delay_ms: int) -> int:
    """The close time, that far behind stream time (rule A3); never stays never."""
    return NEVER_MS if stream_time_ms == NEVER_MS else stream_time_ms - delay_ms
