"""Selects, reads and orders the windows of a definition at one version of a table."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import pyarrow as pa

from windows_pipeline.config import Pipeline, Windows
from windows_pipeline.query.current import current_windows
from windows_pipeline.query.portions import portions_of
from windows_pipeline.query.stored_window import WATERMARK, FoundWindows
from windows_pipeline.query.tables.arrival_days import Watermarks, log_parts
from windows_pipeline.query.tables.keys import KEY, in_order
from windows_pipeline.query.tables.local import LocalTable
from windows_pipeline.query.tables.wanted import Span, Wanted
from windows_pipeline.storage.catalog import specs_of

Which = Literal["final", "current", "firings"]
"""Closed windows; every window as it stands now; every firing."""
MOST_ROWS = 250_000
"""How many rows of a table are in memory at a time, unless one key has more sessions."""


def length_us(windows: Windows) -> int | None:
    """The time from a window's start to its end, in microseconds; None if windows differ."""
    length_ms = windows.spec.length_ms
    return None if length_ms is None else length_ms * 1_000


def holding(windows: Windows, at_us: int) -> dict[str, Span]:
    """The condition for windows whose interval contains an instant, in microseconds since 1970.

    The end belongs to a window, unless it is a hopping or tumbling one (rules B2, C1, D1).
    """
    # Event times are whole milliseconds, finer parts are cut off.
    at_us = at_us // 1_000 * 1_000
    first_end_us = at_us + windows.spec.excludes_end
    length = length_us(windows)
    if length is None:
        return {"window_start": Span(None, at_us), "window_end": Span(first_end_us, None)}
    # Files have statistics of ends.
    return {
        "window_start": Span(first_end_us - length, at_us),
        "window_end": Span(first_end_us, at_us + length),
    }


class PinnedWindows:
    """The windows at one version of their table, with the watermarks at that version."""

    def __init__(
        self,
        pipeline: Pipeline,
        windows_name: str,
        warehouse: str,
        which: Which,
        version: int | None = None,
        most_rows: int = MOST_ROWS,
    ) -> None:
        """Opens the table.

        Args:
            pipeline: The pipeline.
            windows_name: The window definition.
            warehouse: The folder of all tables.
            which: Which windows they are.
            version: The table's version; None for the newest.
            most_rows: How many rows of the table to have in memory at a time.

        Raises:
            NoTableError: The table does not exist.
            TableDamagedError: The log is damaged.
            UnreadableTableError: Only Spark can read the table, or has no such
                version.
            ValueError: The windows have no firings.
        """
        self._windows = pipeline.windows[windows_name]
        self._which, self._most_rows = which, most_rows
        specs = specs_of(pipeline, warehouse)
        tables = specs.of(windows_name)
        of_which = {
            "final": tables.final_windows,
            "current": tables.keyed_windows,
            "firings": tables.firings,
        }
        if not of_which[which].is_written:
            raise ValueError(
                f"table: windows {pipeline.name}/{windows_name} must have a trigger for "
                "'firings', but have none; use final or current"
            )
        self.table = LocalTable(of_which[which], version)
        self._watermarks = Watermarks(log_parts(specs.arrival_log))

    def found(self, wanted: Wanted, *, backward: bool = False) -> FoundWindows:
        """The windows that are wanted, in the order of key, start and end, or in the reverse.

        Args:
            wanted: Which rows. Of sessions as they stand now, a condition that is true of each
                session that contains one of which it is true.
            backward: Whether in the reverse order.
        """
        aggregates = tuple(each.name for each in self._windows.aggregate_list)
        schema = self.table.schema.append(pa.field(WATERMARK, pa.timestamp("us", "UTC")))
        return FoundWindows(schema, lambda: self._portions(wanted, backward=backward), aggregates)

    def _portions(self, wanted: Wanted, *, backward: bool) -> Iterator[pa.Table]:
        by_end = length_us(self._windows) is not None
        in_order = portions_of(self.table, wanted, self._most_rows, by_end=by_end)
        for part in reversed(list(in_order)) if backward else in_order:
            rows = self._rows(part)
            if rows.num_rows:
                yield self._ordered(rows, backward=backward)

    def _rows(self, wanted: Wanted) -> pa.Table:
        rows = self.table.read(wanted)
        if self._which == "current":
            may_grow = not self._windows.spec.keeps_bounds
            rows = current_windows(rows, self._windows.window_key, may_grow=may_grow)
        return rows.append_column(WATERMARK, self._watermarks.after(rows))

    def _ordered(self, rows: pa.Table, *, backward: bool) -> pa.Table:
        names = [KEY, "window_start", "window_end", *self._windows.row_key]
        if self._which == "firings":
            names.append("firing_id")
        return in_order(rows, names, backward=backward)
