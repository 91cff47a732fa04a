"""Arrival, stream time and close times in slow, plain Python (rules A1 to A4)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from tests.support.oracle.aggregates import Value
from tests.support.oracle.definitions import Definition, close_delay

Key = str | None


class RecordId(NamedTuple):
    """Names a record, and orders those of one source partition by arrival (rule A1)."""

    arrival_unit: int
    source_partition: int
    offset: int


@dataclass(frozen=True)
class Record:
    """An accepted record; a null key is a key of its own (rule A6)."""

    arrival_unit: int
    source_partition: int
    offset: int
    key: Key
    event_time: int
    values: Mapping[str, Value | None]

    @cached_property
    def id(self) -> RecordId:
        return RecordId(self.arrival_unit, self.source_partition, self.offset)


class Position(NamedTuple):
    """A position in the merge of the source partitions by stream time (rule A1)."""

    stream_time: float
    source_partition: int


BEFORE_ALL = Position(-math.inf, 0)


def frontier_after(
    records: Sequence[Record], arrival_unit: int, definition: Definition
) -> Position:
    """Where the last of the active source partitions stands after an arrival unit (rules A2, A4).

    It never goes back, whoever falls idle or resumes.
    """
    frontier = BEFORE_ALL
    idle_after = math.inf if definition.idle_after is None else definition.idle_after
    for earlier in range(arrival_unit + 1):
        stream_times: dict[int, int] = {}
        for record in records:
            if record.arrival_unit <= earlier:
                largest = stream_times.get(record.source_partition, record.event_time)
                stream_times[record.source_partition] = max(largest, record.event_time)
        furthest = max(stream_times.values(), default=0)
        active = [
            Position(time, source_partition)
            for source_partition, time in stream_times.items()
            if furthest - time <= idle_after
        ]
        frontier = max(frontier, min(active, default=BEFORE_ALL))
    return frontier


def close_time_after(records: Sequence[Record], arrival_unit: int, definition: Definition) -> float:
    """The pipeline's close time after an arrival unit (rules A2, A4); -inf if it closes nothing."""
    return frontier_after(records, arrival_unit, definition).stream_time - close_delay(definition)


def positions_met(records: Sequence[Record], definition: Definition) -> dict[RecordId, Position]:
    """Each record's position in the merge: its S and partition, never before the frontier it met.

    Without that bound a partition that resumes, or is new, would be merged in before records of
    sessions that are final, and change them (rules A4, D2).
    """
    frontiers = {
        arrival_unit: frontier_after(records, arrival_unit - 1, definition)
        for arrival_unit in {record.arrival_unit for record in records}
    }
    positions = {}
    for record in records:
        stream_time = max(
            other.event_time
            for other in records
            if other.source_partition == record.source_partition and other.id <= record.id
        )
        own = Position(stream_time, record.source_partition)
        positions[record.id] = max(own, frontiers[record.arrival_unit])
    return positions


def close_times_met(records: Sequence[Record], definition: Definition) -> dict[RecordId, float]:
    """Each record's close time: stream time less grace, never below the pipeline's (A3, A4)."""
    return {
        name: position.stream_time - close_delay(definition)
        for name, position in positions_met(records, definition).items()
    }


def in_arrival_order(records: Sequence[Record], definition: Definition) -> list[Record]:
    """The merge of the source partitions (rule A1).

    At one position there are records of one partition alone, but for partitions that woke.
    """
    positions = positions_met(records, definition)
    return sorted(records, key=lambda record: (positions[record.id], record.id))
