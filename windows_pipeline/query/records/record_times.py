"""Stream time, watermark and close time at each record's arrival (rules A2 to A4)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windows_pipeline.arrival.watermark import LogRow, Timeline, build_timeline
from windows_pipeline.config import Pipeline
from windows_pipeline.kernels.time import NEVER_MS
from windows_pipeline.query.tables.arrival_days import LogPart
from windows_pipeline.query.tables.arrow_values import TRUE, integer

ARRIVAL = ("arrival_unit", "source_partition", "offset")
"""The columns that identify a record."""


class ArrivedRecord(NamedTuple):
    """What decides a record's windows, as it was at its arrival; times are in ms since 1970.

    Attributes:
        position: The index of its row.
        arrival_unit: Its arrival day.
        partition: Its source partition.
        offset: Its offset in its arrival day and source partition.
        event_ms: Its event time.
        stream_ms: The stream time of its source partition, the record included.
        watermark_ms: The watermark before its arrival unit; None if there was none.
        close_ms: The close time: windows that end before it were closed.
    """

    position: int
    arrival_unit: date
    partition: str
    offset: int
    event_ms: int
    stream_ms: int
    watermark_ms: int | None
    close_ms: int


class RecordTimes:
    """The times of a pipeline's records, for the windows of one definition."""

    def __init__(self, pipeline: Pipeline, log: Sequence[LogPart], delay_ms: int) -> None:
        """Takes the arrival log.

        Args:
            pipeline: The pipeline.
            log: The rows of its arrival log.
            delay_ms: Close time is stream time, or the watermark if later, less this delay.
        """
        arrivals = (
            LogRow(
                *part[:2], part.max_event_time_ms, watermark_ms=part.watermark_ms, batch=part.batch
            )
            for part in log
        )
        first_day, idle_after_ms = pipeline.partitions.start, pipeline.source.idle_after
        self._timeline: Timeline = build_timeline(arrivals, first_day, idle_after_ms)
        self._last_batch = max((part.batch for part in log if part.batch is not None), default=None)
        self._delay_ms = delay_ms

    def of(self, rows: pa.Table) -> list[ArrivedRecord | None]:
        """The records of rows of raw_events; None for rows that no table counts yet.

        Those are rows that the log lacks, and rows of days that a missing day blocks.
        """
        columns = [rows[name].to_pylist() for name in (*ARRIVAL, "batch")]
        times = [_in_ms(rows[name]).to_pylist() for name in ("event_time", "running_max")]
        return [self._arrived(*row) for row in zip(range(len(rows)), *columns, *times, strict=True)]

    def behind_ms(self, rows: pa.Table) -> np.ndarray[Any, Any]:
        """How far records were behind stream time, or the watermark if later, as they arrived.

        Args:
            rows: Rows of raw_events, all of one arrival day.

        Returns:
            Milliseconds, 0 or more; nothing for rows that count nowhere so far.
        """
        arrival_unit = (
            self._timeline.arrival_unit(rows["arrival_unit"][0].as_py()) if rows.num_rows else None
        )
        if arrival_unit is None:
            return np.empty(0, np.int64)
        if self._last_batch is not None:
            is_known = pc.less_equal(rows["batch"], integer(self._last_batch))
            rows = rows.filter(pc.fill_null(is_known, TRUE))
        partitions = rows["source_partition"].combine_chunks().dictionary_encode()
        before = np.array(
            [
                max(
                    arrival_unit.watermark_before_ms,
                    arrival_unit.stream_time_before_ms.get(name, NEVER_MS),
                )
                for name in partitions.dictionary.to_pylist()
            ],
            np.int64,
        )
        if not len(before):
            return before
        event, running = (_in_ms(rows[name]).to_numpy() for name in ("event_time", "running_max"))
        met = np.maximum(running, before[partitions.indices.to_numpy()])
        late: np.ndarray[Any, Any] = np.maximum(met - event, 0)
        return late

    def closed_after_ms(self, day: date) -> int | None:
        """The close time after an arrival day; None if the log does not say."""
        arrival_unit = self._timeline.arrival_unit(day)
        return None if arrival_unit is None else arrival_unit.watermark_after_ms - self._delay_ms

    def _arrived(
        self,
        position: int,
        day: date,
        partition: str,
        offset: int,
        batch: int | None,
        event_ms: int,
        running_ms: int,
    ) -> ArrivedRecord | None:
        arrival_unit = self._timeline.arrival_unit(day)
        last = self._last_batch
        if arrival_unit is None or (batch is not None and last is not None and batch > last):
            return None
        stream_ms = max(running_ms, arrival_unit.stream_time_before_ms.get(partition, NEVER_MS))
        before_ms = arrival_unit.watermark_before_ms
        watermark_ms = None if before_ms == NEVER_MS else before_ms
        close_ms = max(stream_ms, before_ms) - self._delay_ms
        where = (position, day, partition, offset)
        return ArrivedRecord(*where, event_ms, stream_ms, watermark_ms, close_ms)


def _in_ms(times: pa.ChunkedArray) -> pa.ChunkedArray:
    return times.cast(pa.timestamp("ms", tz=times.type.tz), safe=False).cast(pa.int64())
