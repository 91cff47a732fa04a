"""Values of data for people and as JSON; how digests and ids have them must never change."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from math import inf, nan

import pytest

from windows_pipeline.notify.events import Event, plain
from windows_pipeline.query.alert_ids import alert_id
from windows_pipeline.text.instants import time_text
from windows_pipeline.text.values import as_json, cut, one_line, printable, short, value_text

AT = datetime(2013, 3, 8, 18, 2, tzinfo=UTC)
IN_NEW_YORK = AT.astimezone(timezone(timedelta(hours=-5)))


@pytest.mark.parametrize(
    ("value", "text", "cell"),
    [
        (None, "null", "null"),
        (True, "true", "true"),
        (1_234_567, "1,234,567", "1234567"),
        (1_234_567.891, "1,234,567.891", "1234567.891"),
        (1_000_000.0, "1,000,000", "1000000"),
        (97.03333, "97.033", "97.033"),
        (0.1234567, "0.123457", "0.123457"),
        (-0.00001234, "-1.234e-05", "-1.234e-05"),
        (1e20, "1e+20", "1e+20"),
        (nan, "nan", "nan"),
        (Decimal("1234.50"), "1,234.50", "1234.50"),
        (AT, "2013-03-08 18:02:00", "2013-03-08 18:02:00"),
        (AT + timedelta(milliseconds=7), "2013-03-08 18:02:00.007", "2013-03-08 18:02:00.007"),
        (IN_NEW_YORK, "2013-03-08 18:02:00", "2013-03-08 18:02:00"),
        (date(2013, 3, 8), "2013-03-08", "2013-03-08"),
        (["a", None, 1.5], "[a, null, 1.5]", "[a, null, 1.5]"),
        ({"carrier": "AA", "origin": None}, "AA,", "AA,"),
        (("AA", 1_000), "AA,1000", "AA,1000"),
        ("a\n\t\x1b[2J\u202eb", r"a\n\t\x1b[2J\u202eb", r"a\n\t\x1b[2J\u202eb"),
    ],
)
def test_a_value_is_shown_alike_everywhere(value: object, text: str, cell: str) -> None:
    assert (value_text(value), value_text(value, thousands="")) == (text, cell)


def test_a_long_value_is_cut() -> None:
    assert short("x" * 200) == "x" * 200
    assert short("x" * 201) == "x" * 199 + "…"
    assert (cut("abc", 3), cut("abcd", 3)) == ("abc", "ab…")


def test_texts_keep_the_letters_of_all_languages() -> None:
    """Also letters that others join, as in Persian and in emoji."""
    text = "ä\u200c日本\u3000\U0001f468\u200d\U0001f469\u00a0"
    assert one_line(text) == text
    assert printable("a\n\tb\r\u2028\ud800") == "a\n\tb\\r\\u2028\\ud800"


def test_an_instant_outside_of_pythons_years_is_a_number() -> None:
    assert (time_text(10**15), time_text(-1)) == ("1000000000000000 ms", "1969-12-31 23:59:59.999")


VALUES = [
    *(None, True, 7, 0.5, -0.0, "ä\n", Decimal("1.50"), AT, IN_NEW_YORK, date(2013, 3, 8)),
    *([1, [Decimal(2)]], {"a": AT, "b": {"c": None}}),
]
JSON = (
    '[null, true, 7, 0.5, -0.0, "\\u00e4\\n", "1.50", "2013-03-08T18:02:00.000Z", '
    '"2013-03-08T18:02:00.000Z", "2013-03-08", [1, ["2"]], '
    '{"a": "2013-03-08T18:02:00.000Z", "b": {"c": null}}'
)


def test_json_has_names_for_the_numbers_that_it_lacks() -> None:
    found = json.dumps(as_json([*VALUES, nan, inf, -inf, b"\x00\xff"]))
    assert found == f'{JSON}, "NaN", "Infinity", "-Infinity", "AP8="]'


def test_what_digests_are_of_never_changes() -> None:
    """Rule E6: else an upgrade would send what was sent before."""
    assert json.dumps(plain([*VALUES, nan, inf, -inf])) == f'{JSON}, "nan", "inf", "-inf"]'


def test_the_digest_of_an_event_never_changes() -> None:
    """Rule E6: by the digest, a rebuild finds what was sent of a correction."""
    event = Event(
        id="id",
        windows="hourly",
        arrival_unit=date(2013, 3, 9),
        rule="disruption",
        key="EWR",
        event="opened",
        window_start=AT,
        window_end=AT + timedelta(hours=1),
        record_count=31,
        aggregates={"avg": 97.0},
        severity=97.0,
        since=AT,
        until=AT + timedelta(hours=1),
        correction=2,
        stands=True,
    )
    times = ["2013-03-08T18:02:00.000Z", "2013-03-08T19:02:00.000Z"]
    named = ["hourly", "disruption", '"EWR"', times[0], "opened", "2013-03-09"]
    for severity, written in ((97.0, 97.0), (nan, "nan"), (None, None)):
        text = json.dumps([*named, *times, times[1], 31, written])
        assert replace(event, severity=severity).digest == hashlib.sha256(text.encode()).hexdigest()


def test_the_id_of_an_alert_has_doubles_as_texts() -> None:
    """Rule E5: people keep ids, so an id never changes."""
    alert = {"rule": "r", "window_start": AT, "window_end": IN_NEW_YORK, "correction": None}
    key = {"a": 1.5, "b": True, "c": Decimal("2.50"), "d": date(2013, 3, 8), "e": nan}
    text = (
        '["p","w","r",["1.5",true,"2.50","2013-03-08","nan"],"2013-03-08T18:02:00.000Z",'
        '"2013-03-08T18:02:00.000Z",null]'
    )
    digest = hashlib.sha256(text.encode()).hexdigest()[:12]
    assert alert_id("p", "w", (), {**alert, "key": key}) == digest
