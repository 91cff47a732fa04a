"""Golden cases of row windows: reads their windows and the expected answer for each row."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from windows_pipeline.windows.frames.bounds import FrameUnit
from windows_pipeline.windows.frames.row_windows import (
    RowWindow,
    SessionRows,
    SlideRows,
    TumbleRows,
)

_TIME = "_event_time_ms"


class RowAnswer(NamedTuple):
    """The answer for a row: the offsets of the records in its window, and the bounds if any."""

    key: str | None
    offset: int
    start: int | None
    end: int | None
    offsets: tuple[int, ...]


def row_answers(
    rows: Sequence[Mapping[str, Any]], key_text: Callable[[object], str | None]
) -> list[RowAnswer]:
    """Reads the answers of a case, sorted.

    Args:
        rows: The answers in the cases' format.
        key_text: Converts a record's key to text.
    """
    found = [
        RowAnswer(
            key_text(row["key"]),
            row["offset"],
            row.get("start"),
            row.get("end"),
            tuple(row["offsets"]),
        )
        for row in rows
    ]
    return sorted(found, key=repr)


def _slide(window: dict[str, Any]) -> RowWindow:
    # A null bound means unbounded.
    unit = FrameUnit(window["kind"])
    return SlideRows(
        unit=unit, back=window["preceding"], ahead=window.get("following", 0), time_column=_TIME
    )


def _tumble(window: dict[str, Any]) -> RowWindow:
    return TumbleRows(unit=FrameUnit.RANGE, size=window["size_ms"], time_column=_TIME)


def _tumble_count(window: dict[str, Any]) -> RowWindow:
    return TumbleRows(unit=FrameUnit.ROWS, size=window["size"], time_column=_TIME)


def _session(window: dict[str, Any]) -> RowWindow:
    return SessionRows(gap_ms=window["gap_ms"], time_column=_TIME)


ROW_KINDS: Mapping[str, Callable[[dict[str, Any]], RowWindow]] = {
    "range": _slide,
    "rows": _slide,
    "tumble_rows": _tumble,
    "tumble_rows_count": _tumble_count,
    "session_rows": _session,
}
"""The functions that read the windows of each kind."""
