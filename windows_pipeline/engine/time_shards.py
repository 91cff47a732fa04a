"""Cuts a key's time into slices, each with the records that reach into it (a look-back).

So a hot key, or a window over all records, is not one task: its slices are groups of their own.
A window is of the slice that it ends in, a record of the one that the last window ends in that
can hold it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from windows_pipeline.kernels.windows.sliding import Windows
from windows_pipeline.windows import (
    ForwardSlidingWindows,
    SlidingWindows,
    TimeWindows,
    WindowSpec,
)

SLICE = "_slice"
IS_OWN = "_is_own"
"""Whether a row is of the slice that it lies in. A source's columns begin with a letter."""
REACHES_A_SLICE = 64
"""A record is copied where it reaches into the next slice: one in so many."""
FEWEST_REACHES = 16
DAYS_SLICE_MS = 90 * 60_000
"""So long are the slices of a day at most, unless they were fewer reaches: 16 of them."""
MAX_SLICE_MS = 2**53
"""A longer slice could overflow together with an event time."""


def slice_length_ms(windows: WindowSpec) -> int | None:
    """How long a slice is; None where windows cannot be cut into slices.

    A session may be of any length. Hopping windows without records are told from a key's first
    record on, which a slice does not know.
    """
    reach_ms = _reach_ms(windows)
    return None if reach_ms is None else length_for_reach(reach_ms)


def length_for_reach(reach_ms: int) -> int | None:
    """How long slices are into which rows reach from so far away; None where that is too long."""
    length_ms = reach_ms * REACHES_A_SLICE
    return length_ms if length_ms <= MAX_SLICE_MS else None


def within_a_day(length_ms: int | None) -> int | None:
    """A slice's length for a pipeline, whose units are days: shorter where windows are long.

    So a key's day is several slices, unless windows are as long as an hour and a half.
    """
    if length_ms is None:
        return None
    reach_ms = length_ms // REACHES_A_SLICE
    return reach_ms * min(REACHES_A_SLICE, max(FEWEST_REACHES, DAYS_SLICE_MS // reach_ms))


def settling_reach_ms(windows: SlidingWindows) -> int:
    """How far a record matters to others that settle (rule A5): to those in the windows it makes.

    They lie up to a difference after it, and so does the end of the last window that holds them.
    """
    return 2 * (windows.time_difference_ms + 1)


def in_slices(
    records: DataFrame, windows: WindowSpec, length_ms: int, *, settling: bool = False
) -> DataFrame:
    """Gives each record the slices that windows which hold it, or that it leaves, end in.

    Args:
        records: `_event_time_ms` and any other columns.
        windows: The windows.
        length_ms: What `slice_length_ms` gives, or of it `within_a_day`.
        settling: Whether also those in which records settle that lie in its windows (rule A5):
            they have to see each window that it makes.

    Returns:
        The records with `_slice` (bigint); one that reaches into the next slice twice.
    """
    reach_ms = _reach_ms(windows)
    if settling and isinstance(windows, SlidingWindows):
        reach_ms = settling_reach_ms(windows)
    time_ms = F.col("_event_time_ms")
    last_ms = F.try_add(time_ms, F.lit(reach_ms))
    return records.withColumn(SLICE, F.explode(_slices(time_ms, [last_ms], length_ms)))


def with_own_slice(
    rows: DataFrame, own_ms: Column, others_ms: Sequence[Column], length_ms: int
) -> DataFrame:
    """Gives each row the slice of an instant, and that of the one other that lies elsewhere.

    Args:
        rows: Any columns.
        own_ms: The instant that says which slice a row is of.
        others_ms: Other instants; all are within less than a slice.
        length_ms: How long a slice is.

    Returns:
        The rows with `_slice` (bigint) and `_is_own` (boolean).
    """
    slices = F.posexplode(_slices(own_ms, others_ms, length_ms))
    return rows.select("*", slices.alias(IS_OWN, SLICE)).withColumn(IS_OWN, F.col(IS_OWN) == 0)


def _slices(own_ms: Column, others_ms: Sequence[Column], length_ms: int) -> Column:
    """The numbers of the slices that the instants lie in: one or two."""
    # A time that is null or out of range is an error that names it, later.
    own = F.coalesce(_slice_of(own_ms, length_ms), F.lit(0))
    slices = F.array(own)
    for other_ms in others_ms:
        other = _slice_of(other_ms, length_ms)
        slices = F.when(other != own, F.array(own, other)).otherwise(slices)
    return slices


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


def settle_in(records: pa.Table, length_ms: int | None, slice_ms: int) -> np.ndarray:
    """Whether each record settles in the slice that it lies in: once (rule A5).

    Args:
        records: `_event_time_ms` and `_slice`.
        length_ms: How long after a record the last window ends that can hold it.
        slice_ms: How long a slice is.
    """
    assert length_ms is not None  # noqa: S101  sessions are not cut
    last_end_ms = np.array(records.column("_event_time_ms"), np.int64) + length_ms
    settles: np.ndarray = last_end_ms // slice_ms == np.array(records.column(SLICE), np.int64)
    return settles


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


def _slice_of(instant_ms: Column, length_ms: int) -> Column:
    """The number of the slice that an instant lies in; null where it is null or out of range."""
    length = F.lit(length_ms)
    below = F.try_subtract(instant_ms, F.pmod(instant_ms, length))
    return F.call_function("div", below, length)
