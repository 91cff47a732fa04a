"""Durations are whole milliseconds, and everything else is refused by name (rule B1)."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windows_pipeline.windows.durations import duration_ms, duration_text


@pytest.mark.parametrize(
    ("value", "ms"),
    [
        ("10 minutes", 600_000),
        ("1 hour", 3_600_000),
        ("1 hour 30 minutes", 5_400_000),
        ("1 week", 604_800_000),
        ("5 ms", 5),
        ("0 seconds", 0),
        (" 7 SECONDS ", 7_000),
        ("10minutes", 600_000),
        ("1h 30min", 5_400_000),
        ("2 w", 1_209_600_000),
        ("2 hrs 1 min", 7_260_000),
        (timedelta(minutes=10), 600_000),
        (timedelta(milliseconds=-1), -1),
    ],
)
def test_reads_whole_milliseconds(value: str | timedelta, ms: int) -> None:
    assert duration_ms(value, "grace") == ms


def test_a_sign_applies_to_the_whole_duration() -> None:
    assert duration_ms("-1 hour 30 minutes", "grace") == -5_400_000


@pytest.mark.parametrize(
    "value",
    [
        "",
        "1.5 hours",
        "1 hour -30 minutes",
        "5 m",  # minutes or months?
        "--5 minutes",
        "٣ hours",
        "1 h 30 min 1 HOUR",
        timedelta(microseconds=1),
    ],
)
def test_an_error_has_the_argument_and_the_value(value: str | timedelta) -> None:
    with pytest.raises(ValueError, match=r"^grace: ") as refused:
        duration_ms(value, "grace")
    assert repr(value) in str(refused.value)


@pytest.mark.parametrize(
    ("value", "problem", "fix"),
    [
        (10, "has no unit", "'10 ms' or '10 minutes'"),
        ("-10", "has no unit", "'10 ms' or '10 minutes'"),
        ("1.5 seconds", "is not whole", "use a smaller unit, as in '1 second 500 ms'"),
        ("10 us", "a unit smaller than a millisecond, 'us'", "use whole milliseconds"),
        ("10 nanoseconds", "a unit smaller than a millisecond", "use whole milliseconds"),
        ("5 months", "an unknown unit 'months'", "use ms, s, min, h, d, w"),
        ("9007199254740993 ms", "is too long", "at most 9007199254740992 ms, 285,000 years"),
        ("9" * 1_900 + " s", "is too long", "at most 9007199254740992 ms, 285,000 years"),
        (None, "is not a duration", "such as '10 minutes'"),
        (True, "is not a duration", "such as '10 minutes'"),
    ],
)
def test_an_error_says_what_is_wrong_and_what_to_write(value: Any, problem: str, fix: str) -> None:
    with pytest.raises(ValueError, match=r"^grace: ") as refused:
        duration_ms(value, "grace")
    assert str(refused.value).startswith(f"grace: {value!r} ")
    assert problem in str(refused.value)
    assert fix in str(refused.value)


@given(st.integers(min_value=-(2**53), max_value=2**53))
def test_text_reads_back(ms: int) -> None:
    assert duration_ms(duration_text(ms), "grace") == ms


@given(st.integers(min_value=-(2**50), max_value=2**50))
def test_timedeltas_of_whole_milliseconds_are_exact(ms: int) -> None:
    assert duration_ms(timedelta(milliseconds=1) * ms, "grace") == ms


def test_text_uses_the_largest_units_that_fit() -> None:
    assert duration_text(5_400_000) == "1 hour 30 minutes"
    assert duration_text(0) == "0 seconds"
    assert duration_text(-1) == "-1 millisecond"
