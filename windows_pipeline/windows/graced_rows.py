"""Row windows and count windows of a pipeline: a result a row, with a grace (rules F1, F2)."""

from __future__ import annotations

from dataclasses import dataclass, replace

from windows_pipeline.windows.count_windows import CountWindows
from windows_pipeline.windows.graced import Graced
from windows_pipeline.windows.row_bounds import FrameUnit
from windows_pipeline.windows.row_windows import RowWindow, SlideRows

ROW_NAME = ("event_time", "record_arrival_unit", "source_partition", "offset")
"""The columns that name a row: its event time, and where it stands in the order of arrival."""
_TIME = "event_time"


@dataclass(frozen=True, slots=True)
class GracedRows(Graced):
    """What a row's window holds, of the records that came in time.

    A record is in time unless it lies before the close time that it met (rule A3). The window
    of a row ends with the last instant that its result hangs on; it is final once that lies
    before the close time.

    Attributes:
        window: FLIP-11's row windows, or windows of so many records, of which each is the
            result of its last record.
        grace_ms: How far behind stream time a record may come.
    """

    window: RowWindow | CountWindows
    grace_ms: int

    def __post_init__(self) -> None:
        """Checks that a frame can hold rows."""
        if isinstance(self.window, SlideRows):
            self.window.require_rows()

    @property
    def frame(self) -> RowWindow:
        """The rows that a result holds, as the engine takes them."""
        if isinstance(self.window, CountWindows):
            return SlideRows(unit=FrameUnit.ROWS, back=self.window.size - 1)
        by_arrival = not isinstance(self.window, SlideRows) and self.window.by_arrival
        return self.window if by_arrival else replace(self.window, time_column=_TIME)

    @property
    def by_arrival(self) -> bool:
        """Whether rows stand in the order of arrival alone."""
        return self.frame.by_arrival
