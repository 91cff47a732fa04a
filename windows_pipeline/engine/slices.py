"""Cuts a key's time into slices, each with the records that reach into it (a look-back).

So a hot key, or a window over all records, is not one task: its slices are groups of their own.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

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


def of_own_slice(windows: DataFrame, length_ms: int) -> DataFrame:
    """Keeps the windows that end in the slice that they were found in: each once."""
    return windows.where(slice_of(F.col("window_end_ms"), length_ms) == F.col(SLICE)).drop(SLICE)


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
