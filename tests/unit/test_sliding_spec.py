"""The specification of sliding windows follows KIP-450 (rules B1, B2, B3, B6)."""

from __future__ import annotations

import pytest

from windows_pipeline.windows import SlidingWindows, TimeWindow

TIMES = {"a": 3, "b": 7, "c": 12, "d": 19}
# The KIP's example: the records of each window, with a difference of 10.
WORKED_EXAMPLE = {
    TimeWindow(-7, 3): "a",
    TimeWindow(-3, 7): "ab",
    TimeWindow(2, 12): "abc",
    TimeWindow(4, 14): "bc",
    TimeWindow(8, 18): "c",
    TimeWindow(9, 19): "cd",
    TimeWindow(13, 23): "d",
}


def ten_ms() -> SlidingWindows:
    return SlidingWindows.of_time_difference_and_grace("10 ms", "50 ms")


def test_the_worked_example_has_exactly_its_seven_windows() -> None:
    # B2: both bounds are inclusive. B3: windows with a record in them are made.
    made = {window for time in TIMES.values() for window in ten_ms().windows_for(time)}
    contents = {
        window: "".join(
            name for name, time in TIMES.items() if window.start_ms <= time <= window.end_ms
        )
        for window in made
    }
    assert {window: names for window, names in contents.items() if names} == WORKED_EXAMPLE


def test_no_grace_is_a_grace_of_nothing() -> None:
    """KIP-633's second name (rule B1)."""
    made = SlidingWindows.of_time_difference_with_no_grace(
        "10 ms", first_window_start_ms=3, emit_empty=True
    )
    assert made == SlidingWindows(10, 0, 3, emit_empty=True)


def test_left_ends_at_the_record_and_right_begins_after_it() -> None:
    # B3: [t - d, t] and [t + 1, t + 1 + d].
    assert ten_ms().windows_for(12) == (TimeWindow(2, 12), TimeWindow(13, 23))


@pytest.mark.parametrize(
    ("time", "left"),
    [(0, (0, 10)), (3, (0, 10)), (10, (0, 10)), (11, (1, 11))],
)
def test_no_window_starts_below_the_first_start(time: int, left: tuple[int, int]) -> None:
    # B6: the left window of a record before v + d is [v, v + d].
    windows = SlidingWindows.of_time_difference_and_grace("10 ms", "50 ms", first_window_start_ms=0)
    assert windows.windows_for(time) == (left, (time + 1, time + 11))


def test_a_time_before_the_first_start_has_no_window() -> None:
    with pytest.raises(ValueError, match="timestamp_ms: -1 is before first_window_start_ms, 0"):
        SlidingWindows(10, 0, first_window_start_ms=0).windows_for(-1)


def test_both_arguments_are_required() -> None:
    make = SlidingWindows.of_time_difference_and_grace
    with pytest.raises(TypeError, match="grace"):
        make("1 hour")  # type: ignore[call-arg]  # wrong on purpose
