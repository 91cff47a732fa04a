"""The oracle's stream time and sliding windows against answers worked out by hand."""

from __future__ import annotations

from tests.support.hand_written import SUM, arriving, spans
from tests.support.oracle.windows import (
    LateRow,
    Record,
    RecordId,
    SlidingDefinition,
    close_time_after,
    close_times_met,
    final_windows,
    keyed_windows,
    late_records,
)


def test_each_arrival_unit_lists_what_it_changed_or_closed() -> None:
    """Rule E4: arrival unit 1 adds to [10, 20] and makes others; 2 is empty; 3 closes."""
    records = (
        arriving(20)
        + arriving(15, arrival_unit=1, first=1)
        + arriving(100, arrival_unit=3, first=2)
    )
    rows = keyed_windows(records, 4, SlidingDefinition(10, 5), SUM)
    found = [(row.arrival_unit, row.start, row.values["total"]) for row in rows]
    assert found[:4] == [(0, 10, 20), (1, 5, 15), (1, 10, 35), (1, 16, 20)]
    assert found[4:] == [(3, 5, 15), (3, 10, 35), (3, 16, 20), (3, 90, 100)]
    assert [row.start for row in rows if row.closed] == [5, 10, 16]


def test_each_silence_gives_one_empty_window_once_it_is_closed() -> None:
    """Rule B8: silences after 0 and after 45; that after 90 is still open."""
    records = arriving(0, 40, 45, 90)
    definition = SlidingDefinition(10, 0, emit_empty=True)
    rows = final_windows(records, 1, definition, {"n": ("count", "v"), **SUM})
    assert spans(rows[:3]) == [(-10, 0, 1), (1, 11, 0), (30, 40, 1)]
    assert spans(rows[3:]) == [(35, 45, 2), (41, 51, 1), (46, 56, 0)]
    empty = rows[1]
    assert (empty.first_event_time, empty.last_event_time) == (None, None)
    assert empty.values == {"n": 0, "total": None}


def test_an_empty_window_is_a_row_of_the_arrival_unit_that_closes_it() -> None:
    """Rules B8 and E4: while [1, 11] is open it is no row, for it may still be filled."""
    definition = SlidingDefinition(10, 5, emit_empty=True)
    silent = (
        arriving(0) + arriving(16, arrival_unit=1, first=1) + arriving(17, arrival_unit=2, first=2)
    )
    rows = keyed_windows(silent, 3, definition, SUM)
    assert [(r.arrival_unit, r.start, r.closed) for r in rows if r.record_count == 0] == [
        (2, 1, True)
    ]

    filled = [
        *silent[:2],
        *arriving(11, arrival_unit=2, first=2),
        *arriving(99, arrival_unit=3, first=3),
    ]
    rows = keyed_windows(filled, 4, definition, SUM)
    assert [(r.arrival_unit, r.start) for r in rows if r.record_count == 0] == [(3, 17)]


def test_partly_late_record_that_no_window_counts_is_listed_when_its_last_window_closes() -> None:
    """Rules A5 and B5: b's 95 is alone in its key and its left window was closed."""
    lone = Record(1, 0, 1, "b", 95, {"v": 1})
    records = [*arriving(100), lone, *arriving(105, arrival_unit=2, first=2)]
    records += arriving(106, arrival_unit=3, first=3)
    definition = SlidingDefinition(10, 0)
    # Its last window would end at 105, which is closed only after 106.
    assert late_records(records, 4, definition) == [LateRow(3, lone.id, "partly_late")]
    assert late_records(records[:3], 3, definition) == []

    rescued = [*records[:2], Record(2, 0, 2, "b", 105, {"v": 1}), *records[3:]]
    assert late_records(rescued, 4, definition) == []
    finals = final_windows(rescued, 4, definition, SUM)
    assert [(r.key, r.start, r.record_count) for r in finals if r.key == "b"] == [("b", 95, 2)]


def test_silence_after_a_partly_late_record_that_no_window_counts() -> None:
    """Rules B5 and B8: it makes its right window, which stays empty and is given when asked."""
    lone = Record(0, 0, 1, "b", 95, {"v": 1})
    records = [*arriving(100), lone, *arriving(200, first=2)]
    rows = final_windows(records, 1, SlidingDefinition(10, 0, emit_empty=True), SUM)
    assert spans([row for row in rows if row.key == "b"]) == [(96, 106, 0)]


def test_late_records_and_those_outside_every_window_are_listed_where_they_arrive() -> None:
    """Rules A5 and B6; 89 + 10 is below C = 100, 90 + 10 is not, and 4 is below the clamp."""
    records = arriving(4, 100) + arriving(89, 90, 3, arrival_unit=1, first=2)
    assert late_records(records, 2, SlidingDefinition(10, 0, first_window_start=5)) == [
        LateRow(0, RecordId(0, 0, 0), "outside_windows"),
        LateRow(1, RecordId(1, 0, 2), "late"),
        LateRow(1, RecordId(1, 0, 4), "outside_windows"),
    ]


def test_the_slowest_partition_holds_the_close_time_back_unless_idle() -> None:
    """Rule A4: partition 1 stands at 10 while partition 0 goes on to 100."""
    records = (
        arriving(0) + arriving(10, source_partition=1) + arriving(100, arrival_unit=1, first=1)
    )
    assert close_time_after(records, 0, SlidingDefinition(10, 5)) == -5
    assert close_time_after(records, 1, SlidingDefinition(10, 5)) == 5
    assert close_time_after(records, 1, SlidingDefinition(10, 5, idle_after=90)) == 5
    assert close_time_after(records, 1, SlidingDefinition(10, 5, idle_after=89)) == 95


def test_a_partition_that_resumes_finds_closed_windows_closed() -> None:
    """Rule A4: its C is the watermark at its arrival unit's start, and closing is monotone."""
    records = arriving(0) + arriving(0, source_partition=1)
    records += arriving(100, arrival_unit=1, first=1)
    resumed = arriving(50, 96, arrival_unit=2, source_partition=1, first=1)
    definition = SlidingDefinition(10, 0, idle_after=20)
    met = close_times_met(records + resumed, definition)
    assert [met[record.id] for record in resumed] == [100, 100]
    assert late_records(records + resumed, 3, definition) == [LateRow(2, resumed[0].id, "late")]
    assert close_time_after(records + resumed, 2, definition) == 100


def test_stream_time_is_of_the_partition_not_of_the_key() -> None:
    """Rule A2: key b's 100 closes key k's windows, another partition's 100 does not."""
    ahead = Record(0, 0, 0, "b", 100, {"v": 1})
    late = arriving(50, first=1)
    elsewhere = arriving(50, source_partition=1)
    definition = SlidingDefinition(10, 0)
    assert late_records([ahead, *late], 1, definition) == [LateRow(0, late[0].id, "late")]
    assert late_records([ahead, *elsewhere], 1, definition) == []
