"""Stream times and watermark around every arrival unit: a scan over the arrival log.

The log has one row for each arrival unit and source partition, so it stays small however many
records there are. This module needs no Spark.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from itertools import accumulate, groupby
from operator import itemgetter
from typing import NamedTuple

from windows_pipeline.kernels.time import NEVER_MS


class LogRow(NamedTuple):
    """A row of the arrival log: a source partition's part of an arrival unit.

    Attributes:
        arrival_unit: The arrival day.
        source_partition: The source partition; None if the arrival unit has no accepted records.
        max_event_time_ms: The largest event time of the part; None without records.
        rows: How many records were accepted.
        arrival_unit_rejected: How many records of the whole arrival unit were rejected.
        last_offset: The last record's offset.
        watermark_ms: The stored watermark after the part (rule A4); None if none was stored.
        batch: The micro-batch that ingested the part; None for a day that was ingested whole.
        stream: The stream that ingested the part.
        first_offset: The first record's offset.
        ambiguous: How many of the records have a local time that occurs twice.
    """

    arrival_unit: date
    source_partition: str | None
    max_event_time_ms: int | None
    rows: int = 0
    arrival_unit_rejected: int = 0
    last_offset: int | None = None
    watermark_ms: int | None = None
    batch: int | None = None
    stream: str | None = None
    first_offset: int | None = None
    ambiguous: int = 0


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
    log: Iterable[LogRow], first_day: date, idle_after_ms: int | None = None
) -> Timeline:
    """Scans the log from the first day to the first missing day (rules A2, A4).

    Args:
        log: The arrival log's rows, in any order.
        first_day: The pipeline's first arrival unit.
        idle_after_ms: A source partition that lags behind the furthest one by more is idle,
            and does not limit the watermark; None for no limit.
    """
    by_day: dict[date, list[LogRow]] = {}
    for row in log:
        by_day.setdefault(row.arrival_unit, []).append(row)
    arrival_units: list[ArrivalUnit] = []
    stream_time_ms: dict[str, int] = {}
    watermark_ms = NEVER_MS
    day = first_day
    while day in by_day:
        before_ms, watermark_before_ms = stream_time_ms, watermark_ms
        rows = by_day[day]
        times = [(row.source_partition, row.max_event_time_ms) for row in rows]
        stream_time_ms = stream_times_after(before_ms, times)
        stored_ms = (row.watermark_ms for row in rows if row.watermark_ms is not None)
        slowest_ms = slowest_active(stream_time_ms, idle_after_ms)
        watermark_ms = max(watermark_ms, slowest_ms, *stored_ms)
        latest_ms = max((time_ms for _, time_ms in times if time_ms is not None), default=NEVER_MS)
        arrival_units.append(
            ArrivalUnit(day, before_ms, watermark_before_ms, watermark_ms, latest_ms)
        )
        day += timedelta(days=1)
    return Timeline(tuple(arrival_units))


def stream_times_after(
    before_ms: Mapping[str, int], arrived: Iterable[tuple[str | None, int | None]]
) -> dict[str, int]:
    """The stream time of each source partition after more of its records (rule A2).

    Args:
        before_ms: The stream times before.
        arrived: Source partitions, and the largest event time of their records; a None in either
            place means that there are no records.
    """
    stream_time_ms = dict(before_ms)
    for partition, time_ms in arrived:
        if partition is not None and time_ms is not None:
            stream_time_ms[partition] = max(stream_time_ms.get(partition, NEVER_MS), time_ms)
    return stream_time_ms


def partitions_after(
    arrival_unit: ArrivalUnit, arrived: Iterable[LogRow], idle_after_ms: int | None
) -> dict[str, list[str]]:
    """The source partitions after an arrival unit, by what they do to the watermark (rule A4).

    Args:
        arrival_unit: The arrival unit.
        arrived: The arrival unit's rows of the log.
        idle_after_ms: See `build_timeline`.

    Returns:
        Sorted names: `partitions_without_records`, those that had records before, but none in the
        arrival unit; `idle_partitions`, those that lag so far behind the furthest one that they
        hold nothing open; and `slowest_partitions`, the active ones with the smallest stream time,
        which hold the watermark back.
    """
    times = [(row.source_partition, row.max_event_time_ms) for row in arrived]
    seen = {name for name, ms in times if ms is not None}
    time_ms = stream_times_after(arrival_unit.stream_time_before_ms, times)
    slowest_ms = slowest_active(time_ms, idle_after_ms)
    return {
        "partitions_without_records": sorted(time_ms.keys() - seen),
        "idle_partitions": sorted(name for name, ms in time_ms.items() if ms < slowest_ms),
        "slowest_partitions": sorted(name for name, ms in time_ms.items() if ms == slowest_ms),
    }


def decided_watermarks(log: Iterable[LogRow]) -> Iterator[tuple[int, str, int]]:
    """The watermark before each micro-batch, for the source partitions that lay behind it (A4).

    Args:
        log: Rows of the log; those of days that were ingested whole do not count.

    Yields:
        The micro-batch, a source partition of it, and the watermark in ms.
    """
    watermark_ms = NEVER_MS
    stream_time_ms: dict[str, int] = {}
    of_batches = sorted(
        ((row.batch, row) for row in log if row.batch is not None), key=itemgetter(0)
    )
    for batch, of_batch in groupby(of_batches, key=itemgetter(0)):
        rows = [row for _, row in of_batch]
        for partition in {row.source_partition for row in rows if row.source_partition is not None}:
            if stream_time_ms.get(partition, NEVER_MS) < watermark_ms:
                yield batch, partition, watermark_ms
        times = ((row.source_partition, row.max_event_time_ms) for row in rows)
        stream_time_ms = stream_times_after(stream_time_ms, times)
        stored_ms = (row.watermark_ms for row in rows if row.watermark_ms is not None)
        watermark_ms = max([watermark_ms, *stored_ms])


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


def largest(first: int | None, second: int | None) -> int | None:
    """The larger of two values; the one that is known if the other is None."""
    known = [value for value in (first, second) if value is not None]
    return max(known, default=None)
