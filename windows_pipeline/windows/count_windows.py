"""Count windows: N records of a key, in the order of arrival."""

from __future__ import annotations

from dataclasses import dataclass

from windows_pipeline.windows.arguments import require_flag, require_positive_count
from windows_pipeline.windows.frames.bounds import FrameUnit
from windows_pipeline.windows.frames.row_count import ResultRows
from windows_pipeline.windows.frames.row_windows import SlideRows


@dataclass(frozen=True, slots=True)
class CountWindows:
    """Windows of `size` records, a new one every `advance` records of a key (rule F1).

    The last records of a key that do not fill a window are in none. With an advance above the
    size, records between two windows are in none either.

    Attributes:
        size: How many records a window holds.
        advance: How many records after a window's first record the next window starts.
        short_first: False: windows start at record 0, `advance`, 2 `advance`, ... of a key and
            are always full, as in Flink's Table API. True: windows end at the key's record
            `advance`, 2 `advance`, ..., counted from 1, and hold the last `size` records, or
            all records so far if they are fewer, as DataStream's `countWindow(size, advance)`.
    """

    size: int
    advance: int
    short_first: bool = False

    def __post_init__(self) -> None:
        """Checks the arguments (rule F3)."""
        require_positive_count("size", self.size)
        require_positive_count("advance", self.advance)
        require_flag("short_first", self.short_first)

    by_arrival = True
    frames = ()

    def outer_on(self, column: str) -> tuple[SlideRows]:
        """The rows that end with each row, as many as a window has; no time orders them."""
        del column
        return (SlideRows(unit=FrameUnit.ROWS, back=self.size - 1),)

    @property
    def result_rows(self) -> ResultRows:
        """The last rows of the windows."""
        return ResultRows(self.advance if self.short_first else self.size, self.advance, self.size)
