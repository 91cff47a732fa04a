"""Which records are rejected with which reason, and the values of accepted ones (A6, A7)."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, date, datetime
from typing import Any

import pytest
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from windows_pipeline.config.source import Source
from windows_pipeline.sources.validation import judged_records

DAY = date(2013, 1, 1)
COLUMNS = {
    "id": "string",
    "at": "timestamp",
    "came": "timestamp",
    "whole": "bigint",
    "real": "double",
    "flag": "boolean",
    "day": "date",
}
GOOD = {"id": "a", "at": "2013-01-01T10:00:00Z", "came": "2013-01-01T11:00:00Z"}


def source_of(**fields: Any) -> Source:
    plain = {"path": "data", "format": "jsonl", "columns": COLUMNS, "key": "id", "event_time": "at"}
    return Source.model_validate(plain | {"arrival": "came", "max_ahead": "1 hour"} | fields)


def landed(spark: SparkSession, source: Source, *records: dict[str, Any]) -> DataFrame:
    """Landed rows of some texts; `original` identifies each."""
    names = list(source.columns)
    rows = [
        (DAY, "f", str(i), record.get("malformed", False), *[record.get(name) for name in names])
        for i, record in enumerate(records)
    ]
    declared = "".join(f", `{name}` string" for name in names)
    schema = f"arrival_unit date, file string, original string, malformed boolean{declared}"
    return spark.createDataFrame(rows, schema)


def reasons(spark: SparkSession, source: Source, *records: dict[str, Any]) -> list[str | None]:
    judged = judged_records(landed(spark, source, *records), source).collect()
    assert len(judged) == len(records)
    found = {int(row.original): row.reason for row in judged if row.reason is not None}
    assert all(row.original is None for row in judged if row.reason is None)
    return [found.get(i) for i in range(len(records))]


def accepted_of(spark: SparkSession, source: Source, *records: dict[str, Any]) -> list[Row]:
    judged = judged_records(landed(spark, source, *records), source).collect()
    assert [row.reason for row in judged if row.reason is not None] == []
    return judged


def values_of(spark: SparkSession, name: str, kind: str, texts: Iterable[str]) -> dict[str, Any]:
    """A column's value of each text, in one job; None where the record is of the wrong type."""
    source, of_texts = source_of(columns=COLUMNS | {name: kind}), list(texts)
    records = landed(spark, source, *[GOOD | {name: text} for text in of_texts])
    rows = judged_records(records.withColumn("number", F.col("original")), source, ["number"])
    found = {of_texts[int(row.number)]: row for row in rows.collect()}
    for row in found.values():
        assert row.reason == (f"wrong_type: {name}" if row[name] is None else None)
    return {text: row[name] for text, row in found.items()}


def ms(*parts: int) -> int:
    return int(datetime(*parts, tzinfo=UTC).timestamp() * 1000)  # type: ignore[misc, arg-type]


def test_every_rule_that_a_record_breaks_has_its_reason(spark: SparkSession) -> None:
    """Rules A6 and A7."""
    cases: list[tuple[dict[str, Any], str | None]] = [
        ({}, None),
        ({"malformed": True}, "malformed"),
        ({"id": None}, "null_key"),
        ({"id": ""}, "null_key"),
        ({"at": None}, "null_event_time"),
        ({"at": "soon"}, "unreadable_event_time"),
        ({"at": "2013-02-30T00:00:00Z"}, "unreadable_event_time"),
        ({"came": None}, "null_arrival"),
        ({"came": "later"}, "unreadable_arrival"),
        ({"whole": "many"}, "wrong_type: whole"),
        ({"whole": "1.5"}, "wrong_type: whole"),
        ({"whole": "9223372036854775808"}, "wrong_type: whole"),
        ({"real": "x", "flag": "perhaps"}, "wrong_type: real"),
        ({"flag": "perhaps"}, "wrong_type: flag"),
        ({"day": "2013-13-01"}, "wrong_type: day"),
        ({"day": "2013-01-01Tjunk"}, "wrong_type: day"),
        ({"at": "2013-01-01T12:00:00.001Z"}, "too_far_ahead"),
        ({"at": "2013-01-01T12:00:00Z"}, None),
    ]
    found = reasons(spark, source_of(), *[GOOD | change for change, _ in cases])
    assert found == [reason for _, reason in cases]


