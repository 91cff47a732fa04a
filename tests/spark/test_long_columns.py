"""Columns in the long form: derived, by a path, in a time zone, and from a day on (rule A6)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from windows_pipeline.config.source import Source
from windows_pipeline.sources.bad_files import BadFileError
from windows_pipeline.sources.landed_files import read_landed
from windows_pipeline.sources.landing import LandingFolder
from windows_pipeline.sources.validation import judged_records

DAY = date(2026, 3, 8)
NEXT = date(2026, 3, 9)
LARGEST = 2**63 - 1
BASE: dict[str, Any] = {
    "id": "string",
    "at": "timestamp",
    "whole": "bigint",
    "real": "double",
    "amount": "decimal(12,2)",
    "text": "string",
    "flag": "boolean",
    "day": "date",
}
GOOD = {"id": "a", "at": "2026-03-08T10:00:00Z"}


def source_of(columns: Mapping[str, Any], **fields: Any) -> Source:
    plain = {"path": "data", "format": "jsonl", "key": "id", "event_time": "at"}
    return Source.model_validate({**plain, "columns": dict(columns), **fields})


def landed(
    spark: SparkSession, source: Source, records: Iterable[Mapping[str, Any]], day: date = DAY
) -> DataFrame:
    rows = [
        (day, "f", str(number), False, *[record.get(name) for name in source.paths])
        for number, record in enumerate(records)
    ]
    declared = "".join(f", `{name}` string" for name in source.paths)
    schema = f"arrival_unit date, file string, original string, malformed boolean{declared}"
    return spark.createDataFrame(rows, schema)


def judged(
    spark: SparkSession, source: Source, records: Iterable[Mapping[str, Any]], day: date = DAY
) -> list[Row]:
    """The judged records, in their order."""
    numbered = landed(spark, source, records, day).withColumn("number", F.col("original"))
    rows = judged_records(numbered, source, ["number"]).collect()
    return sorted(rows, key=lambda row: int(row.number))


# A derived column's type, its expression, the record's fields, and its value, or None for null and
# `FAILS` for a rejected record.
FAILS = object()
LONG = "x" * 400_000
"""A text of which two fit into a text that an expression makes, and three do not."""
CASES: list[tuple[str, str, dict[str, str], object]] = [
    ("string", "concat(text, ':', id)", {"text": "x"}, "x:a"),
    ("string", "concat(id, '-', cast(whole as string))", {"whole": "7"}, "a-7"),
    ("string", "upper(substring(text, 2, 2))", {"text": "abcd"}, "BC"),
    ("string", "replace(trim(text), 'l', 'L')", {"text": " hello "}, "heLLo"),
    ("string", "coalesce(text, 'none')", {}, "none"),
    ("string", "replace(text, '', 'yy')", {"text": "x"}, "x"),
    ("string", "replace(text, id, 'yy')", {"text": "banana"}, "byynyynyy"),
    ("string", "replace(text, id, text)", {}, None),
    ("bigint", "length(replace(text, 'a', 'bc'))", {"text": f"a{LONG}"}, len(LONG) + 2),
    ("bigint", "length(replace(text, 'x', 'yyy'))", {"text": LONG}, FAILS),
    ("bigint", "length(replace(id, 'a', text))", {"text": LONG}, len(LONG)),
    ("bigint", "length(concat(text, text))", {"text": LONG}, 2 * len(LONG)),
    ("bigint", "length(concat(text, upper(concat(text, text))))", {"text": LONG}, FAILS),
    ("bigint", "if(flag, length(concat(text, text, text)), 0)", {"text": LONG, "flag": "false"}, 0),
    ("bigint", "length(text)", {"text": "äöü"}, 3),
    ("bigint", "whole + 1", {"whole": str(LARGEST)}, FAILS),
    ("bigint", "86400 * 1000 * 365", {}, 31_536_000_000),
    ("bigint", "whole % 4", {"whole": "-7"}, -3),
    ("double", "whole % 0", {"whole": "5"}, None),
    ("bigint", "whole / 2", {"whole": "5"}, FAILS),
    ("bigint", "whole / 2", {"whole": "6"}, 3),
    ("bigint", "ceil(real)", {"real": "NaN"}, FAILS),
    ("double", "real * 0", {"real": "-1"}, 0.0),
    ("decimal(12,2)", "amount * 1.19", {"amount": "100"}, Decimal("119.00")),
    ("decimal(12,2)", "amount * 1.19", {"amount": "0.01"}, FAILS),
    ("decimal(12,2)", "round(amount * 1.19, 2)", {"amount": "0.01"}, Decimal("0.01")),
    ("bigint", "cast(text as bigint)", {"text": "12"}, 12),
    ("bigint", "cast(text as bigint)", {"text": "9223372036854775808"}, FAILS),
    ("bigint", "cast(text as bigint)", {}, None),
    ("bigint", "try_cast(text as bigint)", {"text": "twelve"}, None),
    ("bigint", "if(text = '', 0, cast(text as bigint))", {"text": ""}, 0),
    ("bigint", "if(text = '', 0, cast(text as bigint))", {"text": "x"}, FAILS),
    ("bigint", "case when flag then whole + 1 else 0 end", {"flag": "false"}, 0),
    (
        "bigint",
        "case when flag then whole + 1 else 0 end",
        {"flag": "true", "whole": str(LARGEST)},
        FAILS,
    ),
    ("bigint", "coalesce(whole, cast(text as bigint))", {"whole": "1", "text": "x"}, 1),
    ("bigint", "coalesce(whole, cast(text as bigint))", {"text": "x"}, FAILS),
    ("boolean", "flag and cast(text as bigint) > 1", {"flag": "false", "text": "x"}, False),
    ("boolean", "flag and cast(text as bigint) > 1", {"flag": "true", "text": "x"}, FAILS),
    ("boolean", "text in ('x', 'y')", {"text": "y"}, True),
    ("boolean", "cast(text as boolean)", {"text": "perhaps"}, FAILS),
    ("bigint", "hour(from_utc_timestamp(at, 'America/New_York'))", {}, 6),
    ("date", "date(at)", {}, date(2026, 3, 8)),
    ("date", "cast(text as date)", {"text": "2026-03-08"}, date(2026, 3, 8)),
    ("date", "cast(text as date)", {"text": "2026-03-08x"}, FAILS),
    ("timestamp", "cast(text as timestamp)", {"text": "10:00"}, FAILS),
    ("timestamp", "cast(day as timestamp)", {"day": "2026-03-08"}, datetime(2026, 3, 8)),
    ("timestamp_ms", "whole * 1000", {"whole": "1772964000"}, datetime(2026, 3, 8, 10)),
    ("timestamp_s", "cast(text as bigint)", {"text": "1772964000"}, datetime(2026, 3, 8, 10)),
    ("timestamp_s", "whole", {"whole": str(LARGEST)}, FAILS),
    ("string", "cast(at as string)", {}, "2026-03-08 10:00:00"),
]


@pytest.mark.parametrize("start", range(0, len(CASES), 16))
def test_an_expression_has_its_value_or_rejects_the_record(spark: SparkSession, start: int) -> None:
    """Rule A6: nothing that one record holds ends a run."""
    cases = dict(enumerate(CASES[start : start + 16]))
    # A column for each case, which is computed of the case's own record alone.
    derived = {
        f"c{number}": {"type": kind, "as": f"case when n = {number} then {text} else null end"}
        for number, (kind, text, *_) in cases.items()
    }
    source = source_of(BASE | {"n": "bigint"} | derived)
    records = [GOOD | {"n": str(number)} | fields for number, (_, _, fields, _) in cases.items()]
    for number, row in enumerate(judged(spark, source, records)):
        wanted = cases[number][3]
        is_failed = wanted is FAILS
        assert row.reason == (f"failed_expression: c{number}" if is_failed else None), cases[number]
        assert row[f"c{number}"] == (None if is_failed else wanted), cases[number]


def test_a_text_that_grows_rejects_its_record_alone(spark: SparkSession) -> None:
    """Rule A6: 540 MB of a text of 20 letters would end the JVM."""
    columns: dict[str, Any] = dict(BASE)
    for name, inner in (("c1", "text"), ("c2", "c1"), ("c3", "c2")):
        columns[name] = {"type": "string", "as": f"concat({', '.join([inner] * 300)})"}
    rows = judged(spark, source_of(columns), [GOOD, GOOD | {"text": "x" * 20}])
    assert [row.reason for row in rows] == [None, "failed_expression: c2"]


def test_a_derived_column_with_a_role_gives_the_cause_of_a_rejection(spark: SparkSession) -> None:
    """Rule A6: not that the key is null, but why it is."""
    columns = {
        "pair": {"type": "string", "as": "concat(bank, ':', cast(card as string))"},
        "bank": "string",
        "card": "bigint",
        "ms": {"type": "timestamp_ms", "as": "cast(time as bigint) * 1000"},
        "time": "string",
        "zero": {"type": "double", "as": "card / 0"},
    }
    source = source_of(columns, key="pair", event_time="ms", arrival="event_time")
    good = {"bank": "b", "card": "7", "time": "1772964000"}
    cases: list[tuple[dict[str, str | None], str | None]] = [
        ({}, None),
        ({"card": "seven"}, "wrong_type: card"),
        ({"card": None}, "null_key"),
        ({"bank": None}, "null_key"),
        ({"time": None}, "null_event_time"),
        ({"time": "noon"}, "failed_expression: ms"),
        ({"time": "9223372036854775"}, "failed_expression: ms"),
        ({"time": "1773014401"}, None),
        ({"time": "1773500000"}, "too_far_ahead"),
    ]
    rows = judged(spark, source, [good | change for change, _ in cases])
    assert [row.reason for row in rows] == [reason for _, reason in cases]
    assert rows[0].key == "b:7"
    assert rows[0]["_event_time_ms"] == 1_772_964_000_000
    assert rows[0].zero is None


def test_an_empty_derived_key_is_no_key(spark: SparkSession) -> None:
    columns = BASE | {"name": {"type": "string", "as": "trim(text)"}}
    source = source_of(columns, key="name")
    rows = judged(spark, source, [GOOD | {"text": text} for text in ("  ", "x")])
    assert [row.reason for row in rows] == ["null_key", None]


def test_derived_columns_read_earlier_ones(spark: SparkSession) -> None:
    columns = {
        "one": {"type": "bigint", "as": "whole + 1"},
        "two": {"type": "bigint", "as": "one * one"},
        "text_of_two": {"type": "string", "as": "cast(two as string)"},
    }
    (row, failed) = judged(
        spark,
        source_of(BASE | columns, source_partition="text_of_two"),
        [GOOD | {"whole": "2"}, GOOD | {"whole": "4000000000"}],
    )
    assert (row.one, row.two, row.source_partition) == (3, 9, "9")
    assert failed.reason == "failed_expression: two"


# Local times of New York around the two changes of 2026, and what they mean in UTC.
LOCAL = [
    ("2026-03-08 01:59:59", "2026-03-08T06:59:59"),
    ("2026-03-08 02:00:00", None),
    ("2026-03-08T02:30:00", None),
    ("2026-03-08 02:59:59.999", None),
    ("2026-03-08 03:00:00", "2026-03-08T07:00:00"),
    ("2026-11-01 00:59:59", "2026-11-01T04:59:59"),
    ("2026-11-01 01:00:00", "2026-11-01T05:00:00"),
    ("2026-11-01 01:30:00", "2026-11-01T05:30:00"),
    ("2026-11-01 02:00:00", "2026-11-01T07:00:00"),
    ("2026-03-08", "2026-03-08T05:00:00"),
    ("2026-03-08T01:30", "2026-03-08T06:30:00"),
    ("2026-03-08T02:30:00Z", "2026-03-08T02:30:00"),
    ("2026-03-08T02:30:00+02:00", "2026-03-08T00:30:00"),
    ("2026-11-01T01:30:00-05:00", "2026-11-01T06:30:00"),
    ("2026-03-08 02:30:00 Europe/Berlin", "2026-03-08T01:30:00"),
    ("02:30:00", None),
    ("2026-03-08 25:00:00", None),
    ("+294247-01-10T04:00:54", None),
    ("+99999-01-01 00:00:00", None),
]


def test_a_text_without_an_offset_is_read_in_the_columns_zone(spark: SparkSession) -> None:
    """A local time that occurs twice is the first; one that does not occur is no instant."""
    zoned = {"local": {"type": "timestamp", "zone": "America/New_York"}}
    source = source_of(BASE | zoned)
    rows = judged(spark, source, [GOOD | {"local": text} for text, _ in LOCAL])
    for (text, wanted), row in zip(LOCAL, rows, strict=True):
        assert row.reason == (None if wanted else "wrong_type: local"), text
        assert row.local == (None if wanted is None else datetime.fromisoformat(wanted)), text


# Days on which zones changed their offset, by 23 hours back to 24 hours ahead.
SHIFTS = {
    "Europe/Berlin": [datetime(2025, 3, 30), datetime(2026, 10, 25)],
    "Australia/Lord_Howe": [datetime(2026, 4, 5), datetime(2026, 10, 4)],
    "America/Caracas": [datetime(2007, 12, 9)],
    "Antarctica/Casey": [datetime(2010, 3, 5)],
    "Pacific/Kwajalein": [datetime(1969, 9, 30), datetime(1993, 8, 20)],
}


def test_each_local_time_is_that_of_the_zone(spark: SparkSession) -> None:
    """Rule A6, against Python's own zones, every seven minutes of the days around changes."""
    texts = [
        (zone, (midnight + timedelta(minutes=7 * step, microseconds=step * 1_000)).isoformat(" "))
        for zone, changes in SHIFTS.items()
        for midnight in changes
        for step in range(-100, 400)
    ]
    for ambiguous in ("first", "later", "reject", None):
        choice = {} if ambiguous is None else {"ambiguous": ambiguous}
        zoned = {
            zone.replace("/", "_"): {"type": "timestamp", "zone": zone, **choice} for zone in SHIFTS
        }
        records = [GOOD | {zone.replace("/", "_"): text} for zone, text in texts]
        rows = judged(spark, source_of(BASE | zoned), records)
        for (zone, text), row in zip(texts, rows, strict=True):
            name, fold = zone.replace("/", "_"), int(ambiguous == "later")
            local = datetime.fromisoformat(text)
            both = {
                instant
                for each in (0, 1)
                if (instant := local.replace(tzinfo=ZoneInfo(zone), fold=each).astimezone(UTC))
                and instant.astimezone(ZoneInfo(zone)).replace(tzinfo=None) == local
            }
            is_rejected = len(both) == 2 and ambiguous == "reject"
            reason = f"wrong_type: {name}" if not both else None
            assert row.reason == (f"ambiguous_time: {name}" if is_rejected else reason), text
            assert row["_ambiguous"] == (len(both) == 2), text
            wanted = sorted(both)[-fold:][0].replace(tzinfo=None) if row.reason is None else None
            assert row[name] == wanted, (ambiguous, zone, text)


