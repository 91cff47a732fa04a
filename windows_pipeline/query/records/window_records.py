"""The records that count in a window, and why it is final (rules E5, F5)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import date
from typing import Any

import numpy as np
import pyarrow as pa

from windows_pipeline.query.records.definition_rows import DefinitionRows
from windows_pipeline.query.records.record_times import ARRIVAL, ArrivedRecord
from windows_pipeline.query.records.row_records import records_of_row
from windows_pipeline.query.stored_window import StoredWindow
from windows_pipeline.query.tables.arrow_values import booleans, instants, microseconds
from windows_pipeline.query.tables.keys import KeyRange, in_order
from windows_pipeline.query.tables.wanted import Span
from windows_pipeline.windows import (
    FixedWindows,
    ForwardSlidingWindows,
    GracedRows,
    SessionWindows,
    SlidingWindows,
    TimeWindows,
)

_MS_US = 1_000


def records_of_window(
    found: DefinitionRows, window: StoredWindow, keys: KeyRange
) -> tuple[pa.Table, int | None]:
    """Finds the records that count in a final window, and the close time that made it final.

    Args:
        found: The accepted records, for the window's definition.
        window: The window, of the table `final`.
        keys: The window's key.

    Returns:
        The columns of raw_events, with `stream_time` and `close_time` as they were when the record
        arrived, and `behind_ms`, how far its event time was behind stream time; in the order of
        event time, then of arrival. With it the close time after the arrival unit that closed the
        window, in milliseconds since 1970; None if the log does not say.

    Raises:
        TableDamagedError: A file of a table is damaged.
        UnreadableTableError: Nothing evaluates the definition's filter.
    """
    spec = found.windows.spec
    bounds = microseconds(window.start), microseconds(window.end)
    if spec.timeout_ms is None or spec.keeps_bounds:
        near = found.passing(keys, Span(bounds[0], bounds[1] - spec.excludes_end))
    else:  # records beyond a session's bounds can have decided what it counts
        near = _run_around(found, keys, bounds, spec.timeout_ms * _MS_US)
    rows = in_order(near, ("event_time", *ARRIVAL))
    records = [record for record in found.times.of(rows) if record is not None]
    counted = _COUNTED[type(spec)](records, spec, window)
    return _with_times(rows, counted), found.times.closed_after_ms(window.arrival_unit)


def _of_window(
    records: Sequence[ArrivedRecord], spec: FixedWindows, window: StoredWindow
) -> list[ArrivedRecord]:
    """The records of a window of one length: those for which the window was open (rule A5)."""
    last_ms = spec.last_instant(microseconds(window.end) // _MS_US)
    return [record for record in records if record.close_ms <= last_ms]


def _run_around(
    raw: DefinitionRows, keys: KeyRange, bounds: tuple[int, int], gap_us: int
) -> pa.Table:
    """The key's records around a session, on each side up to a silence longer than the gap."""
    first_us, last_us = bounds
    reach_us = gap_us
    while True:
        from_us, to_us = first_us - reach_us - gap_us, last_us + reach_us + gap_us
        rows = raw.passing(keys, Span(from_us, to_us))
        times = np.unique(rows["event_time"].cast(pa.int64()).to_numpy())
        silences = np.flatnonzero(np.diff(times) > gap_us)
        before = silences[times[silences + 1] <= first_us]
        after = silences[times[silences] >= last_us]
        begins = times[before[-1] + 1] if len(before) else times[0]
        ends = times[after[0]] if len(after) else times[-1]
        # A record just beyond the edge could belong to the run.
        if begins > from_us + gap_us and ends < to_us - gap_us:
            return raw.passing(keys, Span(int(begins), int(ends)))
        reach_us *= 2


def _of_session(
    records: Sequence[ArrivedRecord], spec: SessionWindows, window: StoredWindow
) -> list[ArrivedRecord]:
    """The records of the session with these bounds, joined in the order of arrival (rule D2)."""
    bounds = microseconds(window.start) // _MS_US, microseconds(window.end) // _MS_US
    sessions: list[list[ArrivedRecord]] = []
    for record in sorted(records, key=_arrival):
        merged, others = [record], []
        for session in sessions:
            is_open = session[-1].event_ms >= record.close_ms
            nearest = min(abs(each.event_ms - record.event_ms) for each in session)
            if is_open and nearest <= spec.gap_ms:
                merged += session
            else:
                others.append(session)
        merged.sort(key=lambda each: each.event_ms)
        if merged[-1].event_ms >= record.close_ms:
            sessions = [*others, merged]
    for session in sessions:
        if (session[0].event_ms, session[-1].event_ms) == bounds:
            return session
    return []


def _of_row(
    records: Sequence[ArrivedRecord], spec: GracedRows, window: StoredWindow
) -> list[ArrivedRecord]:
    return records_of_row(records, spec, window.other, window.record_count)


_COUNTED: Mapping[
    type, Callable[[Sequence[ArrivedRecord], Any, StoredWindow], list[ArrivedRecord]]
] = {
    SlidingWindows: _of_window,
    ForwardSlidingWindows: _of_window,
    TimeWindows: _of_window,
    SessionWindows: _of_session,
    GracedRows: _of_row,
}
"""What finds, among the records between a window's bounds, those that count in it."""


def _arrival(record: ArrivedRecord) -> tuple[int, str, date, int]:
    """What orders the merge of the source partitions: stream time, partition, arrival (rule A1)."""
    return (record.stream_ms, record.partition, record.arrival_unit, record.offset)


def _with_times(rows: pa.Table, counted: Sequence[ArrivedRecord]) -> pa.Table:
    """The counted records' rows, with `stream_time`, `close_time` and `behind_ms`."""
    chosen = np.zeros(rows.num_rows, dtype=bool)
    in_rows = sorted(counted)
    chosen[[record.position for record in in_rows]] = True
    late = np.array([each.stream_ms - each.event_ms for each in in_rows], np.int64)
    return (
        rows.filter(booleans(chosen))
        .append_column("stream_time", instants([each.stream_ms for each in in_rows]))
        .append_column("close_time", instants([each.close_ms for each in in_rows]))
        .append_column(
            "behind_ms", pa.Array.from_buffers(pa.int64(), len(late), [None, pa.py_buffer(late)])
        )
    )
