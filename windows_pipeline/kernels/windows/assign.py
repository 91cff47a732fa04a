"""Assigns records to windows by the windows' ends (rules A5, B2, B5, B6, B7, C1).

Whether a window is closed follows from its end. Sessions are not assigned here: which records they
contain depends on the other records (see kernels/windows/sessions.py).
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

import numpy as np

from windows_pipeline.windows import ForwardSlidingWindows, SlidingWindows, TimeWindows

AssignedWindows = SlidingWindows | ForwardSlidingWindows | TimeWindows


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


def assign(spec: AssignedWindows, time_ms: np.ndarray, close_ms: np.ndarray) -> Assignment:
    """Assigns records to windows, by the close times at their arrival (`NEVER_MS` for none)."""
    first_end_ms, last_end_ms = _ends(spec, time_ms)
    # Hopping and tumbling windows exclude their end, so windows that end at the close are closed.
    open_end_ms = _next_end(spec, close_ms) if isinstance(spec, TimeWindows) else close_ms
    enter_ms = np.maximum(first_end_ms, open_end_ms)
    reason = np.zeros(len(time_ms), np.int8)
    reason[enter_ms > last_end_ms] = Reason.LATE
    reason[first_end_ms > last_end_ms] = Reason.OUTSIDE_WINDOWS
    return Assignment(enter_ms, last_end_ms, reason)


def _ends(spec: AssignedWindows, time_ms: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The first and last end of windows that contain each time; first > last if none does."""
    match spec:
        case SlidingWindows(time_difference_ms=difference_ms, first_window_start_ms=first):
            first_end_ms = time_ms if first is None else np.maximum(time_ms, first + difference_ms)
            return first_end_ms, time_ms + difference_ms
        case ForwardSlidingWindows(size_ms=size_ms):
            return time_ms, time_ms + size_ms
        case TimeWindows(size_ms=size_ms, advance_ms=advance_ms, first_window_start_ms=first):
            first_end_ms = _next_end(spec, time_ms)
            if first is not None:
                first_start_ms = -(-first // advance_ms) * advance_ms
                first_end_ms = np.maximum(first_end_ms, first_start_ms + size_ms)
            return first_end_ms, time_ms // advance_ms * advance_ms + size_ms


def _next_end(spec: TimeWindows, ms: np.ndarray) -> np.ndarray:
    """The first window end after a time."""
    next_end: np.ndarray = (ms - spec.size_ms) // spec.advance_ms * spec.advance_ms + (
        spec.advance_ms + spec.size_ms
    )
    return next_end
