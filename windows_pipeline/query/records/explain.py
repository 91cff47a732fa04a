"""Explains a record: the windows that count it, or why none does (rule A5)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import date, datetime, timedelta
from functools import cached_property
from itertools import islice
from typing import Any

import pyarrow as pa

from windows_pipeline.config import Pipeline
from windows_pipeline.query.pinned_windows import PinnedWindows, holding
from windows_pipeline.query.records.absent_records import (
    RejectedRecord,
    SkippedFile,
    rejected_records,
    skipped_files,
)
from windows_pipeline.query.records.definition_rows import DefinitionRows, RowFilter
from windows_pipeline.query.records.explained import ExplainedRecord, Explanation, Fate
from windows_pipeline.query.records.record_times import ARRIVAL, ArrivedRecord
from windows_pipeline.query.records.window_records import records_of_window
from windows_pipeline.query.records.window_trace import is_of_row
from windows_pipeline.query.state import computed_days
from windows_pipeline.query.stored_window import StoredWindow
from windows_pipeline.query.tables.arrow_values import microseconds, python_rows
from windows_pipeline.query.tables.keys import KeyRange, in_order
from windows_pipeline.query.tables.local import LocalTable, NoTableError
from windows_pipeline.query.tables.wanted import Span, Wanted
from windows_pipeline.storage.catalog import specs_of
from windows_pipeline.text.instants import epoch_ms, instant_of, time_text

_ORDER = ("event_time", *ARRIVAL)
_Arrival = tuple[date, str, int]
MOST_EXPLAINED = 20
"""How many records are explained by default."""
_NOT_YET = ": its first window was closed when it arrived, and no open window holds it"
_NOT_MERGED = ": another source partition may still bring a record before it"
_LATE = {
    "late": "every window of its event time was closed when it arrived: the close time was {close}",
    "partly_late": "some window of its event time was open when it arrived, at close time {close}, "
    "but all are closed by now, and none counts it",
    "outside_windows": "no window holds its event time, by the definition",
}
"""Why no window counts a record, by the reason in late_records."""


class Explainer:
    """Explains the records of a pipeline for one definition."""

    def __init__(
        self,
        pipeline: Pipeline,
        windows_name: str,
        warehouse: str,
        row_filter: RowFilter | None = None,
    ) -> None:
        """Opens the tables at their newest versions; see `DefinitionRows`."""
        self._pipeline, self._name, self._warehouse = pipeline, windows_name, warehouse
        self._windows = pipeline.windows[windows_name]
        self._spec = self._windows.spec
        self._rows = DefinitionRows(pipeline, windows_name, warehouse, row_filter)
        self._tables = specs_of(pipeline, warehouse)
        self._late = LocalTable.if_there(self._tables.of(windows_name).late_records)
        self._current: PinnedWindows | None = None
        with suppress(NoTableError):
            self._current = PinnedWindows(pipeline, windows_name, warehouse, "current")

    def parsed_key(self, text: str, argument: str) -> object:
        """The key that a text of a command line stands for; see `KeyColumn.parsed`.

        Raises:
            ValueError: The text does not stand for a key.
        """
        has_key = bool(self._windows.keyed(self._pipeline.source).key_columns)
        return self._rows.key_column.parsed(text, argument, has_key=has_key)

    def at(self, key: object, first: datetime, last: datetime, limit: int) -> Explanation:
        """Explains the records of a key between two event times, both included.

        Args:
            key: The definition's key, as `KeyColumn.value` takes it.
            first: The first event time, an instant with a zone.
            last: The last event time.
            limit: The greatest number of accepted records.

        Raises:
            ValueError: The key is not of the definition's type.
        """
        keys = self._rows.key_column.one(key, "key")
        # Event times are whole milliseconds, finer parts are cut off.
        span = Span(microseconds(first) // 1_000 * 1_000, microseconds(last))
        rows = in_order(self._rows.of_key(keys, span), _ORDER)
        return self._explained(rows, limit, keys, span)

    def arrived(
        self, source_partition: str, offset: int, arrival_unit: date | None, limit: int
    ) -> Explanation:
        """Explains the records of an offset of a source partition, one an arrival day.

        Args:
            source_partition: The source partition.
            offset: The offset, which counts from 0 in each arrival day and source partition.
            arrival_unit: The arrival day; None for each day that has the offset.
            limit: The greatest number of accepted records.
        """
        rows = self._rows.of_arrival(source_partition, offset, arrival_unit)
        return self._explained(rows, limit, None, None)

    def _explained(
        self,
        rows: pa.Table,
        limit: int,
        keys: KeyRange | None,
        times: Span | None,
    ) -> Explanation:
        # One more record than asked for says that there are more.
        found = list(islice(self._records(rows), limit + 1))
        found.sort(key=lambda each: (each.event_time, each.arrival_unit, each.offset))
        rejected: tuple[RejectedRecord, ...] = ()
        skipped: tuple[SkippedFile, ...] = ()
        if not found:
            parts = () if keys is None or keys.first is None else keys.first
            texts = ["" if part.as_py() is None else str(part.as_py()) for part in parts]
            rejected = rejected_records(
                self._pipeline, self._warehouse, [text for text in texts if text], times, limit
            )
            skipped = skipped_files(self._pipeline, self._warehouse)
        next_day = self._pipeline.partitions.start
        days = {part.arrival_unit for part in self._rows.log}
        while next_day in days:
            next_day += timedelta(days=1)
        through = next_day - timedelta(days=1)
        return Explanation(
            records=tuple(found[:limit]),
            are_more=len(found) > limit,
            rejected=rejected,
            skipped=skipped,
            through=through if through in days else None,
            waits_for=next_day,
        )

    def _records(self, rows: pa.Table) -> Iterator[ExplainedRecord]:
        met, passes = self._rows.times.of(rows), self._rows.passes(rows)
        for row, arrived, is_in in zip(python_rows(rows), met, passes, strict=True):
            yield self._record(row, arrived, passes=is_in)

    def _record(
        self, row: Mapping[str, Any], met: ArrivedRecord | None, *, passes: bool
    ) -> ExplainedRecord:
        fate, reason, windows = self._fate(row, met, passes=passes)
        return ExplainedRecord(
            key=self._rows.key(row),
            event_time=row["event_time"],
            arrival_unit=row["arrival_unit"],
            source_partition=row["source_partition"],
            offset=row["offset"],
            fate=fate,
            reason=reason,
            windows=windows,
            stream_time=None if met is None else _instant(met.stream_ms),
            watermark=None if met is None else _instant(met.watermark_ms),
            close_time=None if met is None else _instant(met.close_ms),
            behind_ms=None if met is None else met.stream_ms - met.event_ms,
            values=self._rows.values(row),
        )

    def _fate(
        self, row: Mapping[str, Any], met: ArrivedRecord | None, *, passes: bool
    ) -> tuple[Fate, str, tuple[StoredWindow, ...]]:
        """A record's fate, the reason, and the windows that count it."""
        if not passes:
            return Fate.FILTERED_OUT, f"it does not pass the filter: {self._windows.where}", ()
        if met is None or self._current is None or row["arrival_unit"] in self._to_compute:
            return Fate.WAITING, self._waiting(row["arrival_unit"], met), ()
        reason = self._late_reason(row)
        if reason is not None:
            return Fate(reason), _LATE[reason].format(close=time_text(met.close_ms)), ()
        windows = self._counting(row, met)
        if windows:
            count = "1 window counts" if len(windows) == 1 else f"{len(windows):,} windows count"
            return Fate.COUNTED, f"{count} it{self._not_stored}", windows
        return Fate.PENDING, f"no window counts it so far{self._not_yet}", ()

    @property
    def _not_yet(self) -> str:
        """Why it is not known yet whether any window counts a record."""
        return self._not_stored or (_NOT_YET if self._spec.keeps_bounds else _NOT_MERGED)

    @property
    def _not_stored(self) -> str:
        """The text on windows that the table of current windows lacks; empty if it lacks none."""
        if self._windows.row_key:
            return "; the window of a row is stored once it is final"
        if not self._windows.partial_results:
            return "; open windows are not stored (partial_results: false)"
        return ""

    def _waiting(self, day: date, met: ArrivedRecord | None) -> str:
        if met is None:
            return f"arrival day {day} is not ingested to the end, or a missing day blocks it"
        return f"arrival day {day} is ingested, and its windows are not computed yet"

    @cached_property
    def _to_compute(self) -> frozenset[date]:
        """The days whose windows are not computed."""
        days = {part.arrival_unit for part in self._rows.log}
        return frozenset(days - computed_days(self._tables, self._name, self._rows.log))

    def _late_reason(self, row: Mapping[str, Any]) -> str | None:
        """The reason by which late_records lists a record; None if it does not."""
        if self._late is None:
            return None
        at = microseconds(row["event_time"])
        keys = self._late.key.one(self._rows.key(row), "key")
        columns = ["record_arrival_unit", *ARRIVAL[1:], "reason"]
        found = self._late.read(Wanted(keys, {"event_time": Span(at, at)}), columns=columns)
        reasons = {
            (each["record_arrival_unit"], each["source_partition"], each["offset"]): each["reason"]
            for each in python_rows(found)
        }
        return reasons.get(_arrival(row))

    def _counting(self, row: Mapping[str, Any], met: ArrivedRecord) -> tuple[StoredWindow, ...]:
        """The stored windows that count a record (rules A5, B5, D2, F5)."""
        if self._current is None:
            return ()
        keys = self._current.table.key.one(self._rows.key(row), "key")
        at = microseconds(row["event_time"])
        if self._windows.row_key:
            of_time = self._current.found(Wanted(keys, {"event_time": Span(at, at)}))
            named = {**row, "record_arrival_unit": row["arrival_unit"]}
            return tuple(each for each in of_time if is_of_row(each, named))
        held = self._current.found(Wanted(keys, holding(self._windows, at)))
        last_instant = self._spec.last_instant
        was_open = [each for each in held if last_instant(epoch_ms(each.end)) >= met.close_ms]
        if not self._spec.keeps_bounds and len(was_open) > 1:
            # A later session may overlap a closed one: the record is in one of them.
            return tuple(each for each in was_open if self._has(each, keys, row))
        return tuple(was_open)

    def _has(self, window: StoredWindow, keys: KeyRange, row: Mapping[str, Any]) -> bool:
        records, _ = records_of_window(self._rows, window, keys)
        listed = zip(*(records[name].to_pylist() for name in ARRIVAL), strict=True)
        return _arrival(row) in set(listed)


def _arrival(row: Mapping[str, Any]) -> _Arrival:
    return (row["arrival_unit"], row["source_partition"], row["offset"])


def _instant(ms: int | None) -> datetime | None:
    return None if ms is None else instant_of(ms)