def test_a_role_gives_a_time_that_occurs_twice_as_the_reason(spark: SparkSession) -> None:
    """Rule A6: of the event time, the arrival, a key, and what is derived of such a time."""
    zoned = {"type": "timestamp", "zone": "Europe/Berlin", "ambiguous": "reject"}
    columns = {
        **dict.fromkeys(("at", "came", "id"), zoned),
        "hour": {"type": "bigint", "as": "hour(came)"},
    }
    source = source_of(columns, arrival="came", key="hour", source_partition="id")
    once = dict.fromkeys(("at", "came", "id"), "2026-10-25 01:59:59.9")
    twice = "2026-10-25T02:00:00"
    cases: list[tuple[dict[str, str], str | None, bool]] = [
        ({}, None, False),
        ({"at": twice}, "ambiguous_time: at", True),
        ({"came": twice}, "ambiguous_time: came", True),
        ({"id": twice}, "ambiguous_time: id", True),
        ({"at": f"{twice}Z", "came": f"{twice}+01:00"}, None, False),
        ({"came": f"{twice}.0000001"}, "ambiguous_time: came", True),
        ({"came": "noon", "id": twice}, "wrong_type: came", False),
    ]
    rows = judged(spark, source, [once | change for change, *_ in cases], date(2026, 10, 25))
    assert [(row.reason, row["_ambiguous"]) for row in rows] == [case[1:] for case in cases]


