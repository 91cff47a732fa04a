"""The state of the arrival log before a micro-batch: offsets and stream times (A2, A4)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from operator import itemgetter
from typing import NamedTuple

from windows_pipeline.arrival.log import summed_up
from windows_pipeline.arrival.merge import Merge
from windows_pipeline.arrival.watermark import (
    LogRow,
    build_timeline,
    largest,
    slowest_active,
    stream_times_after,
)
from windows_pipeline.kernels.time import NEVER_MS


class BatchPart(NamedTuple):
    """The records of a micro-batch of one arrival unit and source partition.

    Attributes:
        arrival_unit: The arrival day.
        source_partition: The partition; None if no record of the arrival unit was accepted.
        first_offset: The first record's offset.
        last_offset: The last record's offset.
        rows: How many records were accepted.
        max_event_time_ms: The largest event time.
        rejected: How many records of the partition were rejected, if that is known; else 0.
        ambiguous: How many of the accepted records have a local time that occurs twice.
    """

    arrival_unit: date
    source_partition: str | None
    first_offset: int | None
    last_offset: int | None
    rows: int
    max_event_time_ms: int | None
    rejected: int = 0
    ambiguous: int = 0

    def with_next(self, later: BatchPart) -> BatchPart:
        """This part joined with the next part of its arrival unit and source partition."""
        return self._replace(
            last_offset=later.last_offset,
            rows=self.rows + later.rows,
            max_event_time_ms=largest(self.max_event_time_ms, later.max_event_time_ms),
            rejected=self.rejected + later.rejected,
            ambiguous=self.ambiguous + later.ambiguous,
        )


@dataclass(frozen=True)
class LogState:
    """The arrival log up to a micro-batch.

    Attributes:
        log: A row per arrival unit and source partition, summed up over micro-batches.
        batch: The newest micro-batch in the log; -1 before the first.
        watermark_ms: The watermark (rule A4).
        stream_time_ms: The stream time of each source partition (rule A2).
        merge: How far the merge of the source partitions has come; None if nobody needs it.
    """

    log: tuple[LogRow, ...]
    batch: int
    watermark_ms: int
    stream_time_ms: Mapping[str, int]
    merge: Merge | None = None

    @property
    def last_arrival_unit(self) -> date | None:
        """The newest arrival unit, or None."""
        return max((row.arrival_unit for row in self.log), default=None)

    def of_arrival_unit(self, arrival_unit: date) -> dict[str, LogRow]:
        """The rows of an arrival unit, by source partition."""
        return {
            row.source_partition: row
            for row in self.log
            if row.arrival_unit == arrival_unit and row.source_partition is not None
        }

    def after(self, rows: Sequence[LogRow]) -> LogState:
        """The state once a micro-batch's rows are in the log."""
        log = summed_up([*self.log, *rows])
        stream_time_ms = stream_times_after(self.stream_time_ms, _times_of(rows))
        last = rows[-1]
        watermark_ms = self.watermark_ms if last.watermark_ms is None else last.watermark_ms
        batch = self.batch if last.batch is None else last.batch
        merge = self.merge and self.merge.after(rows)
        return LogState(log, batch, watermark_ms, stream_time_ms, merge)


class LastLogged(NamedTuple):
    """The newest micro-batch of a log and its stream; both None if there is no micro-batch."""

    batch: int | None
    stream: str | None


def last_logged(log: Iterable[LogRow]) -> LastLogged:
    """Finds the newest micro-batch of a log."""
    of_batches = ((row.batch, row.stream) for row in log if row.batch is not None)
    newest = max(of_batches, key=itemgetter(0), default=(None, None))
    return LastLogged(*newest)


def state_before(
    batch: int, log: Iterable[LogRow], first_day: date, idle_after_ms: int | None, *, merges: bool
) -> LogState:
    """The state before a micro-batch; if `merges`, with the merge of the source partitions."""
    numbered = ((-1 if row.batch is None else row.batch, row) for row in log)
    earlier = [(number, row) for number, row in numbered if number < batch]
    rows = [row for _, row in sorted(earlier, key=itemgetter(0))]
    return state_of(rows, first_day, idle_after_ms, merges=merges)


def state_of(
    rows: Sequence[LogRow], first_day: date, idle_after_ms: int | None, *, merges: bool = False
) -> LogState:
    """The state of a log; if `merges`, its rows must not be summed up over micro-batches."""
    log = summed_up(rows)
    arrival_units = build_timeline(log, first_day, idle_after_ms).arrival_units
    batches = [row.batch for row in log if row.batch is not None]
    return LogState(
        log,
        max(batches, default=-1),
        arrival_units[-1].watermark_after_ms if arrival_units else NEVER_MS,
        stream_times_after({}, _times_of(log)),
        Merge(idle_after_ms).after(rows) if merges else None,
    )


def _times_of(rows: Iterable[LogRow | BatchPart]) -> Iterator[tuple[str | None, int | None]]:
    return ((row.source_partition, row.max_event_time_ms) for row in rows)


def log_rows(
    state: LogState,
    parts: Sequence[BatchPart],
    rejected: Mapping[date, int],
    first_day: date,
    idle_after_ms: int | None,
    batch: int,
    stream: str,
) -> list[LogRow]:
    """The log rows of a micro-batch, by arrival unit, with the watermark after each arrival unit.

    Days between the newest logged arrival unit and the micro-batch's are logged as empty, as a
    stream brings no more records of them.

    Args:
        state: The log before the micro-batch.
        parts: The micro-batch's accepted records.
        rejected: The number of its rejected records, by arrival unit.
        first_day: The pipeline's first arrival unit.
        idle_after_ms: How far a source partition may lag and still hold windows open.
        batch: The micro-batch's number.
        stream: The stream's name in the log.
    """
    by_arrival_unit: dict[date, list[BatchPart]] = {}
    for part in parts:
        by_arrival_unit.setdefault(part.arrival_unit, []).append(part)
    last = state.last_arrival_unit
    if (
        not by_arrival_unit and not rejected
    ):  # an empty micro-batch is logged, too, for gapless numbers
        by_arrival_unit[last or first_day] = []
    newest = max([*by_arrival_unit, *rejected])
    day = first_day if last is None else last + timedelta(days=1)
    while day < newest:
        by_arrival_unit.setdefault(day, [])
        day += timedelta(days=1)
    rows = []
    stream_time_ms, watermark_ms = state.stream_time_ms, state.watermark_ms
    for arrival_unit in sorted({*by_arrival_unit, *rejected}):
        times = _times_of(by_arrival_unit.get(arrival_unit, []))
        stream_time_ms = stream_times_after(stream_time_ms, times)
        watermark_ms = max(watermark_ms, slowest_active(stream_time_ms, idle_after_ms))
        of_arrival_unit = by_arrival_unit.get(arrival_unit) or [
            BatchPart(arrival_unit, None, None, None, 0, None)
        ]
        rows += [
            LogRow(
                arrival_unit,
                part.source_partition,
                part.max_event_time_ms,
                part.rows,
                rejected.get(arrival_unit, 0),
                part.last_offset,
                None if watermark_ms == NEVER_MS else watermark_ms,
                batch,
                stream,
                part.first_offset,
                part.ambiguous,
            )
            for part in of_arrival_unit
        ]
    return rows
