"""How far the merge of the source partitions has come: a scan of the log (rules A1, A4, E2).

Where an order across source partitions matters, records are merged by stream time, then source
partition, then offset. Until the slowest active one has come further nothing behind its place has
a place of its own. Nothing here knows Spark.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import NamedTuple

from windows_pipeline.arrival.watermark import Arrival, slowest_active
from windows_pipeline.kernels.time import NEVER_MS


class Place(NamedTuple):
    """A place in the merge: a stream time, and a source partition whose record met it."""

    stream_time_ms: int
    source_partition: str


BEFORE_ALL = Place(NEVER_MS, "")


class Waking(NamedTuple):
    """A part of a source partition whose records may stand before what is merged already.

    It was idle, or is new. Those that meet the stream time in force are merged in at the place
    that the merge had come to.

    Attributes:
        arrival_unit: The arrival day.
        batch: The micro-batch; None of a day that was ingested whole.
        source_partition: The source partition.
        place: The place that the merge had come to before.
    """

    arrival_unit: date
    batch: int | None
    source_partition: str
    place: Place


@dataclass(frozen=True)
class Merge:
    """How far the merge has come, unit by unit and micro-batch by micro-batch.

    Attributes:
        idle_after_ms: How far a source partition may lag behind the furthest one and still hold
            the merge back; None for no limit.
        stream_time_ms: By source partition (rule A2).
        reached: The place of the slowest active source partition: what lies at or before it is
            merged for good. Its stream time is the one in force.
        reached_after: The same by unit, after it.
        wakings: The parts that woke.
    """

    idle_after_ms: int | None
    stream_time_ms: Mapping[str, int] = field(default_factory=dict)
    reached: Place = BEFORE_ALL
    reached_after: Mapping[date, Place] = field(default_factory=dict)
    wakings: tuple[Waking, ...] = ()

    def after(self, log: Iterable[Arrival]) -> Merge:
        """How far it has come with more of the log.

        Args:
            log: Rows of later units, or of later micro-batches of the last one, in any order; of
                each micro-batch its own.
        """
        parts: dict[tuple[date, int | None], dict[str, int]] = {}
        for row in log:
            arrived = parts.setdefault((row.arrival_unit, row.batch), {})
            if row.source_partition is not None and row.max_event_time_ms is not None:
                known_ms = arrived.get(row.source_partition, NEVER_MS)
                arrived[row.source_partition] = max(known_ms, row.max_event_time_ms)
        stream_time_ms, reached = dict(self.stream_time_ms), self.reached
        reached_after, wakings = dict(self.reached_after), list(self.wakings)
        for unit, batch in sorted(parts, key=lambda part: (part[0], part[1] or 0)):
            for partition, time_ms in sorted(parts[unit, batch].items()):
                known_ms = stream_time_ms.get(partition, NEVER_MS)
                is_behind = known_ms <= reached.stream_time_ms
                if is_behind and partition < reached.source_partition:
                    wakings.append(Waking(unit, batch, partition, reached))
                stream_time_ms[partition] = max(known_ms, time_ms)
            reached = max(reached, _slowest(stream_time_ms, self.idle_after_ms))
            reached_after[unit] = reached
        return Merge(self.idle_after_ms, stream_time_ms, reached, reached_after, tuple(wakings))


def _slowest(stream_time_ms: Mapping[str, int], idle_after_ms: int | None) -> Place:
    """The place of the slowest active source partition."""
    slowest_ms = slowest_active(stream_time_ms, idle_after_ms)
    there = (each for each, time_ms in stream_time_ms.items() if time_ms == slowest_ms)
    return Place(slowest_ms, min(there, default=""))