# Texts in the form of a pattern, with what they mean in ISO 8601; None if they are not in the form.
TIMES: dict[str, dict[str, str | None]] = {
    "dd.MM.yyyy HH:mm:ss": {
        "24.10.2026 13:05:59": "2026-10-24 13:05:59",
        " 29.02.2028 00:00:00 ": "2028-02-29 00:00:00",
        **dict.fromkeys(
            (
                *("32.01.2026 00:00:00", "29.02.2026 00:00:00", "24.13.2026 00:00:00"),
                *("24.10.2026 24:00:00", "24.10.2026 23:60:00", "24.10.2026 23:59:60"),
                *("1.2.2026 00:00:00", "01.2.2026 00:00:00", "24.10.26 00:00:00"),
                *("24.10.2026 00:00:00x", "24.10.2026 00:00:00 UTC", "24.10.2026 00:00:00Z"),
                *("24.10.2026 00:00:00.5", "24.10.2026 00:00", "24.10.2026", "24.10.2026T00:00:00"),
                *("2026-10-24 00:00:00", "24-10-2026 00:00:00", "24.10.2026  00:00:00", "", "1"),
                *("01.01.0000 00:00:00", "\u0662\u0664.10.2026 00:00:00"),
            )
        ),
    },
    "d/M/yyyy H:mm": {
        "1/2/2026 3:04": "2026-02-01 03:04:00",
        "01/02/2026 03:04": "2026-02-01 03:04:00",
        "001/2/2026 3:04": None,
        "1/2/2026 3:4": None,
    },
    "MM/dd/yyyy hh:mm:ss a": {
        "10/24/2026 12:00:01 AM": "2026-10-24 00:00:01",
        "10/24/2026 12:00:01 PM": "2026-10-24 12:00:01",
        "10/24/2026 01:00:01 pm": "2026-10-24 13:00:01",
        "10/24/2026 11:59:59 PM": "2026-10-24 23:59:59",
        "10/24/2026 11:59:59 am": "2026-10-24 11:59:59",
        "10/24/2026 00:00:00 AM": None,
        "10/24/2026 13:00:00 PM": None,
        "10/24/2026 1:00:00 PM": None,
        "10/24/2026 01:00:00": None,
    },
    "yyyyMMdd'T'HHmmss.SSSSSSXXX": {
        "20261024T130559.5Z": "2026-10-24 13:05:59.5",
        "20261024T130559.123456+02:00": "2026-10-24 11:05:59.123456",
        "20261024T130559.1234567Z": None,
        "20261024T130559.Z": None,
        "20261024T130559.5+19:00": None,
        "20261024T130559.5": None,
    },
    "yyyy\u5e74MM\u6708dd\u65e5": {"2026\u5e7410\u670824\u65e5": "2026-10-24 00:00:00"},
}
# Numbers with the signs of a column, and what they are; None if they are no such numbers.
NUMBERS: dict[tuple[str, str | None, str | None], dict[str, object]] = {
    ("double", ",", "."): {
        "21,5": 21.5,
        "-1.234.567,25": -1_234_567.25,
        "1234567,25": 1_234_567.25,
        "1.234": 1_234.0,
        "1,5E3": 1_500.0,
        ",5": 0.5,
        "-0": 0.0,
        "NaN": float("nan"),
        "-Infinity": float("-inf"),
        **dict.fromkeys(
            (
                "1.23",
                "1,234.5",
                "1.2345,6",
                "12.34.567",
                "1..234",
                "1 234",
                "1,2,3",
                ",",
                "",
                "0,5d",
            )
        ),
    },
    ("decimal(12,2)", ",", None): {"1,50": Decimal("1.50"), "-3": Decimal("-3.00"), "1.50": None},
    ("decimal(9,1)", ",", " "): {
        "1 234,5": Decimal("1234.5"),
        "1\u00a0234,5": Decimal("1234.5"),
        "1\u202f234,5": Decimal("1234.5"),
        "1 234,55": None,
        "1 23": None,
    },
    ("bigint", None, ","): {"1,234,567": 1_234_567, "12": 12, "1,234.0": 1_234, "1,23": None},
    ("bigint", ",", "."): {"1.234": 1_234, "1.234,0": 1_234, "1.234,5": None, "1,234": None},
    ("double", None, "'"): {"1'234.5": 1_234.5, "1\u2019234.5": 1_234.5, "1,234.5": None},
}


