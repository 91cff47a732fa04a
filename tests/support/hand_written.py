"""Records and windows in the short form that cases worked out by hand need."""

from __future__ import annotations

from collections.abc import Iterable

from tests.support.oracle.windows import Aggregates, Key, Record, Window, WindowRow

SUM: Aggregates = {"total": ("sum", "v")}


def arriving(
    *times: int, arrival_unit: int = 0, source_partition: int = 0, first: int = 0, key: Key = "k"
) -> list[Record]:
    """Records of one key in arrival order, each with its time as its value."""
    return [
        Record(arrival_unit, source_partition, first + i, key, time, {"v": time})
        for i, time in enumerate(times)
    ]


def spans(rows: Iterable[WindowRow]) -> list[tuple[int, int, int]]:
    """Start, end and number of records."""
    return [(row.start, row.end, row.record_count) for row in rows]


def held(windows: Iterable[Window]) -> list[tuple[int, int, list[int]]]:
    """Start, end and the sorted times of the records."""
    return [(w.start, w.end, sorted(r.event_time for r in w.records)) for w in windows]
