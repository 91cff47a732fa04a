"""Cuts a key's time into slices for row windows, each with the rows that its own ones look at."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from windows_pipeline.engine.time_shards import length_for_reach, with_own_slice
from windows_pipeline.windows.row_bounds import FrameUnit
from windows_pipeline.windows.row_windows import RowWindow, SlideRows, TumbleRows


def row_slice_length_ms(window: RowWindow) -> int | None:
    """How long a slice is; None where windows cannot be cut into slices.

    So it is where a bound is open or counted in rows, and of sessions, of any length.
    """
    match window:
        case SlideRows(unit=FrameUnit.RANGE, back=int(), ahead=int()):
            return length_for_reach(sum(_reach_ms(window)) + 1)
        case TumbleRows(unit=FrameUnit.RANGE):
            return length_for_reach(window.size)
        case _:
            return None


def rows_in_slices(records: DataFrame, window: RowWindow, length_ms: int) -> DataFrame:
    """Gives each row its own slice, and the next or last one if rows there look at it.

    Args:
        records: `_event_time_ms` and any other columns.
        window: The windows.
        length_ms: What `row_slice_length_ms` gives, or of it `within_a_day`.

    Returns:
        The rows with `_slice` (bigint) and `_is_own` (boolean).
    """
    time_ms = F.col("_event_time_ms")
    before_ms, after_ms = _reach_ms(window)
    others_ms = [
        F.try_subtract(time_ms, F.lit(before_ms)),
        F.try_add(time_ms, F.lit(after_ms)),
    ]
    return with_own_slice(records, time_ms, others_ms, length_ms)


def _reach_ms(window: RowWindow) -> tuple[int, int]:
    """How far before and after a row those lie that look at it."""
    if isinstance(window, SlideRows) and window.back is not None and window.ahead is not None:
        return max(window.ahead, 0), max(window.back, 0)
    return 0, 0
