"""What `trace` returns of a final window, or of a row and its neighbouring rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from windows_pipeline.query.history import WindowCorrection
from windows_pipeline.query.pinned_windows import PinnedWindows
from windows_pipeline.query.stored_window import StoredWindow
from windows_pipeline.query.tables.arrow_values import integer, microseconds, python_rows
from windows_pipeline.query.tables.keys import KeyRange, in_order
from windows_pipeline.query.tables.wanted import Span, Wanted
from windows_pipeline.windows import ROW_KEY


@dataclass(frozen=True)
class WindowTrace:
    """A final window with its records, why it is final, and what became of it.

    Attributes:
        window: The window.
        row: Its row, with all columns of the table and `_watermark`.
        records: The records that count in it: the columns of raw_events, `stream_time` and
            `close_time` as they were when the record arrived, and `behind_ms`, how far its event
            time was behind stream time; in the order of event time, then of arrival.
        around: Of a window without records: the key's last record before it and the first after it
            that closed windows count, with the columns of `records`. Otherwise no rows.
        closed_at_ms: The close time after the arrival day that closed the window, in milliseconds
            since 1970; None if the log does not say.
        before: The key's window before it, by start; of a window of rows that of the row before.
        after: The key's window after it.
        firings: Its firings, by number.
        corrections: Its corrections, by number.
    """

    window: StoredWindow
    row: pa.Table
    records: pa.Table
    around: pa.Table
    closed_at_ms: int | None
    before: StoredWindow | None
    after: StoredWindow | None
    firings: tuple[StoredWindow, ...]
    corrections: tuple[WindowCorrection, ...]


def rows_beside(
    windows: PinnedWindows, keys: KeyRange, window: StoredWindow, order: Sequence[str]
) -> tuple[StoredWindow | None, StoredWindow | None]:
    """The windows of the rows before and after a row, among the key's rows that have a window.

    Args:
        windows: The windows.
        keys: The window's key.
        window: The window of the row.
        order: The columns that order the rows: `ROW_KEY`, or those of it that say when it arrived.
    """
    # Columns that do not identify a row are read for the two rows only.
    rows = in_order(windows.table.read(Wanted(keys), columns=ROW_KEY), order)
    with_offset = pc.indices_nonzero(pc.equal(rows["offset"], integer(window.other["offset"])))
    own = (at for at in with_offset.to_pylist() if is_of_row(window, _row(rows, at)))
    at = next(own, None)
    if at is None:
        return None, None
    before = _window_of(windows, keys, _row(rows, at - 1)) if at > 0 else None
    is_last = at + 1 == rows.num_rows
    return before, None if is_last else _window_of(windows, keys, _row(rows, at + 1))


def is_of_row(window: StoredWindow, row: Mapping[str, Any]) -> bool:
    """Whether a window belongs to this row, which has the columns of `ROW_KEY`."""
    return all(window.other[name] == row[name] for name in ROW_KEY)


def _row(rows: pa.Table, index: int) -> dict[str, Any]:
    return next(python_rows(rows.slice(index, 1)))


def _window_of(
    windows: PinnedWindows, keys: KeyRange, row: Mapping[str, Any]
) -> StoredWindow | None:
    at = microseconds(row["event_time"])
    of_time = windows.found(Wanted(keys, {"event_time": Span(at, at)}))
    return next((each for each in of_time if is_of_row(each, row)), None)
