"""How the source partitions stand after an arrival unit: idle, without a record, the slowest (A4).

This module needs no Spark.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from windows_pipeline.arrival.watermark import ArrivalUnit, ArrivedPart, slowest_active


@dataclass(frozen=True, slots=True)
class PartitionStates:
    """The source partitions after an arrival unit, by what they do to the watermark.

    Attributes:
        without_records: Those that had records before, but none in the arrival unit.
        idle: Those that lag so far behind the furthest one that they hold nothing open.
        slowest: The active ones with the smallest stream time; these hold the watermark back.
    """

    without_records: tuple[str, ...]
    idle: tuple[str, ...]
    slowest: tuple[str, ...]


def partitions_after(
    arrival_unit: ArrivalUnit, arrived: Iterable[ArrivedPart], idle_after_ms: int | None
) -> PartitionStates:
    """How the source partitions stand after an arrival unit.

    Args:
        arrival_unit: The arrival unit.
        arrived: The arrival unit's rows of the log.
        idle_after_ms: See `build_timeline`.
    """
    time_ms, seen = dict(arrival_unit.stream_time_before_ms), set()
    for row in arrived:
        if row.source_partition is None or row.max_event_time_ms is None:
            continue
        seen.add(row.source_partition)
        before_ms = time_ms.get(row.source_partition, row.max_event_time_ms)
        time_ms[row.source_partition] = max(before_ms, row.max_event_time_ms)
    slowest_ms = slowest_active(time_ms, idle_after_ms)
    return PartitionStates(
        without_records=tuple(sorted(time_ms.keys() - seen)),
        idle=tuple(sorted(name for name, ms in time_ms.items() if ms < slowest_ms)),
        slowest=tuple(sorted(name for name, ms in time_ms.items() if ms == slowest_ms)),
    )
