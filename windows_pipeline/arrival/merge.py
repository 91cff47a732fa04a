"""How far the merge of the source partitions has come: a scan of the log (rules A1, A4, E2).

Firings and sessions need one order across source partitions. Records are merged by stream time,
then source partition, then offset. The slowest active source partition bounds the merge: beyond its
position, a record may still arrive that precedes records which are already there. This module needs
no Spark.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import NamedTuple

from windows_pipeline.arrival.watermark import LogRow, slowest_active, stream_times_after
from windows_pipeline.kernels.time import NEVER_MS


class Position(NamedTuple):
    """A position in the merge: a stream time, and the source partition that reached it."""

    stream_time_ms: int
    source_partition: str


BEFORE_ALL = Position(NEVER_MS, "")
"""The position before every record."""


class Resumed(NamedTuple):
    """A part of a source partition that was idle or unknown until then.

    Its records could precede records that are merged already. Those that arrive below the
    watermark are therefore merged at the position that the merge had reached.

    Attributes:
        arrival_unit: The arrival day.
        batch: The micro-batch; None for a day that was ingested whole.
        source_partition: The source partition that resumes.
        position: The position that the merge had reached before this part.
    """

    arrival_unit: date
    batch: int | None
    source_partition: str
    position: Position


@dataclass(frozen=True)
class Merge:
    """How far the merge has come, by arrival unit and micro-batch.

    Attributes:
        idle_after_ms: A source partition that lags behind the furthest one by more does not hold
            the merge back; None for no limit.
        stream_time_ms: The stream time of each source partition (rule A2).
        position: The position of the slowest active source partition. Everything at or before it
            is merged for good; its stream time is the watermark.
        position_after: The position after each arrival unit.
        resumed: The parts of source partitions that were idle or unknown before.
    """

    idle_after_ms: int | None
    stream_time_ms: Mapping[str, int] = field(default_factory=dict)
    position: Position = BEFORE_ALL
    position_after: Mapping[date, Position] = field(default_factory=dict)
    resumed: tuple[Resumed, ...] = ()

    def after(self, log: Iterable[LogRow]) -> Merge:
        """Returns the merge after more rows of the log.

        Args:
            log: Rows of later arrival units, or of later micro-batches of the last arrival unit, in
                any order; each micro-batch has rows of its own.
        """
        parts: dict[tuple[date, int | None], list[tuple[str | None, int | None]]] = {}
        for row in log:
            times = parts.setdefault((row.arrival_unit, row.batch), [])
            times.append((row.source_partition, row.max_event_time_ms))
        stream_time_ms, position = dict(self.stream_time_ms), self.position
        position_after, resumed = dict(self.position_after), list(self.resumed)
        for arrival_unit, batch in sorted(parts, key=lambda part: (part[0], part[1] or 0)):
            arrived = stream_times_after({}, parts[arrival_unit, batch])
            for partition in sorted(arrived):
                is_behind = stream_time_ms.get(partition, NEVER_MS) <= position.stream_time_ms
                if is_behind and partition < position.source_partition:
                    resumed.append(Resumed(arrival_unit, batch, partition, position))
            stream_time_ms = stream_times_after(stream_time_ms, arrived.items())
            position = max(position, _slowest(stream_time_ms, self.idle_after_ms))
            position_after[arrival_unit] = position
        return Merge(self.idle_after_ms, stream_time_ms, position, position_after, tuple(resumed))


def _slowest(stream_time_ms: Mapping[str, int], idle_after_ms: int | None) -> Position:
    """The position of the slowest active source partition."""
    slowest_ms = slowest_active(stream_time_ms, idle_after_ms)
    slowest = (name for name, time_ms in stream_time_ms.items() if time_ms == slowest_ms)
    return Position(slowest_ms, min(slowest, default=""))
