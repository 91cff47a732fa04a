"""Bounds of a row's frame: how far it extends before and after the row."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from windows_pipeline.windows.durations import MAX_DURATION_MS, Duration, duration_ms
from windows_pipeline.windows.frames.row_count import RowCount


class FrameUnit(StrEnum):
    """The unit of a frame's bounds: SQL's two kinds of frames.

    A RANGE frame is measured in milliseconds: it contains all rows of equal time (peers), or
    none. A ROWS frame counts rows in the order of time and, at one time, of arrival.
    """

    RANGE = "range"
    ROWS = "rows"


@dataclass(frozen=True, slots=True)
class RowBound:
    """The start or the end of a frame.

    Attributes:
        unit: The unit of the distance.
        distance: The distance from the row to the bound, in milliseconds or rows; None for an
            unbounded frame.
    """

    unit: FrameUnit
    distance: int | None

    def __post_init__(self) -> None:
        """Checks the distance."""
        if self.distance is None:
            return
        if type(self.distance) is not int:
            raise ValueError(f"bound: {self.distance!r} is not a whole number; use an int")
        if abs(self.distance) > MAX_DURATION_MS:
            raise ValueError(f"bound: {self.distance!r} is too far; use at most {MAX_DURATION_MS}")


UNBOUNDED_ROW = RowBound(FrameUnit.ROWS, None)
"""All rows before or after the row, in a frame by rows."""
UNBOUNDED_RANGE = RowBound(FrameUnit.RANGE, None)
"""All rows before or after the row, in a frame by time."""
CURRENT_ROW = RowBound(FrameUnit.ROWS, 0)
"""The row itself."""
CURRENT_RANGE = RowBound(FrameUnit.RANGE, 0)
"""The row and its peers, the rows of the same time."""

Bound = Duration | RowCount | RowBound


def row_bound(value: Bound, name: str) -> RowBound:
    """Converts an argument to a bound.

    Args:
        value: A duration, `rows(5)`, or one of the constants of this module.
        name: The argument's name, for the error.

    Raises:
        ValueError: The value has another form; the message has the argument and the value.
    """
    if isinstance(value, RowBound):
        return value
    if isinstance(value, RowCount):
        return RowBound(FrameUnit.ROWS, value.count)
    return RowBound(FrameUnit.RANGE, duration_ms(value, name))
