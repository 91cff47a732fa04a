"""The oracle's sessions (rules D1, D2) against answers worked out by hand."""

from __future__ import annotations

import pytest

from tests.support.hand_written import SUM, arriving, held, spans
from tests.support.oracle.windows import (
    LateRow,
    SessionDefinition,
    close_time_after,
    close_times_met,
    final_windows,
    keyed_windows,
    late_records,
    windows_after,
)

GAP_10 = SessionDefinition(gap=10, grace=0)


def test_the_close_time_allows_for_the_gap() -> None:
    """Rules A3 and A4: 32 less grace 5 and gap 10 closes what ends below 17."""
    definition = SessionDefinition(10, 5)
    records = arriving(16) + arriving(17, first=1, key="b") + arriving(32, first=2, key="c")
    assert close_time_after(records, 0, definition) == 17
    assert close_times_met(records, definition)[records[2].id] == 17
    assert [row.key for row in final_windows(records, 1, definition, SUM)] == ["k"]


def test_each_arrival_unit_lists_what_it_changed_or_closed() -> None:
    """Rule E4: a merged session stands under its new bounds; a closed one is final once."""
    records = (
        arriving(20) + arriving(12, arrival_unit=1, first=1) + arriving(99, arrival_unit=3, first=2)
    )
    rows = keyed_windows(records, 4, SessionDefinition(10, 5), SUM)
    found = [
        (row.arrival_unit, row.start, row.end, row.values["total"], row.closed) for row in rows
    ]
    assert found == [
        (0, 20, 20, 20, False),
        (1, 12, 20, 32, False),
        (3, 12, 20, 32, True),
        (3, 99, 99, 99, False),
    ]


def test_offsets_may_restart_in_each_arrival_unit() -> None:
    """Rule A1: arrival units order before offsets; 0 comes after 11, which closed nothing yet."""
    records = arriving(10, 11) + arriving(0, arrival_unit=1)
    assert held(windows_after(records, 1, GAP_10)) == [(0, 11, [0, 10, 11])]
    assert close_times_met(records, GAP_10)[records[2].id] == 1


def test_partitions_are_merged_by_stream_time_not_by_arrival_unit() -> None:
    """Rule A1: 190 comes with S = 190, before 185 with S = 200, and saves it from being late."""
    records = [
        *arriving(50, source_partition=1, key="z"),
        *arriving(200, key="z"),
        *arriving(185, first=1),  # C = 190
    ]
    saved = records + arriving(190, arrival_unit=1, source_partition=1, first=1)
    # Until partition 1 has come past it, nobody knows.
    assert late_records(records, 1, GAP_10) == []
    assert late_records(saved, 2, GAP_10) == []
    sessions = windows_after(saved, 1, GAP_10)
    assert held(w for w in sessions if w.key == "k") == [(185, 190, [185, 190])]

    lost = records + arriving(201, arrival_unit=1, source_partition=1, first=1, key="z")
    assert late_records(lost, 2, GAP_10) == [LateRow(1, records[2].id, "late")]


@pytest.mark.parametrize("arrival_unit", [0, 1])
def test_at_equal_stream_times_the_lower_source_partition_comes_first(arrival_unit: int) -> None:
    """Rule A1, in any arrival unit: all have S = 100 and C = 90, 85 alone is late."""

    def late_and_held(of_85: int, of_95: int) -> tuple[int, list[tuple[int, int, list[int]]]]:
        records = [
            *arriving(100, source_partition=of_85, key="z"),
            *arriving(85, source_partition=of_85, first=1),
            *arriving(100, source_partition=of_95, key="z"),
            *arriving(95, arrival_unit=arrival_unit, source_partition=of_95, first=1),
        ]
        windows = windows_after(records, 1, GAP_10)
        late = late_records(records, 2, GAP_10)
        return len(late), held(w for w in windows if w.key == "k")

    assert late_and_held(of_85=1, of_95=0) == (0, [(85, 95, [85, 95])])
    assert late_and_held(of_85=0, of_95=1) == (1, [(95, 95, [95])])


def test_a_partition_that_resumes_leaves_final_sessions_as_they_are() -> None:
    """Rules A4 and D2: 105 comes with S = 110, but meets a stream time of 130.

    Merged in by its own S it would come before 98, which then would join it and [92, 92].
    """
    definition = SessionDefinition(gap=10, grace=20, idle_after=20)
    records = [
        *arriving(0, source_partition=1, key="z"),
        *arriving(92),
        *arriving(111, first=1, key="z"),
        *arriving(98, first=2),
        *arriving(130, first=3, key="z"),
    ]
    assert close_time_after(records, 0, definition) == 100
    records += arriving(110, arrival_unit=1, source_partition=1, first=1, key="z")
    records += arriving(105, arrival_unit=1, source_partition=1, first=2)
    finals = final_windows(records, 2, definition, SUM)
    assert [
        (r.arrival_unit, *span)
        for r, span in zip(finals, spans(finals), strict=True)
        if r.key == "k"
    ] == [(0, 92, 98, 2)]
    windows = windows_after(records, 1, definition)
    assert held(w for w in windows if w.key == "k") == [(92, 98, [92, 98]), (105, 105, [105])]
    assert late_records(records, 2, definition) == []
