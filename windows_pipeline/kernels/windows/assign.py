"""Assigns records to windows by the windows' ends (rules A5, B2, B5, B6, B7, C1).

Whether a window is closed follows from its end. Sessions are not assigned here: which records they
contain depends on the other records (see kernels/windows/sessions.py).
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

import numpy as np

from windows_pipeline.windows import FixedWindows


class Reason(IntEnum):
    """Why no window counts a record; NONE where a window can."""

    NONE = 0
    LATE = 1
    OUTSIDE_WINDOWS = 2
    PARTLY_LATE = 3


class Assignment(NamedTuple):
    """The window ends between which each record counts, or the reason why no window counts it."""

    enter_ms: np.ndarray
    """The end of the first window that contains the record and was open when the record came."""
    last_end_ms: np.ndarray
    """The end of the last window that contains the record."""
    reason: np.ndarray
    """`Reason.NONE`, `LATE` or `OUTSIDE_WINDOWS`."""

    def only(self, chosen: np.ndarray) -> Assignment:
        """The records of a mask."""
        return self if chosen.all() else Assignment(*(values[chosen] for values in self))


def assign(spec: FixedWindows, time_ms: np.ndarray, close_ms: np.ndarray) -> Assignment:
    """Assigns records to windows, by the close times at their arrival (`NEVER_MS` for none)."""
    length_ms, step_ms, first_start_ms = spec.length_ms, spec.step_ms, spec.first_window_start_ms
    last_start_ms = spec.last_start(time_ms)
    reason = np.zeros(len(time_ms), np.int8)
    reason[spec.is_late(last_start_ms, close_ms)] = Reason.LATE
    reason[spec.is_outside(last_start_ms, time_ms)] = Reason.OUTSIDE_WINDOWS
    first_end_ms, enter_ms = time_ms, close_ms
    if step_ms is not None:
        # The ends are exclusive: windows that end at the close time are closed.
        first_end_ms, enter_ms = (
            spec.last_start(ms - length_ms) + (step_ms + length_ms) for ms in (time_ms, close_ms)
        )
    if first_start_ms is not None:
        if step_ms is not None:
            first_start_ms = -(-first_start_ms // step_ms) * step_ms
        first_end_ms = np.maximum(first_end_ms, first_start_ms + length_ms)
    return Assignment(np.maximum(first_end_ms, enter_ms), last_start_ms + length_ms, reason)
