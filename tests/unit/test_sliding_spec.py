"""The specification of sliding windows follows KIP-450 (rules B1, B2, B3, B6, B9)."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

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

event_times = st.integers(min_value=-(2**53), max_value=2**53)


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


@given(event_times, st.integers(min_value=1, max_value=2**40))
def test_both_windows_are_as_long_as_the_difference(time: int, difference_ms: int) -> None:
    left, right = SlidingWindows(difference_ms, 0).windows_for(time)
    assert left.end_ms - left.start_ms == right.end_ms - right.start_ms == difference_ms
    assert left.end_ms + 1 == right.start_ms == time + 1


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


@pytest.mark.parametrize(
    ("difference", "grace", "named", "value"),
    [
        ("0 ms", "1 ms", "time_difference", "0 seconds"),
        ("-1 hour", "1 ms", "time_difference", "-1 hour"),
        ("1 hour", "-1 ms", "grace", "-1 millisecond"),
        ("soon", "1 ms", "time_difference", "'soon'"),
        ("1 hour", "", "grace", "''"),
        (timedelta(microseconds=1), "1 ms", "time_difference", "microseconds=1"),
        ("1 hour", timedelta(microseconds=1500), "grace", "microseconds=1500"),
        (10, "1 ms", "time_difference", "10"),
        ("1 hour", None, "grace", "None"),
    ],
)
def test_an_error_has_the_argument_and_the_value(
    difference: object, grace: object, named: str, value: str
) -> None:
    # B1: the difference must be above zero, the grace zero or more.
    make = SlidingWindows.of_time_difference_and_grace
    with pytest.raises(ValueError, match=f"^{named}: ") as refused:
        make(difference, grace)  # type: ignore[arg-type]  # wrong on purpose
    assert value in str(refused.value)


def test_both_arguments_are_required() -> None:
    make = SlidingWindows.of_time_difference_and_grace
    with pytest.raises(TypeError, match="grace"):
        make("1 hour")  # type: ignore[call-arg]  # wrong on purpose


@pytest.mark.parametrize("ms", [1.5, 10.0, True, "10"])
def test_the_constructor_takes_whole_milliseconds_only(ms: object) -> None:
    with pytest.raises(
        ValueError, match=r"time_difference: .* is not a whole number of milliseconds"
    ):
        SlidingWindows(ms, 0)  # type: ignore[arg-type]  # wrong on purpose


def test_smallest_difference_and_no_grace_are_allowed() -> None:
    windows = SlidingWindows.of_time_difference_and_grace("1 ms", "0 ms")
    assert (windows.time_difference_ms, windows.grace_period_ms) == (1, 0)


def test_equality_hash_and_text_depend_on_the_values() -> None:
    # B9.
    hourly = SlidingWindows.of_time_difference_and_grace("60 minutes", "6 hours")
    same = SlidingWindows.of_time_difference_and_grace(timedelta(hours=1), timedelta(hours=6))
    assert hourly == same
    assert len({hourly, same}) == 1
    assert hourly != SlidingWindows.of_time_difference_and_grace("60 minutes", "5 hours")
    assert hourly.grace_period_ms == 21_600_000
    assert "time_difference_ms=3600000" in repr(hourly)
    assert "grace_ms=21600000" in repr(hourly)


def test_is_frozen() -> None:
    with pytest.raises(AttributeError):
        ten_ms().grace_ms = 3  # type: ignore[misc]  # wrong on purpose
