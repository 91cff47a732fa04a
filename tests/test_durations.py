"""Durations are whole milliseconds, and everything else is refused by name (rule B1)."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windows_pipeline.durations import duration_ms, duration_text


@pytest.mark.parametrize(
    ("value", "ms"),
    [
        ("10 minutes", 600_000),
        ("1 hour", 3_600_000),
        ("60 minutes", 3_600_000),
        ("1 hour 30 minutes", 5_400_000),
        ("2 days", 172_800_000),
        ("1 week", 604_800_000),
        ("5 ms", 5),
        ("5 milliseconds", 5),
        ("0 seconds", 0),
        (" 7 SECONDS ", 7_000),
        ("10minutes", 600_000),
        (timedelta(minutes=10), 600_000),
        (timedelta(milliseconds=-1), -1),
    ],
)
def test_reads_whole_milliseconds(value: str | timedelta, ms: int) -> None:
    assert duration_ms(value, "grace") == ms


def test_a_sign_goes_for_the_whole_duration() -> None:
    assert duration_ms("-1 hour 30 minutes", "grace") == -5_400_000


@pytest.mark.parametrize(
    "value",
    [
        "",
        "10",
        "minutes",
        "1.5 hours",
        "1 hour -30 minutes",
        "1 hour and 30 minutes",
        "5 mss",
        "5 months",
        "5 s",
        "--5 minutes",
        "٣ hours",
        "9999999999999 weeks",
        timedelta(microseconds=1),
        timedelta(days=9, microseconds=-1),
    ],
)
def test_refuses_anything_else_with_the_argument_and_the_value(value: str | timedelta) -> None:
    with pytest.raises(ValueError, match=r"^grace: ") as refused:
        duration_ms(value, "grace")
    assert repr(value) in str(refused.value)


@given(st.integers(min_value=-(2**53), max_value=2**53))
def test_text_reads_back(ms: int) -> None:
    assert duration_ms(duration_text(ms), "grace") == ms


@given(st.integers(min_value=-(2**50), max_value=2**50))
def test_timedeltas_of_whole_milliseconds_are_exact(ms: int) -> None:
    assert duration_ms(timedelta(milliseconds=1) * ms, "grace") == ms


def test_text_names_units_as_people_do() -> None:
    assert duration_text(5_400_000) == "1 hour 30 minutes"
    assert duration_text(0) == "0 seconds"
    assert duration_text(-1) == "-1 millisecond"
