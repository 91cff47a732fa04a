"""Where a stream stands: what the next micro-batch follows from (rules A2, A4)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import NamedTuple

from windows_pipeline.arrival.log import LogRow, arrivals_in, largest, summed_up
from windows_pipeline.arrival.merge import Merge
from windows_pipeline.arrival.watermark import build_timeline, slowest_active
from windows_pipeline.kernels.time import NEVER_MS


class Part(NamedTuple):
    """What a micro-batch brought of one unit and source partition.

    Attributes:
        arrival_unit: The arrival day.
        source_partition: None where it brought no accepted record of the unit.
        first_offset: The first record's.
        last_offset: The last one's.
        rows: How many records.
        max_event_time_ms: The largest event time.
        rejected: How many records of it were rejected, where that is known.
    """

    arrival_unit: date
    source_partition: str | None
    first_offset: int | None
    last_offset: int | None
    rows: int
    max_event_time_ms: int | None
    rejected: int = 0

    def with_next(self, later: Part) -> Part:
        """The same with what came after it of the same unit and source partition."""
        return self._replace(
            last_offset=later.last_offset,
            rows=self.rows + later.rows,
            max_event_time_ms=largest(self.max_event_time_ms, later.max_event_time_ms),
            rejected=self.rejected + later.rejected,
        )


@dataclass(frozen=True)
class Standing:
    """The log before a micro-batch, a row a unit and source partition.

    Attributes:
        log: What has arrived, summed up over micro-batches.
        batch: The last micro-batch in it; -1 before the first.
        watermark_ms: The stream time in force (rule A4).
        stream_time_ms: By source partition (rule A2).
        merge: How far the merge of the source partitions has come, where that is asked for.
    """

    log: tuple[LogRow, ...]
    batch: int
    watermark_ms: int
    stream_time_ms: Mapping[str, int]
    merge: Merge | None = None

    @property
    def last_unit(self) -> date | None:
        """The newest unit."""
        return max((row.arrival_unit for row in self.log), default=None)

    def of_unit(self, unit: date) -> dict[str, LogRow]:
        """What has come of a unit, by source partition."""
        return {
            row.source_partition: row
            for row in self.log
            if row.arrival_unit == unit and row.source_partition is not None
        }

    def after(self, rows: Sequence[LogRow]) -> Standing:
        """Where the stream stands once a micro-batch's rows are in the log."""
        log = summed_up([*self.log, *rows])
        stream_time_ms = _stream_times(rows, self.stream_time_ms)
        last = rows[-1]
        watermark_ms = self.watermark_ms if last.watermark_ms is None else last.watermark_ms
        batch = self.batch if last.batch is None else last.batch
        merge = self.merge and self.merge.after(arrivals_in(rows))
        return Standing(log, batch, watermark_ms, stream_time_ms, merge)


class LastLogged(NamedTuple):
    """The newest micro-batch of a log, and the stream that brought it; None without any."""

    batch: int | None
    stream: str | None


def last_logged(log: Iterable[LogRow]) -> LastLogged:
    """Looks for the newest micro-batch."""
    of_batches = ((row.batch, row.stream) for row in log if row.batch is not None)
    newest = max(of_batches, key=lambda one: one[0], default=(None, None))
    return LastLogged(*newest)


def standing_before(
    batch: int, log: Iterable[LogRow], first_day: date, idle_after_ms: int | None, *, merges: bool
) -> Standing:
    """Where a stream stood before a micro-batch, on request with how far its merge came."""
    came = ((-1 if row.batch is None else row.batch, row) for row in log)
    in_order = sorted((one for one in came if one[0] < batch), key=lambda one: one[0])
    before = [row for _, row in in_order]
    return standing_of(before, first_day, idle_after_ms, merges=merges)


def standing_of(
    rows: Sequence[LogRow], first_day: date, idle_after_ms: int | None, *, merges: bool = False
) -> Standing:
    """Where a stream stands whose log has these rows; summed up or not, unless it merges."""
    log = summed_up(rows)
    units = build_timeline(arrivals_in(log), first_day, idle_after_ms).units
    batches = [row.batch for row in log if row.batch is not None]
    return Standing(
        log,
        max(batches, default=-1),
        units[-1].watermark_after_ms if units else NEVER_MS,
        _stream_times(log, {}),
        Merge(idle_after_ms).after(arrivals_in(rows)) if merges else None,
    )


def _stream_times(rows: Iterable[LogRow | Part], before_ms: Mapping[str, int]) -> dict[str, int]:
    stream_time_ms = dict(before_ms)
    for row in rows:
        if row.source_partition is not None and row.max_event_time_ms is not None:
            known_ms = stream_time_ms.get(row.source_partition, NEVER_MS)
            stream_time_ms[row.source_partition] = max(known_ms, row.max_event_time_ms)
    return stream_time_ms


def log_rows(
    standing: Standing,
    parts: Sequence[Part],
    rejected: Mapping[date, int],
    first_day: date,
    idle_after_ms: int | None,
    batch: int,
    stream: str,
) -> list[LogRow]:
    """The log's rows of a micro-batch, by unit, with the stream time in force after each.

    Days between the last unit and the batch's are logged as empty: in a stream what comes is
    all that there is.

    Args:
        standing: What it follows.
        parts: What it brought.
        rejected: How many rejected records it brought, by unit.
        first_day: The pipeline's first unit.
        idle_after_ms: How far a source partition may lag and still hold windows open.
        batch: Its number.
        stream: The stream's id.
    """
    by_unit: dict[date, list[Part]] = {}
    for part in parts:
        by_unit.setdefault(part.arrival_unit, []).append(part)
    last = standing.last_unit
    if not by_unit and not rejected:  # nothing is logged, too: batches are without a gap
        by_unit[last or first_day] = []
    newest = max([*by_unit, *rejected])
    day = first_day if last is None else last + timedelta(days=1)
    while day < newest:
        by_unit.setdefault(day, [])
        day += timedelta(days=1)
    rows = []
    stream_time_ms, watermark_ms = standing.stream_time_ms, standing.watermark_ms
    for unit in sorted({*by_unit, *rejected}):
        stream_time_ms = _stream_times(by_unit.get(unit, []), stream_time_ms)
        watermark_ms = max(watermark_ms, slowest_active(stream_time_ms, idle_after_ms))
        of_unit = by_unit.get(unit) or [Part(unit, None, None, None, 0, None)]
        rows += [
            LogRow(
                unit,
                part.source_partition,
                part.max_event_time_ms,
                part.rows,
                rejected.get(unit, 0),
                part.last_offset,
                None if watermark_ms == NEVER_MS else watermark_ms,
                batch,
                stream,
                part.first_offset,
            )
            for part in of_unit
        ]
    return rows
