"""The guessed type of a column accepts the values that were written in that type."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from windows_pipeline.epochs import EPOCHS
from windows_pipeline.starter.instants import instants
from windows_pipeline.starter.types import SampleColumn, guess_type, with_common_signs

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
ZONES = st.sampled_from([UTC, timezone(timedelta(hours=2)), timezone(-timedelta(hours=9.5))])
PAST, FUTURE = datetime(1800, 1, 1), datetime(2200, 1, 1)


def guessed(
    values: Sequence[str | None], name: str = "x", native: str | None = None
) -> SampleColumn:
    return guess_type(name, pa.array(values, pa.string()), native)


def micros(time: datetime) -> int:
    aware = time if time.tzinfo else time.replace(tzinfo=UTC)
    return (aware - EPOCH) // timedelta(microseconds=1)


def micros_read(column: SampleColumn) -> list[int | None]:
    us = column.known_times.astype(np.int64).tolist()
    return [
        None if missing else at
        for at, missing in zip(us, np.isnat(column.known_times), strict=True)
    ]


@settings(deadline=None)
@given(
    st.lists(
        st.one_of(st.datetimes(PAST, FUTURE), st.datetimes(PAST, FUTURE, timezones=ZONES)),
        min_size=1,
    )
)
def test_iso_times_are_timestamps_and_mean_what_python_reads(times: list[datetime]) -> None:
    column = guessed([time.isoformat(" ", "microseconds") for time in times])
    assert column.type == "timestamp"
    assert micros_read(column) == [micros(time) for time in times]


@settings(deadline=None)
@given(st.lists(st.dates(date(1000, 1, 1)), min_size=1))
def test_days_are_dates(days: list[date]) -> None:
    column = guessed([day.isoformat() for day in days])
    assert column.type == "date"
    assert micros_read(column) == [(day - date(1970, 1, 1)).days * 86_400_000_000 for day in days]


@pytest.mark.parametrize(
    "text", ["2026-02-30T10:00:00", "2026-13-01", "0000-12-31", "epoch", "10:15", "08.13.2026"]
)
def test_what_is_no_time_is_text(text: str) -> None:
    assert guessed([text, text]).type == "string"


@pytest.mark.parametrize("zone", ["Europe/Berlin", "Australia/Lord_Howe", "Antarctica/Casey"])
def test_a_local_time_is_read_in_its_zone(zone: str) -> None:
    """As a run reads it: the first of two instants; a time that does not occur is no time."""
    days = [datetime(2026, 3, 29), datetime(2026, 4, 5), datetime(2026, 10, 4)]
    days += [datetime(2026, 10, 25), datetime(2010, 3, 5)]
    local = [day + timedelta(minutes=7 * step) for day in days for step in range(-100, 200)]
    column = guessed([time.isoformat(" ") for time in local] + ["2026-10-25T02:30:00Z"])
    read = column.as_type("timestamp", zone)
    meant = [time.replace(tzinfo=ZoneInfo(zone)).astimezone(UTC) for time in local]
    occurs = [
        instant.astimezone(ZoneInfo(zone)).replace(tzinfo=None) == time
        for instant, time in zip(meant, local, strict=True)
    ]
    wanted = [micros(time) if known else None for time, known in zip(meant, occurs, strict=True)]
    assert micros_read(read) == [*wanted, micros(datetime(2026, 10, 25, 2, 30))]
    assert column.is_local
    assert not guessed(["2026-10-25T02:30:00Z"]).is_local
    assert not guessed(["2026-10-25T02:30:00Z"] * 100 + ["never"]).is_local


@settings(deadline=None)
@given(
    st.sampled_from(sorted(EPOCHS)),
    st.lists(st.datetimes(datetime(1991, 1, 1), datetime(2099, 1, 1)), min_size=1),
)
def test_numbers_since_1970_are_read_by_their_size(kind: str, times: list[datetime]) -> None:
    per_second = EPOCHS[kind].per_second
    numbers = [micros(time) * per_second // 1_000_000 for time in times]
    column = guessed([str(number) for number in numbers], "event_time")
    assert column.type == kind
    assert micros_read(column) == [number * 1_000_000 // per_second for number in numbers]


def test_a_number_that_grows_with_the_file_is_a_time_whatever_its_name() -> None:
    numbers = [str(1_772_928_000_000 + 250 * number) for number in range(100)]
    assert guessed(numbers, "x").type == "timestamp_ms"
    assert guessed(numbers[::7] + numbers[::-1], "x").type == "bigint"
    assert guessed(numbers, "card").type == "bigint"


def test_a_number_since_1970_may_have_a_point_or_a_power() -> None:
    column = guessed(["1772928000.25", "1772928001.5", None], "ts")
    assert column.type == "timestamp_s"
    assert micros_read(column)[:2] == [1_772_928_000_250_000, 1_772_928_001_500_000]
    power = guessed(["1.772928e12", "1.772928000001e+12"], "ts", "double")
    assert power.type == "timestamp_ms"
    assert micros_read(power) == [1_772_928_000_000_000, 1_772_928_000_001_000]


@settings(deadline=None)
@given(
    st.sampled_from(["x", "ts"]), st.lists(st.integers(-(10**45), 10**45), min_size=1, max_size=50)
)
def test_whole_numbers_of_any_size_get_a_type_that_holds_them(
    name: str, numbers: list[int]
) -> None:
    """Also from 2^63 on, which are no times in nanoseconds."""
    for each in (numbers, [2**63], [10**19 - 1], [2**64 - 1], [-(2**63) - 1]):
        kind = guessed([str(number) for number in each], name).type
        most = max(map(abs, each))
        limits = {"bigint": 10**18, "decimal(38,0)": 10**38, "double": 10**308}
        assert kind.startswith("timestamp") or most < limits[kind]


@settings(deadline=None)
@given(st.lists(st.floats(width=64, allow_subnormal=False), min_size=1))
def test_numbers_with_a_point_are_numbers(numbers: list[float]) -> None:
    column = guessed([repr(number) for number in numbers])
    assert column.is_number or column.times is not None


@settings(deadline=None)
@given(st.lists(st.decimals(-(10**6), 10**6, places=2), min_size=1))
def test_amounts_of_money_keep_their_cents(amounts: list[Decimal]) -> None:
    texts = [str(amount) for amount in amounts]
    assert guessed(texts, "amount").type == "decimal(18,2)"
    assert guessed(texts, "width").type == "double"


def test_amounts_may_lack_zeros_at_their_end() -> None:
    """Most writers of JSON leave them out."""
    assert guessed(["10.5", "3", "7.25"], "amount").type == "decimal(18,2)"
    assert guessed(["10.12345"], "amount").type == "double"


FORMS: list[tuple[list[str], str, dict[str, str]]] = [
    (["24.10.2026 00:00:00", "5.1.2026 01:00:00"], "timestamp", {"format": "d.M.yyyy H:mm:ss"}),
    (["24.10.2026 00:00:00", "05.01.2026 1:00:00"], "timestamp", {"format": "d.M.yyyy H:mm:ss"}),
    (["24.10.2026 00:00:00"], "timestamp", {"format": "dd.MM.yyyy HH:mm:ss"}),
    (["24.10.2026 23:59"], "timestamp", {"format": "dd.MM.yyyy HH:mm"}),
    (["24.10.2026 23:59:59,1"], "timestamp", {"format": "dd.MM.yyyy HH:mm:ss,SSSSSS"}),
    (["2026-10-24 23:59:59,083"], "timestamp", {"format": "yyyy-MM-dd HH:mm:ss,SSSSSS"}),
    (["24.10.2026"], "date", {"format": "dd.MM.yyyy"}),
    (["10/24/2026 10:00", "01/02/2026 10:00"], "timestamp", {"format": "MM/dd/yyyy HH:mm"}),
    (["24/10/2026T10:00"], "timestamp", {"format": "dd/MM/yyyy'T'HH:mm"}),
    (["10/24/2026 1:00:00 PM"], "timestamp", {"format": "M/d/yyyy h:mm:ss a"}),
    (["2026/10/24"], "date", {"format": "yyyy/MM/dd"}),
    (["1,5", "-20,25", "7"], "double", {"decimal": ","}),
    (["1.234,5", "0,25"], "double", {"decimal": ",", "thousands": "."}),
    (["1.234.567", "12"], "bigint", {"decimal": ",", "thousands": "."}),
    (["1,234,567", "12"], "bigint", {"thousands": ","}),
    (["1,234.5"], "double", {"thousands": ","}),
    (["1 234", "12"], "bigint", {"thousands": " "}),
    (["1 234,5", "12"], "double", {"decimal": ",", "thousands": " "}),
    (["1'234.50"], "double", {"thousands": "'"}),
    (["1.234"], "double", {}),
    (["1.5.2", "pump"], "string", {}),
    (["32.10.2026"], "string", {}),
    (["05,5"], "string", {}),
]


@pytest.mark.parametrize(("texts", "kind", "form"), FORMS)
def test_times_and_numbers_of_other_forms_are_read(
    texts: list[str], kind: str, form: dict[str, str]
) -> None:
    column = guessed(texts)
    assert (column.type, dict(column.form), column.note) == (kind, form, "")
    assert column.declared == {"type": kind, **form}
    assert column.plain.null_count == 0
    assert column.as_type("string").declared == {"type": "string"}


@pytest.mark.parametrize(
    ("texts", "words"),
    [
        (["03/04/2026", "12/12/2026"], "its values fit dd/MM/yyyy as well as MM/dd/yyyy"),
        (["1,234", "12,500"], "its commas may be decimal or stand between thousands"),
    ],
)
def test_what_may_mean_two_things_is_text_and_named(texts: list[str], words: str) -> None:
    column = guessed(texts)
    assert column.type == "string"
    assert words in column.note


def test_times_of_a_form_are_read_in_a_zone() -> None:
    """As times in ISO 8601; what is not in the form is none."""
    texts = ["25.10.2026 02:30", "29.03.2026 02:30", "24.10.2026 14:30", None]
    column = guessed([*texts, *texts[2:] * 150, "soon"])
    assert column.is_local
    read = micros_read(column.as_type("timestamp", "Europe/Berlin"))
    wanted = [datetime(2026, 10, 25, 0, 30), None, datetime(2026, 10, 24, 12, 30), None]
    assert read[:4] == [time and micros(time) for time in wanted]
    assert read[-1] is None


def test_a_point_before_three_digits_is_none_where_others_have_decimal_commas() -> None:
    """Rule A6: 1.234 read as a double would be a thousandth of what it is."""
    columns = {
        "comma": guessed(["1,5"]),
        "pieces": guessed(["1.234", "7"]),
        "point": guessed(["1.234", "7.5"]),
        "whole": guessed(["1234"]),
    }
    found = with_common_signs(columns)
    assert found["pieces"].declared == {"type": "bigint", "decimal": ",", "thousands": "."}
    assert [found[name] for name in ("comma", "point", "whole")] == [
        columns[name] for name in ("comma", "point", "whole")
    ]
    del columns["comma"]
    assert with_common_signs(columns) == columns


def test_long_numbers_keep_their_digits() -> None:
    texts = ["12345678901234567.25", "0.5"]
    assert guessed(texts).type == "decimal(38,2)"


@pytest.mark.parametrize(
    ("texts", "kind"),
    [
        (["true", "FALSE"], "boolean"),
        (["00123", "00456"], "string"),
        (["12345678901234567890"], "decimal(38,0)"),
        (["yes", "no"], "string"),
        ([None, None], "string"),
        (["5", "n/a"], "string"),
    ],
)
def test_other_values(texts: list[str | None], kind: str) -> None:
    assert guessed(texts).type == kind


@settings(deadline=None)
@given(
    st.lists(st.one_of(st.none(), st.text(), st.from_regex(r"[-+0-9.eE:T ]{1,25}")), max_size=30)
)
def test_any_text_gets_a_type(texts: list[str | None]) -> None:
    values = [text and text.encode("utf-8", "replace").decode() for text in texts]
    column = guessed(values, "ts")
    assert column.times is None or np.isnat(column.times).sum() <= len(values)


def test_one_value_of_a_hundred_may_not_fit() -> None:
    column = guessed([*map(str, range(199)), "n/a"])
    assert (column.type, column.example) == ("bigint", "0")
    assert guessed([*map(str, range(97)), "n/a"]).type == "string"


def test_parquet_says_its_types() -> None:
    assert guessed(["5", None], native="double").type == "double"
    assert guessed(["1.50"], "amount", "decimal(9,2)").type == "decimal(9,2)"
    assert guessed(["1772928000000", "1772928000001"], "ts", "bigint").type == "timestamp_ms"
    assert guessed([], native="bigint").type == "bigint"


def test_what_is_no_time_is_marked() -> None:
    found = instants(pa.array(["2026-03-08", None, "x"]), "timestamp")
    assert np.isnat(found).tolist() == [False, True, True]
