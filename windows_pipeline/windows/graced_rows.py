"""Row and count windows of a pipeline: one result for each row, with a grace (rules F1, F2)."""

from __future__ import annotations

from dataclasses import dataclass

from windows_pipeline.windows.count_windows import CountWindows
from windows_pipeline.windows.frames.row_windows import RowWindow
from windows_pipeline.windows.frames.several_rows import SeveralRows
from windows_pipeline.windows.graced import Graced
from windows_pipeline.windows.look_around import LookAround

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
        window: FLIP-11's row windows, one or several frames around each row; or count windows,
            each the result of its last record.
        grace_ms: How far behind stream time a record may arrive.
    """

    window: RowWindow | SeveralRows | CountWindows
    grace_ms: int

    def __post_init__(self) -> None:
        """Checks that a frame can contain rows."""
        for frame in self.outer:
            frame.require_rows()

    @property
    def outer(self) -> tuple[RowWindow, ...]:
        """The row windows that the engine evaluates, which together are a row's window.

        Count windows become frames of rows; several frames become one of each unit, between
        their outermost bounds.
        """
        return self.window.outer_on(_TIME)

    @property
    def frames(self) -> tuple[RowWindow, ...]:
        """All frames of a row; of several frames those that the aggregates choose from."""
        return tuple(frame for _, frame in self.window.frames) or self.outer

    def frames_of(self, name: str | None) -> tuple[RowWindow, ...]:
        """The row windows that hold an aggregate's values, by its frame's name if it has one."""
        named = dict(self.window.frames)
        return self.outer if name is None or not named else named[name].outer_on(_TIME)

    @property
    def by_arrival(self) -> bool:
        """Whether the order of arrival alone orders the rows."""
        return self.outer[0].by_arrival

    @property
    def row_order(self) -> tuple[str, ...]:
        """The columns of `ROW_KEY` that order the rows of a key."""
        return ROW_KEY[1:] if self.by_arrival else ROW_KEY

    @property
    def timeout_ms(self) -> int | None:
        """See `Graced.timeout_ms`."""
        return self.outer[0].timeout_ms

    late_after_ms = 0

    @property
    def look_back_ms(self) -> int | None:
        """That of a single frame; None if one of two is by rows."""
        frame, *others = self.outer
        return None if others else frame.look_back_ms

    @property
    def look_around(self) -> LookAround | None:
        """The most that one of the frames needs."""
        return LookAround.of_all([frame.look_around for frame in self.outer])

    trigger_problem = (
        "trigger: windows of rows have one result for each row, the final one; use "
        "Trigger.until_window_closes()"
    )
