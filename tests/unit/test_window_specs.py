"""Specifications of windows by time: arguments, equality, windows (rules B1, B7, B9, C1, D1).

test_sliding_spec has which windows a record makes in sliding ones.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import FrozenInstanceError
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windows_pipeline.windows import (
    ForwardSlidingWindows,
    SessionWindows,
    SlidingWindows,
    TimeWindow,
    TimeWindows,
    WindowSpec,
)

Make = Callable[[Any], WindowSpec]

TUMBLING = TimeWindows.of_size_with_no_grace("10 ms")

# Every argument that is a duration: its name in errors, and how to pass it.
POSITIVE: dict[str, tuple[str, Make]] = {
    "sliding": (
        "time_difference",
        lambda value: SlidingWindows.of_time_difference_and_grace(value, "1 ms"),
    ),
    "forward": ("size", SlidingWindows.of),
    "tumbling": ("size", lambda value: TimeWindows.of_size_and_grace(value, "1 ms")),
    "tumbling, no grace": ("size", TimeWindows.of_size_with_no_grace),
    "hopping": ("advance", TUMBLING.advance_by),
    "sessions": ("gap", lambda gap: SessionWindows.of_inactivity_gap_and_grace(gap, "1 ms")),
    "sessions, no grace": ("gap", SessionWindows.of_inactivity_gap_with_no_grace),
}
NOT_NEGATIVE: dict[str, tuple[str, Make]] = {
    "sliding, grace": (
        "grace",
        lambda value: SlidingWindows.of_time_difference_and_grace("1 hour", value),
    ),
    "forward, grace": ("grace", SlidingWindows.of("1 hour").grace),
    "tumbling, grace": ("grace", lambda value: TimeWindows.of_size_and_grace("1 hour", value)),
    "sessions, grace": (
        "grace",
        lambda value: SessionWindows.of_inactivity_gap_and_grace("1 hour", value),
    ),
}
DURATIONS = POSITIVE | NOT_NEGATIVE

# The same arguments of the constructors, in whole milliseconds.
POSITIVE_MS: dict[str, tuple[str, Make]] = {
    "sliding": ("time_difference", lambda ms: SlidingWindows(ms, 0)),
    "forward": ("size", ForwardSlidingWindows),
    "time windows": ("size", lambda ms: TimeWindows(ms, 1, 0)),
    "advance": ("advance", lambda ms: TimeWindows(1, ms, 0)),
    "sessions": ("gap", lambda ms: SessionWindows(ms, 0)),
}
NOT_NEGATIVE_MS: dict[str, tuple[str, Make]] = {
    "sliding": ("grace", lambda ms: SlidingWindows(1, ms)),
    "forward": ("grace", lambda ms: ForwardSlidingWindows(1, ms)),
    "time windows": ("grace", lambda ms: TimeWindows(1, 1, ms)),
    "sessions": ("grace", lambda ms: SessionWindows(1, ms)),
}
INSTANTS: dict[str, Make] = {
    "sliding": lambda at: SlidingWindows(1, 0, at),
    "time windows": lambda at: TimeWindows(1, 1, 0, at),
}
FLAGS: dict[str, Make] = {
    "sliding": lambda flag: SlidingWindows(1, 0, None, flag),
    "time windows": lambda flag: TimeWindows(1, 1, 0, None, flag),
}

TIMES_MS = st.integers(-100, 100)
LENGTHS_MS = st.integers(1, 30)


def refusal(make: Make, value: object) -> str:
    with pytest.raises(ValueError, match=r".") as refused:
        make(value)
    return str(refused.value)


@pytest.mark.parametrize(("name", "make"), DURATIONS.values(), ids=DURATIONS)
@pytest.mark.parametrize(
    "value",
    ["soon", None, 10, timedelta(microseconds=1)],
)
def test_an_error_about_a_duration_has_the_argument_and_the_value(
    name: str, make: Make, value: object
) -> None:
    # B1: a duration has no part smaller than a millisecond.
    message = refusal(make, value)
    assert message.startswith(f"{name}: ")
    assert repr(value) in message


@pytest.mark.parametrize(("name", "make"), DURATIONS.values(), ids=DURATIONS)
def test_refuses_negative_durations(name: str, make: Make) -> None:
    assert refusal(make, "-1 hour").startswith(f"{name}: '-1 hour'")


@pytest.mark.parametrize(("name", "make"), POSITIVE.values(), ids=POSITIVE)
def test_refuses_lengths_of_zero(name: str, make: Make) -> None:
    assert refusal(make, timedelta(0)).startswith(f"{name}: '0 seconds'")


@pytest.mark.parametrize(
    ("name", "make"),
    [*POSITIVE_MS.values(), *NOT_NEGATIVE_MS.values()],
    ids=[*POSITIVE_MS, *(f"{kind}, grace" for kind in NOT_NEGATIVE_MS)],
)
@pytest.mark.parametrize("value", [1.5, True, "10", 2**53 + 1, -1])
def test_constructors_take_whole_milliseconds_that_cannot_overflow(
    name: str, make: Make, value: object
) -> None:
    # 2**53 ms more than any event time is still far from the end of 64 bits.
    assert refusal(make, value).startswith(f"{name}: ")


@pytest.mark.parametrize(("name", "make"), POSITIVE_MS.values(), ids=POSITIVE_MS)
def test_lengths_from_a_millisecond_on_are_allowed(name: str, make: Make) -> None:
    assert make(1) != make(2**53)
    assert refusal(make, 0).startswith(f"{name}: '0 seconds'")


@pytest.mark.parametrize("make", INSTANTS.values(), ids=INSTANTS)
@pytest.mark.parametrize("value", [0.0, False, 2**61 + 1, -(2**61) - 1])
def test_refuses_a_first_window_start_that_is_not_a_time(make: Make, value: object) -> None:
    message = refusal(make, value)
    assert message.startswith("first_window_start_ms: ")
    assert repr(value) in message


@pytest.mark.parametrize("make", FLAGS.values(), ids=FLAGS)
@pytest.mark.parametrize("value", [1, "yes", None])
def test_refuses_an_emit_empty_that_is_not_a_bool(make: Make, value: object) -> None:
    assert refusal(make, value) == f"emit_empty: must be True or False, not {value!r}"


@pytest.mark.parametrize(
    ("first", "same", "other"),
    [
        (
            SlidingWindows.of_time_difference_and_grace("60 minutes", "6 hours"),
            SlidingWindows(3_600_000, 21_600_000),
            SlidingWindows.of_time_difference_and_grace("60 minutes", "5 hours"),
        ),
        (
            SlidingWindows.of("60 minutes").grace("1 day"),
            SlidingWindows.of(timedelta(hours=1)).grace(timedelta(days=1)),
            SlidingWindows.of("60 minutes"),
        ),
        (
            TimeWindows.of_size_and_grace("1 hour", "2 hours").advance_by("10 minutes"),
            TimeWindows.of_size_and_grace(timedelta(hours=1), timedelta(hours=2)).advance_by(
                timedelta(minutes=10)
            ),
            TimeWindows.of_size_and_grace("1 hour", "2 hours"),
        ),
        (
            TimeWindows.of_size_with_no_grace("1 hour", first_window_start_ms=0, emit_empty=True),
            TimeWindows.of_size_and_grace(
                "60 minutes", "0 ms", first_window_start_ms=0, emit_empty=True
            ),
            TimeWindows.of_size_with_no_grace("1 hour", emit_empty=True),
        ),
        (
            SessionWindows.of_inactivity_gap_with_no_grace("1 hour"),
            SessionWindows.of_inactivity_gap_and_grace("60 minutes", timedelta(0)),
            SessionWindows.of_inactivity_gap_and_grace("1 hour", "1 ms"),
        ),
    ],
)
def test_equality_hash_and_text_depend_on_the_values(
    first: WindowSpec, same: WindowSpec, other: WindowSpec
) -> None:
    # B9.
    assert first == same
    assert len({first, same, other}) == 2
    assert repr(first) == repr(same) != repr(other)
    assert first != other


def test_text_has_the_values() -> None:
    # B9.
    assert repr(SlidingWindows.of("1 hour")) == "ForwardSlidingWindows(size_ms=3600000, grace_ms=0)"
    assert repr(TimeWindows.of_size_with_no_grace("1 hour").advance_by("1 minute")) == (
        "TimeWindows(size_ms=3600000, advance_ms=60000, grace_ms=0, "
        "first_window_start_ms=None, emit_empty=False)"
    )
    sessions = SessionWindows.of_inactivity_gap_and_grace("1 hour", "1 minute")
    assert repr(sessions) == "SessionWindows(gap_ms=3600000, grace_ms=60000)"


@pytest.mark.parametrize(
    ("spec", "name"),
    [
        (SlidingWindows(5, 0), "grace_ms"),
        (ForwardSlidingWindows(5), "grace_ms"),
        (TUMBLING, "advance_ms"),
        (SessionWindows(5, 0), "gap_ms"),
    ],
)
def test_is_frozen(spec: WindowSpec, name: str) -> None:
    with pytest.raises(FrozenInstanceError):
        setattr(spec, name, 3)


def test_grace_is_zero_by_default() -> None:
    # B7 for forward windows.
    assert SlidingWindows.of("1 hour").grace_period_ms == 0
    assert TimeWindows.of_size_with_no_grace("1 hour").grace_period_ms == 0
    assert SessionWindows.of_inactivity_gap_with_no_grace("1 hour").grace_period_ms == 0


def test_advance_by_keeps_the_rest() -> None:
    hopping = TimeWindows(10, 10, 3, first_window_start_ms=-7, emit_empty=True).advance_by("4 ms")
    assert hopping == TimeWindows(10, 4, 3, first_window_start_ms=-7, emit_empty=True)


@given(TIMES_MS, LENGTHS_MS, LENGTHS_MS, st.none() | TIMES_MS)
def test_time_windows_are_all_aligned_windows_that_contain_the_time(
    time_ms: int, size_ms: int, advance_ms: int, first_ms: int | None
) -> None:
    # C1: [start, start + size) at each multiple of the advance, also below 0; none in a gap.
    spec = TimeWindows(size_ms, advance_ms, 0, first_window_start_ms=first_ms)
    assert spec.windows_for(time_ms) == tuple(
        TimeWindow(start, start + size_ms)
        for start in range(time_ms - size_ms - 1, time_ms + size_ms + 1)
        if start % advance_ms == 0
        and start <= time_ms < start + size_ms
        and (first_ms is None or start >= first_ms)
    )


@pytest.mark.parametrize(
    "spec", [SlidingWindows(5, 0), ForwardSlidingWindows(5), TUMBLING, SessionWindows(5, 0)]
)
@pytest.mark.parametrize("time", [1.5, True, 2**61 + 1])
def test_a_time_must_be_an_int_of_milliseconds(spec: WindowSpec, time: Any) -> None:
    with pytest.raises(ValueError, match=r"^timestamp_ms: ") as refused:
        spec.windows_for(time)
    assert repr(time) in str(refused.value)


@given(TIMES_MS, LENGTHS_MS)
def test_a_forward_window_starts_at_the_record(time_ms: int, size_ms: int) -> None:
    # B7: [t, t + size].
    windows = ForwardSlidingWindows(size_ms).windows_for(time_ms)
    assert windows == (TimeWindow(time_ms, time_ms + size_ms),)


@given(TIMES_MS, LENGTHS_MS)
def test_a_session_of_one_record_starts_and_ends_there(time_ms: int, gap_ms: int) -> None:
    # D1: the bounds are the times of the first and the last record.
    assert SessionWindows(gap_ms, 0).windows_for(time_ms) == (TimeWindow(time_ms, time_ms),)