def with_cases(cases: Iterable[tuple[dict[str, Any], dict[str, Any]]]) -> tuple[Any, Any, Any]:
    """A column for the texts of each declaration: the columns, the records, what is expected."""
    columns, records, expected = dict[str, Any](BASE), [], []
    for number, (column, texts) in enumerate(cases):
        columns[f"c{number}"] = {field: value for field, value in column.items() if value}
        for text, wanted in texts.items():
            records.append(GOOD | {f"c{number}": text})
            expected.append((f"c{number}", text, wanted))
    return columns, records, expected


def test_texts_of_a_form_are_what_sparks_pattern_reads(spark: SparkSession) -> None:
    """Rule A6: any other text is rejected, also one of which a part is in the form."""
    of_times = [({"type": "timestamp", "format": form}, texts) for form, texts in TIMES.items()]
    columns, records, expected = with_cases(of_times)
    rows = judged(spark, source_of(columns), records)
    for row, (name, text, wanted) in zip(rows, expected, strict=True):
        assert row.reason == (None if wanted else f"wrong_type: {name}"), (name, text)
        assert row[name] == (wanted and datetime.fromisoformat(wanted)), (name, text)
    for form, texts in TIMES.items():
        meant = [(text.strip(), wanted) for text, wanted in texts.items() if wanted]
        frame = spark.createDataFrame(meant, "text string, wanted string")
        read = F.to_timestamp("text", form)
        assert frame.where(~read.eqNullSafe(F.col("wanted").cast("timestamp"))).collect() == []


