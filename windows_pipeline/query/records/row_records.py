"""The records that count in the window of a row, without Spark (rules F1, F2, F5).

A stored window says how far its records lie apart, so the records between its bounds are enough:
no other one of its key is in it, and none lies between two of it in the order that counts.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from typing import Any

from windows_pipeline.query.records.record_times import ArrivedRecord
from windows_pipeline.windows import GracedRows, RowWindow, SessionRows, SlideRows, TumbleRows
from windows_pipeline.windows.frames.bounds import FrameUnit


def records_of_row(
    records: Sequence[ArrivedRecord], spec: GracedRows, row: Mapping[str, Any], record_count: int
) -> list[ArrivedRecord]:
    """The records that count in the window of a row.

    Args:
        records: The key's records between the window's bounds, in the order of event time, then
            of arrival.
        spec: The windows.
        row: What names the row: the columns of `ROW_KEY`.
        record_count: How many records the window has.

    Returns:
        The records, in the order by which the window goes; none if its row is not there.
    """
    in_order = [each for each in records if each.event_ms >= each.close_ms]
    if spec.by_arrival:
        in_order.sort(key=_arrival)
    name = (row["record_arrival_unit"], row["source_partition"], row["offset"])
    at = next((index for index, each in enumerate(in_order) if _named(each) == name), None)
    if at is None:
        return []
    found = [_FRAMES[type(each)](each, in_order, at, record_count) for each in spec.outer]
    first = min(frame.start for frame in found)
    return in_order[first : max(frame.stop for frame in found)]


def _frame(
    window: SlideRows, in_order: Sequence[ArrivedRecord], at: int, record_count: int
) -> range:
    """The records in the frame of the row at an index."""
    del record_count
    back, ahead = window.back, window.ahead
    first, end = 0, len(in_order)
    if window.unit is FrameUnit.ROWS:
        first = first if back is None else max(at - back, 0)
        end = end if ahead is None else max(at + ahead + 1, 0)
        return range(first, max(first, end))
    row_ms = in_order[at].event_ms
    if back is not None:
        first = bisect_left(in_order, row_ms - back, key=_time_ms)
    if ahead is not None:
        end = bisect_right(in_order, row_ms + ahead, key=_time_ms)
    return range(first, max(first, end))


def _up_to_row(
    window: RowWindow, in_order: Sequence[ArrivedRecord], at: int, record_count: int
) -> range:
    """The records of a block or session up to the row; where it begins, its row count says."""
    del window, in_order
    return range(at + 1 - record_count, at + 1)


_FRAMES: Mapping[type, Callable[[Any, Sequence[ArrivedRecord], int, int], range]] = {
    SlideRows: _frame,
    TumbleRows: _up_to_row,
    SessionRows: _up_to_row,
}
"""What finds the records in the window of the row at an index."""


def _time_ms(record: ArrivedRecord) -> int:
    return record.event_ms


def _arrival(record: ArrivedRecord) -> tuple[date, int]:
    return (record.arrival_unit, record.offset)


def _named(record: ArrivedRecord) -> tuple[date, str, int]:
    return (record.arrival_unit, record.partition, record.offset)
