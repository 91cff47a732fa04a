"""The oracle's tumbling and hopping windows (rule C1) against answers worked out by hand."""

from __future__ import annotations

from tests.support.hand_written import SUM, arriving, held, spans
from tests.support.oracle.windows import (
    LateRow,
    Record,
    RecordId,
    TimeDefinition,
    final_windows,
    late_records,
    windows_after,
)


def tumbling(size: int, grace: int = 0, *, emit_empty: bool = False) -> TimeDefinition:
    return TimeDefinition(size, size, grace, emit_empty=emit_empty)


def test_a_record_in_a_gap_is_outside_every_window() -> None:
    """Rules A5 and C1: [0, 3), [10, 13), ...; 3 lies in a gap, also where it comes late."""
    definition = TimeDefinition(3, 10, 0)
    records = arriving(2, 3, 9, 10, -8, 99) + arriving(5, 12, arrival_unit=1, first=6)
    assert held(windows_after(records, 0, definition)) == [(0, 3, [2]), (10, 13, [10])]
    assert late_records(records, 2, definition) == [
        LateRow(0, RecordId(0, 0, 1), "outside_windows"),
        LateRow(0, RecordId(0, 0, 2), "outside_windows"),
        LateRow(0, RecordId(0, 0, 4), "late"),  # [-10, -7)
        LateRow(0, RecordId(0, 0, 5), "outside_windows"),
        LateRow(1, RecordId(1, 0, 6), "outside_windows"),
        LateRow(1, RecordId(1, 0, 7), "late"),
    ]


def test_no_window_starts_below_the_clamp() -> None:
    """Rule C1: from 7 on the first start is 10; 9 is in no window, 12 in one instead of two."""
    definition = TimeDefinition(10, 5, 50, first_window_start=7)
    records = arriving(9, 12)
    assert held(windows_after(records, 0, definition)) == [(10, 20, [12])]
    assert late_records(records, 1, definition) == [
        LateRow(0, RecordId(0, 0, 0), "outside_windows")
    ]


def test_each_closed_window_without_record_is_a_result_on_request() -> None:
    """As rule B8 for sliding ones: from a key's first record to the close time, for each key."""
    records = [*arriving(5, 35), *arriving(41, first=2, key="late riser"), *arriving(69, first=3)]
    rows = final_windows(records, 1, tumbling(10, 2, emit_empty=True), SUM)
    assert [row.key for row in rows] == ["k"] * 6 + ["late riser"] * 2
    assert spans(rows[:6]) == [
        (0, 10, 1),
        (10, 20, 0),
        (20, 30, 0),
        (30, 40, 1),
        (40, 50, 0),
        (50, 60, 0),
    ]
    assert spans(rows[6:]) == [(40, 50, 1), (50, 60, 0)]
    assert (rows[1].first_event_time, rows[1].last_event_time) == (None, None)
    assert rows[1].values == {"total": None}


def test_hopping_windows_are_empty_once_the_last_record_has_left() -> None:
    """Size 10, advance 4: 11 is in [4, 14) and [8, 18); then [12, 22) and [16, 26) are empty."""
    definition = TimeDefinition(10, 4, 0, emit_empty=True)
    rows = final_windows(arriving(11, 29), 1, definition, SUM)
    assert spans(rows) == [(4, 14, 1), (8, 18, 1), (12, 22, 0), (16, 26, 0)]
    rows = final_windows(arriving(11, 29, 30), 1, definition, SUM)
    assert spans(rows)[4:] == [(20, 30, 1)]


def test_gaps_between_windows_do_not_count_as_silence() -> None:
    """Size 3, advance 10: the record in the gap neither fills a window nor begins the count."""
    definition = TimeDefinition(3, 10, 0, emit_empty=True)
    rows = final_windows(arriving(-5, 11, 25, 44), 1, definition, SUM)
    assert spans(rows) == [(10, 13, 1), (20, 23, 0), (30, 33, 0), (40, 43, 0)]


def test_no_empty_window_before_what_a_key_has_counted() -> None:
    """Late records begin nothing; where one is partly late, its closed windows stay out."""
    definition = TimeDefinition(10, 5, 0, emit_empty=True)
    ahead = Record(0, 0, 0, "z", 31, {"v": 1})
    # For b, 19 is late, and of the windows of 27 [20, 30) is closed.
    records = [ahead, *arriving(19, 27, first=1, key="b"), *arriving(50, first=3, key="z")]
    rows = final_windows(records, 1, definition, SUM)
    assert spans(row for row in rows if row.key == "b") == [
        (25, 35, 1),
        (30, 40, 0),
        (35, 45, 0),
        (40, 50, 0),
    ]
