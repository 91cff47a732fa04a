"""How far a row's frame reaches before and after it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from windows_pipeline.windows.durations import MAX_DURATION_MS, Duration, duration_ms
from windows_pipeline.windows.row_count import RowCount


class FrameUnit(StrEnum):
    """What a frame is measured in: SQL's two kinds of frames.

    A range is milliseconds of time: rows of equal time are peers, all in or all out. Rows are
    counted in the order of time, and of arrival where times are equal.
    """

    RANGE = "range"
    ROWS = "rows"


@dataclass(frozen=True, slots=True)
class RowBound:
    """One side of a frame.

    Attributes:
        unit: What the distance is measured in.
        distance: From the row to the bound, in milliseconds or rows; None for no bound.
    """

    unit: FrameUnit
    distance: int | None

    def __post_init__(self) -> None:
        """Checks the distance."""
        if self.distance is None:
            return
        if type(self.distance) is not int:
            raise ValueError(f"bound: {self.distance!r} is no whole number; use an int")
        if abs(self.distance) > MAX_DURATION_MS:
            raise ValueError(f"bound: {self.distance!r} is too far; at most {MAX_DURATION_MS}")


UNBOUNDED_ROW = RowBound(FrameUnit.ROWS, None)
"""All rows on this side, in a frame by rows."""
UNBOUNDED_RANGE = RowBound(FrameUnit.RANGE, None)
"""All rows on this side, in a frame by time."""
CURRENT_ROW = RowBound(FrameUnit.ROWS, 0)
"""The row itself."""
CURRENT_RANGE = RowBound(FrameUnit.RANGE, 0)
"""The row and its peers: those of its time."""

Bound = Duration | RowCount | RowBound


def row_bound(value: Bound, name: str) -> RowBound:
    """Reads a bound.

    Args:
        value: A duration, `rows(5)`, or one of the constants of this module.
        name: The argument's name, for the error.

    Raises:
        ValueError: None of these; names the argument and the value.
    """
    if isinstance(value, RowBound):
        return value
    if isinstance(value, RowCount):
        return RowBound(FrameUnit.ROWS, value.count)
    return RowBound(FrameUnit.RANGE, duration_ms(value, name))
