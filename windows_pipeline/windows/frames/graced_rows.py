"""Row and count windows of a pipeline: one result for each row, with a grace (rules F1, F2)."""

from __future__ import annotations

from dataclasses import dataclass, replace

from windows_pipeline.windows.count_windows import CountWindows
from windows_pipeline.windows.frames.bounds import FrameUnit
from windows_pipeline.windows.frames.row_windows import RowWindow, SlideRows
from windows_pipeline.windows.graced import Graced

ROW_KEY = ("event_time", "record_arrival_unit", "source_partition", "offset")
"""The columns that identify a row: its event time, and its position in the order of arrival."""
_TIME = "event_time"


@dataclass(frozen=True, slots=True)
class GracedRows(Graced):
    """Windows with one result for each row, over the records that arrived in time.

    A record is in time unless its event time is before its close time on arrival (rule A3). The
    window of a row ends at the last instant that its result depends on; the result is final
    once that instant is before the close time.

    Attributes:
        window: FLIP-11's row windows, or count windows, each the result of its last record.
        grace_ms: How far behind stream time a record may arrive.
    """

    window: RowWindow | CountWindows
    grace_ms: int

    def __post_init__(self) -> None:
        """Checks that a frame can contain rows."""
        if isinstance(self.window, SlideRows):
            self.window.require_rows()

    @property
    def frame(self) -> RowWindow:
        """The row window that the engine evaluates: count windows become frames of rows."""
        if isinstance(self.window, CountWindows):
            return SlideRows(unit=FrameUnit.ROWS, back=self.window.size - 1)
        by_arrival = not isinstance(self.window, SlideRows) and self.window.by_arrival
        return self.window if by_arrival else replace(self.window, time_column=_TIME)

    @property
    def by_arrival(self) -> bool:
        """Whether the order of arrival alone orders the rows."""
        return self.frame.by_arrival