def test_numbers_have_the_signs_of_their_column(spark: SparkSession) -> None:
    """Rule A6: a number with other signs is rejected, and never another number."""
    of_signs = [
        ({"type": kind, "decimal": decimal, "thousands": thousands}, texts)
        for (kind, decimal, thousands), texts in NUMBERS.items()
    ]
    columns, records, expected = with_cases(of_signs)
    for row, (name, text, wanted) in zip(
        judged(spark, source_of(columns), records), expected, strict=True
    ):
        assert row.reason == (f"wrong_type: {name}" if wanted is None else None), (name, text)
        assert str(row[name]) == str(wanted), (name, text)


def test_a_derived_column_reads_the_text_that_it_makes(spark: SparkSession) -> None:
    """Rule A6: as a text of the record in the same form, zone and type."""
    zoned = {"type": "timestamp", "as": "concat(text, ' ', id)", "zone": "Europe/Berlin"}
    columns = BASE | {
        "first": zoned | {"format": "dd.MM.yyyy HH:mm"},
        "once": zoned | {"format": "dd.MM.yyyy HH:mm", "ambiguous": "reject"},
        "on": {"type": "date", "as": "text", "format": "dd.MM.yyyy", "since": DAY},
        "cents": {"type": "bigint", "as": "first_digits", "thousands": ".", "decimal": ","},
        "first_digits": "string",
        "year_of": {"type": "bigint", "as": "year(first)"},
    }
    source = source_of(columns, key="first_digits")
    common = {"at": GOOD["at"], "first_digits": "1.234"}
    cases: list[tuple[dict[str, str], str | None, datetime | None]] = [
        ({"text": "24.10.2026", "id": "14:30"}, None, datetime(2026, 10, 24, 12, 30)),
        ({"text": "25.10.2026", "id": "02:30"}, "ambiguous_time: once", None),
        ({"text": "29.03.2026", "id": "02:30"}, "failed_expression: first", None),
        ({"text": "24.10.2026", "id": "24:00"}, "failed_expression: first", None),
        ({"id": "14:30"}, None, None),
    ]
    rows = judged(spark, source, [common | fields for fields, *_ in cases])
    assert [(row.reason, row["first"]) for row in rows] == [case[1:] for case in cases]
    assert [row["_ambiguous"] for row in rows] == [False, True, False, False, False]
    assert (rows[0].on, rows[0].cents, rows[0].year_of) == (date(2026, 10, 24), 1_234, 2026)


