"""Finds the rows in each row's window, with two positions that only move forward (rule F2)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from windows_pipeline.compat.numba_jit import compiled
from windows_pipeline.kernels.windows.sessions import sessions_by_gap
from windows_pipeline.windows.frames.bounds import FrameUnit
from windows_pipeline.windows.frames.row_windows import (
    RowWindow,
    SessionRows,
    SlideRows,
    TumbleRows,
)

_UNBOUNDED = 2**62
"""More than the distance between any two event times, or rows."""


class Frames(NamedTuple):
    """The window of each row: the rows [left, entered).

    Attributes:
        starts: Where each part begins; one more entry for the end of the last. A part is a
            group, or a tumbling window or session in it: no window extends beyond its part.
        part: The number of each row's part.
        left: The index of the window's first row, among all rows.
        entered: The index after the window's last row.
        start_ms: The start of each row's tumbling window or session; None for other windows.
        end_ms: The end of each row's tumbling window; None for other windows.
    """

    starts: np.ndarray
    part: np.ndarray
    left: np.ndarray
    entered: np.ndarray
    start_ms: np.ndarray | None = None
    end_ms: np.ndarray | None = None


def frames_of(
    window: RowWindow,
    starts: np.ndarray,
    time_ms: np.ndarray,
    rows_before: np.ndarray | None = None,
) -> Frames:
    """Finds the window of each row.

    Args:
        window: The windows.
        starts: Where each group's rows begin; one more entry for the end of the last.
        time_ms: The rows' times: ascending within a group, unless rows are sorted by arrival
            (`by_arrival`).
        rows_before: How many rows come before each group's first one, in other shards; None for
            no rows.
    """
    return _FRAMES[type(window)](window, starts, time_ms, rows_before)


def _slides(
    window: SlideRows, starts: np.ndarray, time_ms: np.ndarray, rows_before: np.ndarray | None
) -> Frames:
    del rows_before
    back, ahead = _far(window.back), _far(window.ahead)
    if window.unit is FrameUnit.ROWS:
        return _row_frames(starts, back, ahead)
    return Frames(starts, _parts(starts), *_ranges(starts, time_ms, back, ahead))


def _tumbles(
    window: TumbleRows, starts: np.ndarray, time_ms: np.ndarray, rows_before: np.ndarray | None
) -> Frames:
    if window.unit is FrameUnit.RANGE:
        number = np.floor_divide(time_ms, window.size)
        frames = _growing(_cut(starts, np.diff(number, prepend=0) != 0))
        start_ms = number * window.size
        return frames._replace(start_ms=start_ms, end_ms=start_ms + window.size)
    number = np.arange(len(time_ms)) - starts[_parts(starts)]
    if rows_before is not None:
        number += rows_before[_parts(starts)]
    return _growing(_cut(starts, number % window.size == 0))


def _sessions(
    window: SessionRows, starts: np.ndarray, time_ms: np.ndarray, rows_before: np.ndarray | None
) -> Frames:
    del rows_before
    first = sessions_by_gap(starts, time_ms, window.gap_ms)
    frames = _growing(_cut(starts, first == np.arange(len(first))))
    return frames._replace(start_ms=time_ms[first])


_FRAMES: Mapping[type, Callable[[Any, np.ndarray, np.ndarray, np.ndarray | None], Frames]] = {
    SlideRows: _slides,
    TumbleRows: _tumbles,
    SessionRows: _sessions,
}
"""What finds the windows of each kind; see `frames_of`."""


def united(frames: Sequence[Frames]) -> Frames:
    """The rows from the first to the last in any of a row's frames.

    Args:
        frames: Frames of the same rows and parts, in whose bounds each row lies; or one alone,
            which is returned.
    """
    first, *others = frames
    for other in others:
        left = np.minimum(first.left, other.left)
        first = first._replace(left=left, entered=np.maximum(first.entered, other.entered))
    return first


def _far(distance: int | None) -> int:
    return _UNBOUNDED if distance is None else distance


def _parts(starts: np.ndarray) -> np.ndarray:
    """The number of each row's part."""
    return np.repeat(np.arange(len(starts) - 1), np.diff(starts))


def _cut(starts: np.ndarray, begins: np.ndarray) -> np.ndarray:
    """Where parts begin: at the groups' starts, and at the rows of a mask."""
    begins = begins.copy()
    begins[starts[:-1]] = True
    return np.concatenate((np.flatnonzero(begins), starts[-1:]))


def _growing(starts: np.ndarray) -> Frames:
    """Frames from the start of a row's part up to and including the row."""
    part = _parts(starts)
    return Frames(starts, part, starts[part], np.arange(1, len(part) + 1))


def _row_frames(starts: np.ndarray, back: int, ahead: int) -> Frames:
    part = _parts(starts)
    row, low, high = np.arange(len(part)), starts[part], starts[part + 1]
    left = np.clip(row - back, low, high)
    return Frames(starts, part, left, np.clip(row + ahead + 1, low, high))


@compiled
def _ranges(
    starts: np.ndarray, time_ms: np.ndarray, back_ms: int, ahead_ms: int
) -> tuple[np.ndarray, np.ndarray]:
    left = np.empty(len(time_ms), np.int64)
    entered = np.empty(len(time_ms), np.int64)
    for g in range(len(starts) - 1):
        p = q = starts[g]
        high = starts[g + 1]
        for row in range(starts[g], high):
            while q < high and time_ms[q] < time_ms[row] - back_ms:
                q += 1
            while p < high and time_ms[p] <= time_ms[row] + ahead_ms:
                p += 1
            left[row], entered[row] = q, p
    return left, entered
