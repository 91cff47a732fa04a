"""Cuts a key's time into slices, each with the records that reach into it (a look-back).

So a hot key, or a window over all records, is not one task: its slices are groups of their own.
"""

from __future__ import annotations

import numpy as np
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from windows_pipeline.engine.sweep import Windows
from windows_pipeline.windows import (
    ForwardSlidingWindows,
    SlidingWindows,
    TimeWindows,
    WindowSpec,
)

SLICE = "slice"
REACHES_A_SLICE = 64
"""A record is copied where it reaches into the next slice: one in so many."""
MAX_SLICE_MS = 2**53
"""A longer slice could overflow together with an event time."""


def slice_length_ms(windows: WindowSpec) -> int | None:
    """How long a slice is; None where windows cannot be cut into slices.

    A session may be of any length. Hopping windows without records are told from a key's first
    record on, which a slice does not know.
    """
    reach_ms = _reach_ms(windows)
    if reach_ms is None or reach_ms * REACHES_A_SLICE > MAX_SLICE_MS:
        return None
    return reach_ms * REACHES_A_SLICE


def in_slices(records: DataFrame, windows: WindowSpec, length_ms: int) -> DataFrame:
    """Gives each record the slices that windows which hold it, or that it leaves, end in.

    Args:
        records: `event_time_ms` and any other columns.
        windows: The windows.
        length_ms: What `slice_length_ms` gives.

    Returns:
        The records with `slice` (bigint); one that reaches into the next slice twice.
    """
    time_ms = F.col("event_time_ms")
    first = slice_of(time_ms, length_ms)
    last = slice_of(F.try_add(time_ms, F.lit(_reach_ms(windows))), length_ms)
    # A time that is null or out of range is an error that names it, later.
    slices = F.when(last > first, F.array(first, last)).otherwise(
        F.array(F.coalesce(first, F.lit(0)))
    )
    return records.withColumn(SLICE, F.explode(slices))


def of_own_slice(
    windows: Windows, slice_of_group: np.ndarray, length_ms: int, advance_ms: int
) -> Windows:
    """Keeps the windows that end in the slice that they were found in: each once.

    Args:
        windows: The windows; runs of hopping ones are cut where they reach into other slices.
        slice_of_group: The slice of each group.
        length_ms: How long a slice is.
        advance_ms: From one window of a run to the next.
    """
    first_ms = slice_of_group[windows.group] * length_ms
    beyond_ms = first_ms + length_ms
    end_ms, last_end_ms = windows.end_ms, windows.last_end_ms
    if last_end_ms is None:
        return windows.only((end_ms >= first_ms) & (end_ms < beyond_ms))
    end_ms = end_ms + _steps(first_ms - end_ms, advance_ms)
    last_end_ms = last_end_ms - _steps(last_end_ms - beyond_ms + 1, advance_ms)
    cut = windows._replace(end_ms=end_ms, last_end_ms=last_end_ms)
    return cut.only(end_ms <= last_end_ms)


def _steps(at_least_ms: np.ndarray, advance_ms: int) -> np.ndarray:
    """So many advances, in milliseconds; none where there is nothing to go."""
    steps: np.ndarray = -(-np.maximum(at_least_ms, 0) // advance_ms) * advance_ms
    return steps


def _reach_ms(windows: WindowSpec) -> int | None:
    """How far after a record the windows end that it changes."""
    match windows:
        case SlidingWindows():
            return windows.time_difference_ms + 1
        case ForwardSlidingWindows():
            return windows.size_ms
        case TimeWindows() if not windows.emit_empty:
            return windows.size_ms
        case _:
            return None


def slice_of(instant_ms: Column, length_ms: int) -> Column:
    """The number of the slice that an instant lies in; null where it is null or out of range."""
    length = F.lit(length_ms)
    below = F.try_subtract(instant_ms, F.pmod(instant_ms, length))
    return F.call_function("div", below, length)
