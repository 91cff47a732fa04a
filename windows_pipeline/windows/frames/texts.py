"""Reads the bounds and sizes of row windows from text, as pipelines' files and SQL write them."""

from __future__ import annotations

import re

from windows_pipeline.text.limits import require_short
from windows_pipeline.windows.durations import Duration
from windows_pipeline.windows.frames.bounds import (
    UNBOUNDED_RANGE,
    UNBOUNDED_ROW,
    RowBound,
    row_bound,
)
from windows_pipeline.windows.frames.row_count import RowCount, rows
from windows_pipeline.windows.frames.row_windows import SlideRows

ROWS = re.compile(r"([+-]?[0-9]+)\s*rows?", re.IGNORECASE)
UNBOUNDED = {"unbounded": UNBOUNDED_RANGE, "unbounded rows": UNBOUNDED_ROW}


def distance_of(text: str, name: str) -> Duration | RowCount:
    """The number of rows in '5 rows'; any other text as it is, for what reads a duration.

    Raises:
        ValueError: The text is too long, or the number too large.
    """
    require_short(text, name)
    counted = ROWS.fullmatch(text.strip()) if isinstance(text, str) else None
    return text if counted is None else rows(int(counted[1]))


def bound_of(text: str, name: str) -> RowBound:
    """Reads a bound: a duration, '5 rows', 'unbounded' or 'unbounded rows'.

    Args:
        text: The bound.
        name: The argument's name, for the error.

    Raises:
        ValueError: The text has another form; the message has the argument, the value and the fix.
    """
    plain = " ".join(text.lower().split()) if isinstance(text, str) else ""
    if plain in UNBOUNDED:
        return UNBOUNDED[plain]
    try:
        return row_bound(distance_of(text, name), name)
    except ValueError as error:
        raise ValueError(f"{error}; or '5 rows'") from None


def frame_of(preceding: str | None = None, following: str | None = None) -> SlideRows:
    """Makes the rows around each row; a bound that is left out is at the row.

    Raises:
        ValueError: Both bounds are left out, a bound has another form or the other's unit is
            another, or the frame starts after its end.
    """
    texts = {"preceding": preceding, "following": following}
    bounds = {name: bound_of(text, name) for name, text in texts.items() if text is not None}
    if not bounds:
        raise ValueError(
            "preceding: is missing, and so is following; add how far before the row the frame "
            "starts, such as '10 minutes' or '5 rows', or how far after the row the frame ends"
        )
    if "preceding" not in bounds:
        return SlideRows.following(bounds["following"])
    frame = SlideRows.preceding(bounds["preceding"])
    return frame.following(bounds["following"]) if "following" in bounds else frame
