"""What became of a window after it was first published: firings and corrections (rules E1, E2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from windows_pipeline.query.stored_window import StoredWindow
from windows_pipeline.query.tables.arrow_values import python_rows
from windows_pipeline.query.tables.local import LocalTable
from windows_pipeline.query.tables.wanted import Wanted
from windows_pipeline.storage.catalog import TableSpec


@dataclass(frozen=True)
class WindowCorrection:
    """A correction of a final window (rule E1).

    Attributes:
        number: The correction's number.
        change: `changed`, `retracted` or `added`.
        cause: The reason that the user gave for the correction.
        start: The window's first instant.
        end: Its end.
        arrival_unit: The arrival day that closed the window.
        row: For a row window, the values that identify its row, by column; empty for other windows.
        old: The result before, by column; None if the window was added.
        new: The result after, by column; None if the window was retracted.
    """

    number: int
    change: str
    cause: str
    start: datetime
    end: datetime
    arrival_unit: date
    row: Mapping[str, Any]
    old: Mapping[str, Any] | None
    new: Mapping[str, Any] | None


@dataclass(frozen=True)
class WindowHistory:
    """What became of a window.

    Attributes:
        firings: Its firings, by number; none of windows without a trigger.
        corrections: Its corrections, by number.
    """

    firings: tuple[StoredWindow, ...]
    corrections: tuple[WindowCorrection, ...]


def corrections_in(
    corrections: TableSpec, wanted: Wanted, row_key: Sequence[str]
) -> tuple[WindowCorrection, ...]:
    """The corrections of some windows, in order; none if the table does not exist.

    Args:
        corrections: The table.
        wanted: Which windows.
        row_key: The columns that name the row of a window of rows.

    Raises:
        TableDamagedError: A file of the table is damaged.
        UnreadableTableError: Only Spark can read the table.
    """
    table = LocalTable.if_there(corrections)
    if table is None:
        return ()
    found = [
        WindowCorrection(
            number=row["correction"],
            change=row["change"],
            cause=row["cause"],
            start=row["window_start"],
            end=row["window_end"],
            arrival_unit=row["arrival_unit"],
            row={name: row[name] for name in row_key},
            old=row["old"],
            new=row["new"],
        )
        for row in python_rows(table.read(wanted))
    ]
    return tuple(sorted(found, key=lambda each: (each.number, each.start, each.end)))
