"""A stream of micro-batches without Spark: lists for tables, and the pipeline's own decisions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from tests.support.oracle.windows import (
    Aggregates,
    LateRow,
    Record,
    RecordId,
    SlidingDefinition,
    WindowRow,
)
from tests.support.spark_cases import (
    FIRST_DAY,
    Met,
    SparkAnswer,
    closings_of,
    day_of,
    kernel_answer,
    look_back,
    spec_of,
    texts,
)
from windows_pipeline.arrival.merge import BEFORE_ALL, Merge, Position
from windows_pipeline.arrival.watermark import Read, Timeline, build_timeline
from windows_pipeline.kernels.time import NEVER_MS
from windows_pipeline.streaming.log_state import BatchPart, LogState, log_rows, state_of
from windows_pipeline.streaming.scope import BatchScope, scope_of
from windows_pipeline.text.instants import day_number

AGGREGATES: Aggregates = {
    "total": ("sum", "real"),
    "largest": ("max", "whole"),
    "added": ("sum", "whole"),
}
"""The sum of integers may not fit a bigint (rule G3)."""
TABLES = ("raw_events", "arrival_log", "late_records", "final_windows", "merged")
"""The tables in the order in which a micro-batch fills them; `merged` stands for firings."""


class KilledError(Exception):
    """Stands for the end of the process."""


class Stored(NamedTuple):
    """A row of raw_events; the record's arrival unit is its day, its offset counts within it."""

    record: Record
    running_max_ms: int
    batch: int


class Results(NamedTuple):
    """Final windows and late records by the day that decided them, and the merged records."""

    final_windows: list[WindowRow]
    late_records: list[LateRow]
    merged: list[RecordId]