def test_the_first_reason_that_applies_is_given(spark: SparkSession) -> None:
    """Rule A6: a record that breaks all rules, fixed rule by rule."""
    broken = {"malformed": True, "id": None, "at": None, "came": None, "whole": "x"}
    fixes: list[dict[str, Any]] = [
        {},
        {"malformed": False},
        {"id": "a"},
        {"at": "soon"},
        {"at": "2014-01-01"},
        {"came": "later"},
        {"came": "2013-01-01"},
        {"whole": "1"},
    ]
    records: list[dict[str, Any]] = []
    for fix in fixes:
        broken = broken | fix
        records.append(broken)
    assert reasons(spark, source_of(), *records) == [
        "malformed",
        "null_key",
        "null_event_time",
        "unreadable_event_time",
        "null_arrival",
        "unreadable_arrival",
        "wrong_type: whole",
        "too_far_ahead",
    ]


def test_without_arrival_time_the_end_of_the_arrival_units_day_bounds_event_time(
    spark: SparkSession,
) -> None:
    """Rule A7: the arrival unit's day ends at midnight UTC, max_ahead is an hour."""
    last, beyond = GOOD | {"at": "2013-01-02T01:00:00Z"}, GOOD | {"at": "2013-01-02T01:00:00.001Z"}
    assert reasons(spark, source_of(arrival=None), last, beyond) == [None, "too_far_ahead"]
    numbered = source_of(arrival="whole")
    records = [last | {"whole": "1"}, beyond | {"whole": "2"}, last]
    assert reasons(spark, numbered, *records) == [None, "too_far_ahead", "null_arrival"]


def test_event_time_is_whole_milliseconds_utc_rounded_down(spark: SparkSession) -> None:
    cases = {
        "2013-01-01T10:00:00Z": ms(2013, 1, 1, 10),
        "2013-01-01T10:00:00.999+02:00": ms(2013, 1, 1, 8) + 999,
        "2013-01-01 10:00:00.123999": ms(2013, 1, 1, 10) + 123,
        "1969-12-31T23:59:59.9995Z": -1,
        "2013-01-01": ms(2013, 1, 1),
    }
    rows = accepted_of(spark, source_of(), *[GOOD | {"at": text} for text in cases])
    assert sorted(row["_event_time_ms"] for row in rows) == sorted(cases.values())


def test_a_text_without_a_full_date_is_no_time(spark: SparkSession) -> None:
    """Spark's own cast would take 12:30 as half past twelve on the day of the run."""
    texts = ("12:30", "T12:30:00Z", "2013", "20130101", "1357034400000", "")
    found = reasons(spark, source_of(), *[GOOD | {"at": text} for text in texts])
    assert all(str(reason).startswith("unreadable_event_time") for reason in found)


def test_a_bigint_event_time_is_milliseconds_that_a_timestamp_can_hold(
    spark: SparkSession,
) -> None:
    source = source_of(columns=COLUMNS | {"at": "bigint"})
    assert accepted_of(spark, source, GOOD | {"at": "-5"})[0]["_event_time_ms"] == -5
    beyond = [GOOD | {"at": f"{sign}9300000000000000"} for sign in ("", "-")]
    assert reasons(spark, source, *beyond) == ["unreadable_event_time"] * 2


