"""Where a record stands among the windows that can hold it (rules A5, B2, B5, B6, B7, C1).

By the ends of windows: they tell what is closed. Sessions have no place of their own; what they
hold depends on the other records (`session_sweep`).
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

import numpy as np

from windows_pipeline.windows import ForwardSlidingWindows, SlidingWindows, TimeWindows

PlacedWindows = SlidingWindows | ForwardSlidingWindows | TimeWindows


class Reason(IntEnum):
    """Why no window counts a record; 0 where one can."""

    NONE = 0
    LATE = 1
    OUTSIDE_WINDOWS = 2
    PARTLY_LATE = 3


class Placement(NamedTuple):
    """The ends of the windows that count each record, and why none does."""

    enter_ms: np.ndarray
    """The first end that holds the record and was not closed when it came."""
    last_end_ms: np.ndarray
    """The last end that holds it."""
    reason: np.ndarray
    """`Reason.NONE`, `LATE` or `UNCOVERED`."""
    partly_late: np.ndarray
    """Whether the first window was closed when it came, and not the last (rule B5)."""


def place(spec: PlacedWindows, time_ms: np.ndarray, close_ms: np.ndarray) -> Placement:
    """Places records that met these close times (`timeline.NEVER_MS` for none)."""
    first_end_ms, last_end_ms = _ends(spec, time_ms)
    # Hopping and tumbling ends are exclusive: one at the close time is closed.
    open_end_ms = _next_end(spec, close_ms) if isinstance(spec, TimeWindows) else close_ms
    enter_ms = np.maximum(first_end_ms, open_end_ms)
    reason = np.zeros(len(time_ms), np.int8)
    reason[enter_ms > last_end_ms] = Reason.LATE
    reason[first_end_ms > last_end_ms] = Reason.OUTSIDE_WINDOWS
    partly_late = (enter_ms > first_end_ms) & (reason == Reason.NONE)
    return Placement(enter_ms, last_end_ms, reason, partly_late)


def _ends(spec: PlacedWindows, time_ms: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The first and last end of windows that hold each time; crossed where none does."""
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