class StreamModel:
    """A stream and its tables.

    Attributes:
        definition: Its windows.
        standing: How far the stream has come, as the process knows; None after a restart.
    """

    def __init__(self, definition: SlidingDefinition) -> None:
        self.definition = definition
        self.standing: LogState | None = None
        self._tables: dict[str, dict[int, list[Any]]] = {name: {} for name in TABLES}

    def run(
        self,
        batch: int,
        arrived: Sequence[Record],
        rejected: int = 0,
        killed_after: str | None = None,
    ) -> list[Stored]:
        """Runs a micro-batch.

        Args:
            batch: Its number.
            arrived: Its accepted records in the order of arrival, by day.
            rejected: How many of its records were rejected.
            killed_after: The table after which the process ends; None for none.

        Raises:
            KilledError: `killed_after` was written.
        """
        before = self._standing_before(batch)
        fresh = _numbered(arrived, before, batch)
        last_day = (
            day_of(arrived[-1].arrival_unit) if arrived else before.last_arrival_unit or FIRST_DAY
        )
        rejected_by_day = {last_day: rejected} if rejected else {}
        rows = log_rows(
            before, _parts(fresh), rejected_by_day, FIRST_DAY, self._idle_after, batch, "stream"
        )
        self._append("raw_events", batch, fresh, killed_after)
        self._append("arrival_log", batch, rows, killed_after)
        after = before.after(rows)
        results = self._results(batch, fresh, before, after) if fresh else Results([], [], [])
        self._append("late_records", batch, results.late_records, killed_after)
        self._append("final_windows", batch, results.final_windows, killed_after)
        self._append("merged", batch, results.merged, killed_after)
        self.standing = after
        return fresh

    def read_back(self, before_batch: int) -> LogState:
        """How far the stream has come, read from the log as a restarted process does."""
        log = [row for row in self._rows("arrival_log") if row.batch < before_batch]
        return state_of(log, FIRST_DAY, self._idle_after, merges=True)

    def results(self) -> Results:
        """The rows that the micro-batches published."""
        return Results(*map(self._rows, ("final_windows", "late_records", "merged")))

    def backfill(self) -> Results:
        """The results of a run over whole days, from the log and the raw records."""
        log = self._rows("arrival_log")
        timeline = build_timeline(log, FIRST_DAY, self._idle_after)
        days = [arrival_unit.day for arrival_unit in timeline.arrival_units]
        grace_ms = self.definition.grace
        reads = look_back(timeline, days, spec_of(self.definition).look_back_ms, grace_ms)

        def is_new(_: Stored, read: Read) -> bool:
            return read.computed_day == read.arrival_unit

        met = self._met(self._rows("raw_events"), timeline, reads, is_new)
        closings = closings_of(timeline.arrival_units, grace_ms)
        answer = kernel_answer(self.definition, closings, AGGREGATES, met, with_failed=True)
        merge = Merge(self._idle_after).after(log)
        merged = _merged(self._rows("raw_events"), timeline, merge, BEFORE_ALL, merge.position)
        return Results([row for row in answer.windows if row.closed], answer.late, merged)

    @property
    def _idle_after(self) -> int | None:
        return self.definition.idle_after

    def _append(
        self, table: str, batch: int, rows: Sequence[object], killed_after: str | None
    ) -> None:
        """Appends as Delta does: a table takes each micro-batch once."""
        self._tables[table].setdefault(batch, list(rows))
        if table == killed_after:
            self.standing = None
            raise KilledError

    def _rows(self, table: str) -> list[Any]:
        return [row for rows in self._tables[table].values() for row in rows]

    def _standing_before(self, batch: int) -> LogState:
        if self.standing is not None:
            assert self.standing.batch == batch - 1
            return self.standing
        return self.read_back(batch)

    def _results(
        self, batch: int, fresh: Sequence[Stored], before: LogState, after: LogState
    ) -> Results:
        spec = spec_of(self.definition)
        scope = scope_of(before, after, batch, spec.close_delay_ms, FIRST_DAY, self._idle_after)
        earlier = [one for one in self._rows("raw_events") if one.batch < batch]

        def is_new(one: Stored, _: Read) -> bool:
            return one.batch == batch

        from_ms = max(scope.closing.before_ms - spec.look_back_ms, NEVER_MS)
        met = self._met([*earlier, *fresh], scope.timeline, scope.reads(from_ms), is_new)
        closings = {day_number(scope.arrival_units[-1]): scope.closing}
        answer = kernel_answer(self.definition, closings, AGGREGATES, met, with_failed=True)
        # Without partial results a stream reads the records of closed windows only.
        to_close = [each for each in met if each.record.event_time < scope.closing.after_ms]
        short = kernel_answer(self.definition, closings, AGGREGATES, to_close, with_failed=True)
        closed, partly_late = _closed(answer), _partly_late(answer)
        assert texts(_closed(short)) == texts(closed)
        assert sorted(_partly_late(short)) == sorted(partly_late)
        at_once = [row for row in answer.late if row.reason != "partly_late"]
        time_of = {each.record.id: each.record.event_time for each in met}
        at_the_end = [
            row._replace(arrival_unit=self._closing_day(time_of[row.record], scope))
            for row in partly_late
        ]
        return Results(
            [row._replace(arrival_unit=_day_that_closed(row.end, scope)) for row in closed],
            [*at_once, *at_the_end],
            self._merged_by([*earlier, *fresh], scope, before, after),
        )

    def _merged_by(
        self, raw: Sequence[Stored], scope: BatchScope, before: LogState, after: LogState
    ) -> list[RecordId]:
        assert before.merge is not None
        assert after.merge is not None
        around = (before.merge.position, after.merge.position)
        batch = max(one.batch for one in raw)
        return _merged(raw, scope.timeline, after.merge, *around, batch)

    def _closing_day(self, event_time_ms: int, scope: BatchScope) -> int:
        return _day_that_closed(event_time_ms + self.definition.time_difference, scope)

    def _met(
        self,
        raw: Iterable[Stored],
        timeline: Timeline,
        reads: Iterable[Read],
        is_new: Callable[[Stored, Read], bool],
    ) -> list[Met]:
        """The records that `records_to_read` returns."""
        raw = list(raw)
        met = []
        for read in reads:
            arrival_unit = timeline.arrival_unit(read.arrival_unit)
            assert arrival_unit is not None
            for one in raw:
                new = is_new(one, read)
                if day_of(one.record.arrival_unit) != read.arrival_unit:
                    continue
                if not new and one.record.event_time < read.from_ms:
                    continue
                before_ms = arrival_unit.stream_time_before_ms.get(_partition(one.record), NEVER_MS)
                stream_time_ms = max(
                    one.running_max_ms, before_ms, arrival_unit.watermark_before_ms
                )
                close_time_ms = stream_time_ms - self.definition.grace
                met.append(Met(day_number(read.computed_day), new, one.record, close_time_ms))
        return met