def test_accepted_records_are_typed_under_the_names_of_their_roles(spark: SparkSession) -> None:
    rest = {"whole": "5.0", "real": "-0.0", "flag": "true", "day": "2013-01-03"}
    (row,) = accepted_of(spark, source_of(), GOOD | rest)
    assert row.asDict() == {
        "arrival_unit": DAY,
        "source_partition": "0",
        "key": "a",
        "_event_time_ms": ms(2013, 1, 1, 10),
        "came": datetime(2013, 1, 1, 11),
        "file": "f",
        "whole": 5,
        "real": 0.0,
        "flag": True,
        "day": date(2013, 1, 3),
        "reason": None,
        "original": None,
    }
    assert str(row.real) == "0.0"


DECIMALS = {
    "1.50": "1.50",
    "-0.1": "-0.10",
    "+7": "7.00",
    ".5": "0.50",
    "5.": "5.00",
    " 3.25 ": "3.25",
    "999.99": "999.99",
    "-999.9900": "-999.99",
    "1.5E2": "150.00",
    "1.5e-1": "0.15",
    "1200e-4": "0.12",
    "00001": "1.00",
    "0.000": "0.00",
    "-0e-99": "0.00",
    "1.005": None,
    "0.001": None,
    "1.5e-2": None,
    "999.999": None,
    "1000": None,
    "1e3": None,
    "1e999": None,
    "1e-999999999": None,
    "0.1" + "0" * 60 + "1": None,
    "": None,
    ".": None,
    "e5": None,
    "NaN": None,
    "Infinity": None,
    "1,5": None,
    "0x1": None,
    "1d": None,
}


def test_a_decimal_is_exact_or_of_the_wrong_type(spark: SparkSession) -> None:
    """Rule G2: too many digits before or after the point are refused, never rounded."""
    found = values_of(spark, "amount", "decimal(5,2)", DECIMALS)
    shown = {text: None if value is None else str(value) for text, value in found.items()}
    assert shown == DECIMALS


def test_null_values_are_records_and_so_are_floats_that_are_no_numbers(
    spark: SparkSession,
) -> None:
    """Rule A6: a null value is a record."""
    plain, nan = accepted_of(spark, source_of(), GOOD, GOOD | {"real": "NaN"})
    assert (plain.whole, plain.real, plain.flag, plain.day) == (None, None, None, None)
    assert str(nan.real) == "nan"


def test_a_declared_source_partition_is_text_and_must_be_there(spark: SparkSession) -> None:
    source = source_of(source_partition="whole")
    (row,) = accepted_of(spark, source, GOOD | {"whole": "12"})
    assert row.source_partition == "12"
    assert "whole" not in row.asDict()
    records = [GOOD, GOOD | {"whole": "x"}]
    assert reasons(spark, source, *records) == ["null_source_partition", "wrong_type: whole"]


def test_a_session_in_another_time_zone_is_refused(spark: SparkSession) -> None:
    other = spark.newSession()
    other.conf.set("spark.sql.session.timeZone", "America/New_York")
    with pytest.raises(ValueError, match=r"timeZone must be 'UTC', .* is 'America/New_York'"):
        judged_records(landed(other, source_of(), GOOD), source_of())


WHOLE_NUMBERS = {
    "9007199254740993.0": 9007199254740993,
    "9007199254740993": 9007199254740993,
    "9.007199254740993e15": 9007199254740993,
    "-9223372036854775808.000": -(2**63),
    "1.0E7": 10_000_000,
    "+5": 5,
    "0.0e9": 0,
    "50e-1": None,
    "4503599627370497.3": None,
    "1700000000000.0001": None,
    "9223372036854775808.0": None,
    "1e400": None,
    "1e-1": None,
    "7d": None,
    "7f": None,
    "7L": None,
    "0x10": None,
    "NaN": None,
    "1_000": None,
}


def test_a_whole_number_is_taken_by_every_digit(spark: SparkSession) -> None:
    assert values_of(spark, "whole", "bigint", WHOLE_NUMBERS) == WHOLE_NUMBERS