def test_a_column_is_null_before_its_day(spark: SparkSession) -> None:
    """Rule H1: whatever the records of earlier days hold."""
    columns = BASE | {
        "late": {"type": "bigint", "since": NEXT},
        "twice": {"type": "bigint", "as": "late * 2", "since": NEXT},
        "next": {"type": "bigint", "as": "cast(text as bigint)", "since": NEXT},
        "known": {"type": "boolean", "as": "late is null"},
    }
    source = source_of(columns)
    records = [GOOD | {"late": "4", "text": "x"}, GOOD | {"late": "many"}]
    before = judged(spark, source, records)
    assert [row.reason for row in before] == [None, None]
    assert [(row.late, row.twice, row.next, row.known) for row in before] == [
        (None, None, None, True)
    ] * 2
    after = judged(spark, source, [*records, GOOD | {"late": "4", "text": "5"}], NEXT)
    assert [row.reason for row in after] == ["failed_expression: next", "wrong_type: late", None]
    assert (after[2].late, after[2].twice, after[2].next, after[2].known) == (4, 8, 5, False)


NESTED = {
    "id": "string",
    "at": "timestamp_ms",
    "country": {"type": "string", "from": "$.card.country"},
    "limit": {"type": "decimal(38,18)", "from": "$.card.limits.day"},
    "odd": {"type": "string", "from": "$['a.b'][\"it's\"]"},
    "tags": {"type": "string", "from": "$.card.tags"},
}


