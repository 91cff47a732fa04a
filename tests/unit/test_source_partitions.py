"""Which source partitions are idle, had no record, and hold the watermark back, by hand (A4)."""

from __future__ import annotations

from datetime import date

import pytest

from windows_pipeline.arrival.partitions import PartitionStates, partitions_after
from windows_pipeline.arrival.watermark import ArrivedPart, build_timeline

FIRST, SECOND = date(2026, 11, 1), date(2026, 11, 2)
LOG = [
    ArrivedPart(FIRST, "a", 100),
    ArrivedPart(FIRST, "b", 90),
    ArrivedPart(FIRST, "c", 40),
    ArrivedPart(SECOND, "a", 130),
    # Late records move no stream time.
    ArrivedPart(SECOND, "b", 80),
    ArrivedPart(SECOND, "d", 95),
]


@pytest.mark.parametrize(
    ("day", "idle_after_ms", "stands"),
    [
        # Without a limit no partition is idle, and the slowest of all holds the watermark back.
        (FIRST, None, PartitionStates(without_records=(), idle=(), slowest=("c",))),
        (SECOND, None, PartitionStates(without_records=("c",), idle=(), slowest=("c",))),
        # At most 40 behind: on the second day those below 90 are idle, and 90 itself is not.
        (FIRST, 40, PartitionStates(without_records=(), idle=("c",), slowest=("b",))),
        (SECOND, 40, PartitionStates(without_records=("c",), idle=("c",), slowest=("b",))),
        (SECOND, 20, PartitionStates(without_records=("c",), idle=("b", "c", "d"), slowest=("a",))),
    ],
)
def test_partitions_after_a_day(
    day: date, idle_after_ms: int | None, stands: PartitionStates
) -> None:
    arrival_unit = build_timeline(LOG, FIRST, idle_after_ms).arrival_unit(day)
    assert arrival_unit is not None
    arrived = [row for row in LOG if row.arrival_unit == day]
    assert partitions_after(arrival_unit, arrived, idle_after_ms) == stands


def test_a_day_without_records_leaves_partitions_as_they_were() -> None:
    log = [*LOG[:3], ArrivedPart(SECOND, None, None)]
    arrival_unit = build_timeline(log, FIRST).arrival_unit(SECOND)
    assert arrival_unit is not None
    assert partitions_after(arrival_unit, log[3:], None) == PartitionStates(
        without_records=("a", "b", "c"), idle=(), slowest=("c",)
    )
