"""Finds the windows of a chunk of records, for every kind of window."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from windows_pipeline.kernels.windows.arrays import WindowArrays
from windows_pipeline.kernels.windows.assign import Assignment, Reason, assign
from windows_pipeline.kernels.windows.chunk import Chunk, ChunkWindows
from windows_pipeline.kernels.windows.forward import forward_windows
from windows_pipeline.kernels.windows.hopping import hopping_windows
from windows_pipeline.kernels.windows.sessions import session_windows
from windows_pipeline.kernels.windows.sliding import sliding_windows
from windows_pipeline.windows import (
    FixedWindows,
    ForwardSlidingWindows,
    SessionWindows,
    SlidingWindows,
    TimeWindows,
)


def find_windows(chunk: Chunk, arrival: Sequence[str]) -> ChunkWindows:
    """Finds the windows that the computed days changed or closed.

    Args:
        chunk: The records.
        arrival: The columns that order the arrival of records with equal close times; only
            sessions need them (rule D2).
    """
    return FINDERS[type(chunk.spec)](chunk.spec, chunk, arrival)


def _assigned(
    find: Callable[[Any, Chunk, Assignment], WindowArrays],
    spec: FixedWindows,
    chunk: Chunk,
    arrival: Sequence[str],
) -> ChunkWindows:
    """Windows of a kind whose ends alone say which records they contain."""
    del arrival
    assignment = assign(spec, chunk.time_ms, chunk.close_ms)
    reason = assignment.reason.copy()
    is_in_time = reason == Reason.NONE
    in_time = chunk.only(is_in_time)
    windows = find(spec, in_time, assignment.only(is_in_time))
    reason[np.flatnonzero(is_in_time)[windows.dropped]] = Reason.PARTLY_LATE
    return ChunkWindows(
        in_time.table,
        in_time.close_ms,
        in_time.starts,
        in_time.time_ms,
        windows,
        spec.length_ms,
        spec.step_ms or 1,
        reason,
    )


FINDERS: Mapping[type, Callable[[Any, Chunk, Sequence[str]], ChunkWindows]] = {
    SlidingWindows: partial(_assigned, sliding_windows),
    ForwardSlidingWindows: partial(_assigned, forward_windows),
    TimeWindows: partial(_assigned, hopping_windows),
    SessionWindows: session_windows,
}
"""What finds the windows of each kind. Of a kind that is assigned, it is called with the spec, the
records that are in time for a window, and their assignment."""