DOUBLES = {
    "1.5": 1.5,
    ".5": 0.5,
    "5.": 5.0,
    "-1e308": -1e308,
    "5e-324": 5e-324,
    "0e999": 0.0,
    "Infinity": float("inf"),
    "-inf": float("-inf"),
    "1d": None,
    "1f": None,
    "0x1p3": None,
    "1e400": None,
    "-1e400": None,
    "1" + "0" * 400: None,
    "1e-400": None,
    "0." + "0" * 400 + "1": None,
}


def test_a_double_is_infinite_or_zero_only_where_its_text_says_so(spark: SparkSession) -> None:
    assert values_of(spark, "real", "double", DOUBLES) == DOUBLES


def test_an_event_time_is_compared_with_the_end_of_the_day_too(spark: SparkSession) -> None:
    """Rule A7: a record's own arrival time may be as wrong as its event time."""
    far = {"at": "2013-01-02T01:00:00.001Z", "came": "2013-01-02T01:00:00Z"}
    near = {"at": "2013-01-02T01:00:00Z", "came": "2013-01-02T01:00:00Z"}
    assert reasons(spark, source_of(), GOOD | far, GOOD | near) == ["too_far_ahead", None]


def test_a_number_in_place_of_a_timestamp_is_named(spark: SparkSession) -> None:
    kinds = {
        "1357034400": "seconds: declare timestamp_s",
        "1357034400.25": "seconds: declare timestamp_s",
        "1357034400000": "milliseconds: declare timestamp_ms",
        "1357034400000000": "microseconds: declare timestamp_us",
        "1357034400000000000": "nanoseconds: declare timestamp_ns",
    }
    for name, what in (("at", "event_time"), ("came", "arrival")):
        found = reasons(spark, source_of(), *[GOOD | {name: text} for text in kinds])
        assert found == [f"unreadable_{what}: looks like epoch {kind}" for kind in kinds.values()]


NUMBERS = [
    # As `time.time()` prints it, and as programs print numbers that were divided.
    ("timestamp_s", "1793491200.1234567", 1_793_491_200_123_456),
    ("timestamp_s", "1793491200.999999999999999999", 1_793_491_200_999_999),
    ("timestamp_s", " 1.7934912001234567e9 ", 1_793_491_200_123_456),
    ("timestamp_s", "-0.0000001", -1),
    ("timestamp_s", "253402300799.9999999", 253_402_300_799_999_999),
    ("timestamp_s", "253402300800", None),
    ("timestamp_ms", "1793491200123.4567", 1_793_491_200_123_456),
    ("timestamp_us", "1793491200123456.999", 1_793_491_200_123_456),
    ("timestamp_ns", "1793491200123456789.5", 1_793_491_200_123_456),
    ("timestamp_ns", "999.99999999999999", 0),
    ("timestamp_ns", "-1", -1),
    ("timestamp_ns", "8999999999999999999", 8_999_999_999_999_999),
    ("timestamp_ns", "9223372036854775808", 9_223_372_036_854_775),
    ("timestamp_ns", "99999999999999999999999", None),
    ("timestamp_s", "1793491200,5", None),
    ("timestamp_s", "9" * 60, None),
]


def test_a_number_since_1970_is_rounded_down_to_microseconds(spark: SparkSession) -> None:
    """Rule A6: an instant of the years that a timestamp holds, or the wrong type."""
    columns = {f"sent_{number}": kind for number, (kind, *_) in enumerate(NUMBERS)}
    source = source_of(columns=COLUMNS | columns)
    records = [GOOD | {f"sent_{number}": text} for number, (_, text, _) in enumerate(NUMBERS)]
    numbered = landed(spark, source, *records).withColumn("number", F.col("original"))
    judged = judged_records(numbered, source, ["number"])
    micros = [F.unix_micros(name).alias(name) for name in columns]
    for row in judged.select("number", "reason", *micros).collect():
        wanted, name = NUMBERS[int(row.number)][2], f"sent_{row.number}"
        assert row[name] == wanted
        assert row.reason == (None if wanted is not None else f"wrong_type: {name}")
