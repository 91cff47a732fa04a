"""Several frames around each row, over one key and order: SQL's OVER with named windows (F5)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from windows_pipeline.windows.frames.bounds import FrameUnit
from windows_pipeline.windows.frames.row_count import ResultRows
from windows_pipeline.windows.frames.row_windows import SlideRows


@dataclass(frozen=True, slots=True)
class SeveralRows:
    """Frames around each row, each with a name by which aggregates choose one.

    The window of a row holds the row and what lies between the outermost bounds of these frames,
    of those by time and of those by rows.

    Attributes:
        frames: The frames with their names; at least one.

    Raises:
        ValueError: There is no frame, or one can't hold rows.
    """

    frames: tuple[tuple[str, SlideRows], ...]

    def __post_init__(self) -> None:
        """Checks that there are frames that can hold rows."""
        if not self.frames:
            raise ValueError("frames: must name at least one frame, and names none; add one")
        for _, frame in self.frames:
            frame.require_rows()

    result_rows = ResultRows()

    def outer_on(self, column: str) -> tuple[SlideRows, ...]:
        """The frame between the outermost bounds of each unit; it holds the row."""
        found = []
        for unit in FrameUnit:
            of_unit = [frame for _, frame in self.frames if frame.unit is unit]
            if of_unit:
                back = _furthest(frame.back for frame in of_unit)
                ahead = _furthest(frame.ahead for frame in of_unit)
                found.append(SlideRows(unit=unit, back=back, ahead=ahead, time_column=column))
        return tuple(found)


def _furthest(distances: Iterable[int | None]) -> int | None:
    """The largest distance from the row on the bound's own side; None if one has no bound."""
    furthest = 0
    for distance in distances:
        if distance is None:
            return None
        furthest = max(furthest, distance)
    return furthest