def read_values(spark: SparkSession, root: Path, source: Source) -> list[Row]:
    rows = judged_records(
        read_landed(spark, source, LandingFolder(str(root)), LandingFolder(str(root)).files([DAY])),
        source,
        ["_line"],
    )
    return sorted(rows.collect(), key=lambda row: row["_line"])


def test_fields_within_fields_of_json_are_read(spark: SparkSession, tmp_path: Path) -> None:
    records: list[object] = [
        {
            "card": {"country": "DE", "limits": {"day": 1}, "tags": ["x", {"y": 1}]},
            "a.b": {"it's": "here"},
        },
        {"card": {"country": None, "limits": None}},
        {"card": None, "a.b": {}},
        {},
        {"card": "DE"},
        {"card": ["DE"]},
        {"card": {"country": {"code": "DE"}, "limits": 5}},
        {"card": {"Country": "DE", "country ": "FR"}},
    ]
    lines = [json.dumps({"id": "a", "at": 1, **record}) for record in records]  # type: ignore[dict-item]
    exact = "12345678901234567890.123456789012345678"
    lines.append(f'{{"id": "a", "at": 1, "card": {{"limits": {{"day": {exact}}}}}}}')
    folder = tmp_path / str(DAY)
    folder.mkdir()
    (folder / "a.jsonl").write_text("\n".join(lines))
    rows = read_values(spark, tmp_path, source_of(NESTED))
    assert [row.reason for row in rows] == [None] * len(lines)
    assert [(row.country, row.limit, row.odd) for row in rows] == [
        ("DE", Decimal(1), "here"),
        *[(None, None, None)] * 5,
        ('{"code":"DE"}', None, None),
        (None, None, None),
        (None, Decimal(exact), None),
    ]
    assert rows[0].tags == '["x",{"y":1}]'


