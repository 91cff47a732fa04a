"""Which source partitions are idle, had no record, and hold the watermark back, by hand (A4)."""

from __future__ import annotations

from datetime import date

import pytest

from windows_pipeline.arrival.watermark import LogRow, build_timeline, partitions_after

FIRST, SECOND = date(2026, 11, 1), date(2026, 11, 2)
LOG = [
    LogRow(FIRST, "a", 100),
    LogRow(FIRST, "b", 90),
    LogRow(FIRST, "c", 40),
    LogRow(SECOND, "a", 130),
    # Late records move no stream time.
    LogRow(SECOND, "b", 80),
    LogRow(SECOND, "d", 95),
]


@pytest.mark.parametrize(
    ("day", "idle_after_ms", "without", "idle", "slowest"),
    [
        # Without a limit no partition is idle, and the slowest of all holds the watermark back.
        (FIRST, None, [], [], ["c"]),
        (SECOND, None, ["c"], [], ["c"]),
        # At most 40 behind: on the second day those below 90 are idle, and 90 itself is not.
        (FIRST, 40, [], ["c"], ["b"]),
        (SECOND, 40, ["c"], ["c"], ["b"]),
        (SECOND, 20, ["c"], ["b", "c", "d"], ["a"]),
    ],
)
def test_partitions_after_a_day(
    day: date, idle_after_ms: int | None, without: list[str], idle: list[str], slowest: list[str]
) -> None:
    arrival_unit = build_timeline(LOG, FIRST, idle_after_ms).arrival_unit(day)
    assert arrival_unit is not None
    arrived = [row for row in LOG if row.arrival_unit == day]
    assert partitions_after(arrival_unit, arrived, idle_after_ms) == {
        "partitions_without_records": without,
        "idle_partitions": idle,
        "slowest_partitions": slowest,
    }


def test_a_day_without_records_leaves_partitions_as_they_were() -> None:
    log = [*LOG[:3], LogRow(SECOND, None, None)]
    arrival_unit = build_timeline(log, FIRST).arrival_unit(SECOND)
    assert arrival_unit is not None
    assert partitions_after(arrival_unit, log[3:], None) == {
        "partitions_without_records": ["a", "b", "c"],
        "idle_partitions": [],
        "slowest_partitions": ["c"],
    }
