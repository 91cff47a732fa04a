"""The oracle's forward windows (rule B7) against answers worked out by hand."""

from __future__ import annotations

from tests.support.hand_written import SUM, arriving, held, spans
from tests.support.oracle.windows import (
    ForwardDefinition,
    LateRow,
    RecordId,
    final_windows,
    keyed_windows,
    late_records,
    windows_after,
)


def test_one_window_starts_at_each_distinct_time() -> None:
    """Rule B7: a@3 b@7 c@12 d@19 e@19, both bounds inclusive."""
    windows = windows_after(arriving(3, 7, 13, 19, 19), 0, ForwardDefinition(10, 50))
    assert held(windows) == [
        (3, 13, [3, 7, 13]),
        (7, 17, [7, 13]),
        (13, 23, [13, 19, 19]),
        (19, 29, [19, 19]),
    ]


def test_a_window_is_final_when_its_end_is_below_the_close_time() -> None:
    """Rules A4, B7 and E1: with the grace of 5 stream time 28 closes 22, not 23."""
    definition = ForwardDefinition(10, 5)
    records = arriving(12, 13, 20) + arriving(28, arrival_unit=1, first=3)
    assert final_windows(records[:3], 1, definition, SUM) == []
    finals = final_windows(records, 2, definition, SUM)
    assert spans(finals) == [(12, 22, 3)]
    assert (finals[0].arrival_unit, finals[0].values) == (1, {"total": 12 + 13 + 20})


def test_what_stood_open_is_a_row_of_each_arrival_unit_that_changed_it() -> None:
    """Rule E4: 18 counts in [12, 22] and makes its own."""
    rows = keyed_windows(
        arriving(12) + arriving(18, arrival_unit=1, first=1), 3, ForwardDefinition(10, 5), SUM
    )
    assert [(row.arrival_unit, row.start, row.record_count) for row in rows] == [
        (0, 12, 1),
        (1, 12, 2),
        (1, 18, 1),
    ]


def test_a_partly_late_record_counts_from_its_own_close_time_on() -> None:
    """Rules A5 and B7: 92 meets C = 100, so [85, 95] is closed to it; 90 + 10 is not late yet."""
    records = arriving(85, 89, 100, 92, 90)
    windows = windows_after(records, 0, ForwardDefinition(10, 0))
    assert held(windows) == [
        (85, 95, [85, 89]),
        (89, 99, [89]),
        (90, 100, [90, 92, 100]),
        (92, 102, [92, 100]),
        (100, 110, [100]),
    ]
    assert late_records(records, 1, ForwardDefinition(10, 0)) == []


def test_a_wholly_late_record_makes_no_window() -> None:
    """Rules A5 and B7: 89 + 10 is below C = 100."""
    records = arriving(100, 89)
    definition = ForwardDefinition(10, 0)
    assert late_records(records, 1, definition) == [LateRow(0, RecordId(0, 0, 1), "late")]
    assert held(windows_after(records, 0, definition)) == [(100, 110, [100])]