def test_signs_are_those_of_texts_not_of_numbers(spark: SparkSession, tmp_path: Path) -> None:
    """Rule A6: 1.234 of JSON or Parquet is a number; the text '1.234' is in the column's form."""
    form = {"type": "double", "decimal": ",", "thousands": "."}
    columns = {"id": "string", "at": "timestamp_ms", "n": form, "m": {**form, "from": "$.o.m"}}
    folder = tmp_path / str(DAY)
    folder.mkdir()
    pairs = [("1.234", '"1.234"'), ("-12.5", '"-12,5"'), ("1.5e-7", '"1,5"'), ("7", '"~7"')]
    pairs += [('"12.5"', "1.0e300"), ("NaN", "null")]
    lines = [f'{{"id": "a", "at": 1, "n": {n}, "o": {{"m": {m}}}}}' for n, m in pairs]
    (folder / "a.jsonl").write_text("\n".join(lines))
    found = read_values(spark, tmp_path, source_of(columns))
    bad = "wrong_type: "
    assert [row.reason for row in found] == [None, None, None, f"{bad}m", f"{bad}n", None]
    assert [(row.n, row.m) for row in found[:3]] == [
        (1.234, 1_234.0),
        (-12.5, -12.5),
        (1.5e-7, 1.5),
    ]
    (folder / "a.jsonl").unlink()
    table = pa.table({"id": ["a"], "at": [1], "n": [1.234], "o": [{"m": "1.234"}]})
    pq.write_table(table, folder / "a.parquet")
    (row,) = read_values(spark, tmp_path, source_of(columns, format="parquet"))
    assert (row.n, row.m) == (1.234, 1_234.0)


def test_fields_of_structs_of_parquet_are_read(spark: SparkSession, tmp_path: Path) -> None:
    """A file that lacks a part of the path has null, as one that lacks a column."""
    folder = tmp_path / str(DAY)
    folder.mkdir()
    whole = [{"id": "a", "at": 1, "card": {"country": "DE", "limits": {"day": Decimal("1.5")}}}]
    pq.write_table(pa.Table.from_pylist(whole), folder / "a.parquet")
    pq.write_table(pa.Table.from_pylist([{"id": "a", "at": 1, "card": "DE"}]), folder / "b.parquet")
    pq.write_table(pa.Table.from_pylist([{"id": "a", "at": 1}]), folder / "c.parquet")
    rows = read_values(spark, tmp_path, source_of(NESTED, format="parquet"))
    assert [(row.reason, row.country, row.limit) for row in rows] == [
        (None, "DE", Decimal("1.5")),
        (None, None, None),
        (None, None, None),
    ]


def test_an_instant_of_parquet_keeps_its_meaning_in_a_zone(
    spark: SparkSession, tmp_path: Path
) -> None:
    """A timestamp in UTC is an instant; a local one, and a text, are of the column's zone."""
    folder = tmp_path / str(DAY)
    folder.mkdir()
    local = datetime(2026, 3, 8, 12)
    table = pa.table(
        {
            "id": ["a"],
            "at": pa.array([local.replace(tzinfo=UTC)], pa.timestamp("us", "UTC")),
            "wall": pa.array([local], pa.timestamp("us")),
            "text": ["2026-03-08 12:00:00"],
        }
    )
    pq.write_table(table, folder / "a.parquet")
    zoned = {"type": "timestamp", "zone": "America/New_York"}
    columns = {"id": "string", "at": zoned, "wall": zoned, "text": zoned}
    (row,) = read_values(spark, tmp_path, source_of(columns, format="parquet"))
    assert row["_event_time_ms"] == 1_772_971_200_000
    assert row.wall == row.text == datetime(2026, 3, 8, 16)


def test_csv_files_need_a_column_from_its_day_on(spark: SparkSession, tmp_path: Path) -> None:
    for day, text in ((DAY, "id,at\na,1\n"), (NEXT, "gate,id,at\nG1,a,1\n")):
        (tmp_path / str(day)).mkdir()
        (tmp_path / str(day) / "a.csv").write_text(text)
    columns = {"id": "string", "gate": {"type": "string", "since": NEXT}, "at": "timestamp_ms"}
    source = source_of(columns, format="csv")
    rows = judged_records(
        read_landed(
            spark,
            source,
            LandingFolder(str(tmp_path)),
            LandingFolder(str(tmp_path)).files([DAY, NEXT]),
        ),
        source,
    ).collect()
    assert sorted((row.arrival_unit, row.reason, row.gate) for row in rows) == [
        (DAY, None, None),
        (NEXT, None, "G1"),
    ]
    (tmp_path / str(NEXT) / "b.csv").write_text("id,at\na,1\n")
    with pytest.raises(BadFileError, match=r"2026-03-09/b.csv.*has no column 'gate'"):
        read_landed(
            spark,
            source,
            LandingFolder(str(tmp_path)),
            LandingFolder(str(tmp_path)).files([DAY, NEXT]),
        )
