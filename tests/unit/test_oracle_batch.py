"""The oracle's answer for a single batch, where the golden cases do not reach."""

from __future__ import annotations

from tests.support.oracle.batch import BatchRecord, BatchWindow, answer_batch
from tests.support.oracle.windows import SessionDefinition, SlidingDefinition, TimeDefinition


def test_null_keys_and_source_partitions() -> None:
    """Rules A2, A4 and A6: partition 1 stands at 3, so nothing that ends later is final."""
    batch = [
        BatchRecord(0, 0, "k", 1),
        BatchRecord(0, 1, None, 20),
        BatchRecord(0, 2, "k", 2),  # late for partition 0
        BatchRecord(1, 3, "k", 3),
    ]
    answer = answer_batch(batch, TimeDefinition(2, 2, 0))
    assert answer.final == [BatchWindow("k", 0, 2, (0,))]
    assert answer.open == [BatchWindow(None, 20, 22, (1,)), BatchWindow("k", 2, 4, (3,))]
    assert (answer.dropped, answer.outside_windows, answer.partially_late) == ([2], [], [])


def test_records_outside_windows_stand_apart_from_dropped_ones() -> None:
    """Rules A5, B5 and B6, C = 100: 95 is partly late, 89 wholly, 4 is below the clamp."""
    batch = [BatchRecord(0, i, "k", time) for i, time in enumerate([4, 100, 89, 95, 3])]
    answer = answer_batch(batch, SlidingDefinition(10, 0, first_window_start=5))
    assert answer.dropped == [2]
    assert answer.outside_windows == [0, 4]
    assert answer.partially_late == [3]


def test_what_more_records_could_save_is_dropped_in_the_batch() -> None:
    """Rule D2: partition 1 is behind, but the batch is all there is."""
    batch = [BatchRecord(0, 0, "z", 200), BatchRecord(0, 1, "k", 185), BatchRecord(1, 2, "z", 50)]
    assert answer_batch(batch, SessionDefinition(10, 0)).dropped == [1]