def _merged(
    raw: Iterable[Stored],
    timeline: Timeline,
    merge: Merge,
    before: Position,
    after: Position,
    batch: int | None = None,
) -> list[RecordId]:
    """The records merged between two positions, and the micro-batch's, as the firings need them."""
    resumed = {(*part[:3], part.position.stream_time_ms): part.position for part in merge.resumed}
    merged = []
    for one in raw:
        partition, day = _partition(one.record), day_of(one.record.arrival_unit)
        arrival_unit = timeline.arrival_unit(day)
        assert arrival_unit is not None
        before_ms = arrival_unit.stream_time_before_ms.get(partition, NEVER_MS)
        stream_time_ms = max(one.running_max_ms, before_ms, arrival_unit.watermark_before_ms)
        own = Position(stream_time_ms, partition)
        position = resumed.get((day, one.batch, partition, stream_time_ms), own)
        if position <= after and (position > before or one.batch == batch):
            merged.append((position, one.record.arrival_unit, one.batch, one.record.id))
    return [name for *_, name in sorted(merged)]


def _numbered(arrived: Iterable[Record], before: LogState, batch: int) -> list[Stored]:
    """The records as `in_stream_order` numbers them."""
    counts: dict[tuple[int, str], int] = {}
    largest_ms: dict[tuple[int, str], int] = {}
    numbered = []
    for record in arrived:
        partition = _partition(record)
        key = (record.arrival_unit, partition)
        if key not in counts:
            of_arrival_unit = before.of_arrival_unit(day_of(record.arrival_unit)).get(partition)
            known = (
                (of_arrival_unit.last_offset, of_arrival_unit.max_event_time_ms)
                if of_arrival_unit
                else (None, None)
            )
            counts[key] = 0 if known[0] is None else known[0] + 1
            largest_ms[key] = NEVER_MS if known[1] is None else known[1]
        largest_ms[key] = max(largest_ms[key], record.event_time)
        is_behind = before.watermark_ms > before.stream_time_ms.get(partition, NEVER_MS)
        decided_ms = before.watermark_ms if is_behind else NEVER_MS
        named = replace(record, offset=counts[key])
        numbered.append(Stored(named, max(largest_ms[key], decided_ms), batch))
        counts[key] += 1
    return numbered


def _parts(fresh: Iterable[Stored]) -> list[BatchPart]:
    by_key: dict[tuple[int, str], list[Record]] = {}
    for one in fresh:
        key = (one.record.arrival_unit, _partition(one.record))
        by_key.setdefault(key, []).append(one.record)
    return [
        BatchPart(
            day_of(arrival_unit),
            partition,
            records[0].offset,
            records[-1].offset,
            len(records),
            max(record.event_time for record in records),
        )
        for (arrival_unit, partition), records in by_key.items()
    ]


def _partition(record: Record) -> str:
    return str(record.source_partition)


def _closed(answer: SparkAnswer) -> list[WindowRow]:
    return [row for row in answer.windows if row.closed]


def _partly_late(answer: SparkAnswer) -> list[LateRow]:
    return [row for row in answer.late if row.reason == "partly_late"]


def _day_that_closed(end_ms: int, scope: BatchScope) -> int:
    """The day of the micro-batch that closed a window with this end."""
    closing = (day for day, after_ms in scope.closed_days.after_ms.items() if end_ms < after_ms)
    return (next(closing, scope.arrival_units[-1]) - FIRST_DAY).days
