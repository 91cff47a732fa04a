"""The fields of records that decide their windows, in the order of a table's rows (A2 to A4)."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from typing import NamedTuple

import pyarrow as pa

from windows_pipeline.query.records.record_times import RecordTimes

ARRIVAL = ("arrival_unit", "source_partition", "offset")
"""The columns that identify a record."""


class ArrivedRecord(NamedTuple):
    """A record in the arrival log, with stream time and close time at its arrival.

    Attributes:
        position: The index of its row.
        arrival_unit: Its arrival day.
        partition: Its source partition.
        offset: Its offset in its arrival day and source partition.
        time_ms: Its event time.
        stream_time_ms: The stream time of its source partition.
        close_ms: The close time: windows that end before it were closed.
    """

    position: int
    arrival_unit: date
    partition: str
    offset: int
    time_ms: int
    stream_time_ms: int
    close_ms: int


def arrived_records(rows: pa.Table, times: RecordTimes) -> Iterator[ArrivedRecord]:
    """The records of rows of raw_events; those that the log lacks are left out."""
    columns = [rows[name].to_pylist() for name in ARRIVAL]
    arrivals = zip(*columns, times.of(rows), strict=True)
    for position, (day, partition, offset, met) in enumerate(arrivals):
        if met is not None:
            ms = (met.event_ms, met.stream_ms, met.close_ms)
            yield ArrivedRecord(position, day, partition, offset, *ms)
