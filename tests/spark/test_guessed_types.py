"""What `new` guesses of a column, a run accepts: the same texts, with the same times (A6)."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import pyarrow as pa
from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as F

from windows_pipeline.config.source import Source
from windows_pipeline.sources.validation import judged_records
from windows_pipeline.starter.types import guess_type

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
COLUMNS: dict[str, list[str]] = {
    "iso_time": [
        *("2026-03-08", "2026-3-8 1:2:3", "2026-03-08T10:11", "2026-03-08 10:11:12.5"),
        *("2026-03-08T10:11:12.123456789Z", "2026-03-08T10:11:12+02:00", " 2026-03-08T10:11:12 "),
        *("2026-03-08T10:11:12-0930", "2026-03-08T10:11:12+02", "2200-12-31T23:59:59.999999Z"),
        "1600-02-29T00:00:00.000001Z",
    ],
    "seconds_ts": ["1772928000", "1772928000.25", "1.772928e9", "1772928000.", "631152001"],
    "ms_ts": ["1772928000000", "1772928000123", "1.772928000001e12", "1772928000000.5"],
    "us_ts": ["1772928000000000", "1772928000000001"],
    "ns_ts": ["1772928000000000000", "1772928000000001999"],
    "flag": ["true", "FALSE", " True "],
    "whole": ["0", "-5", "+7", " 12 ", "999999999999999999"],
    "amount": ["0.10", "-12.50", "+3.25", "99999999.99", ".50"],
    "long_number": ["12345678901234567.25", "-0.5"],
    "number": ["1.5", ".5", "5.", "1e-3", "-2.5E+10", "NaN", "Infinity", "-inf", "0.0", "7"],
    "day": ["2026-03-08", "2026-3-8", "1600-02-29"],
    "code": ["007", "12"],
    "german": ["24.10.2026 00:00:00", "01.02.2026 23:59:59"],
    "us": ["10/24/2026 1:02 PM", "1/2/2026 12:00 AM", "12/31/2026 12:59 pm"],
    "logged": ["2026-10-24 01:02:03,5", "2026-10-24 01:02:03,000001"],
    "on": ["24.10.2026", "1.2.2026"],
    "comma": ["1,5", "-20,25", "7", "1,5E3"],
    "thousands": ["1.234,5", "-1.234.567", "0,25"],
    "pieces": ["1,234,567", "-12"],
    "fare": ["1 234,50", "0,25"],
}


def judged(spark: SparkSession, texts: list[str], columns: dict[str, object]) -> dict[str, Row]:
    """What the reader of a run says of records with these texts in the column `v`, by the text."""
    fields = {"path": "data", "format": "csv", "key": "k", "event_time": "t"}
    declared = {"k": "string", "t": "timestamp", **columns}
    source = Source.model_validate({**fields, "columns": declared})
    distinct = list(dict.fromkeys(texts))
    rows = [(date(2026, 3, 8), "f", "", False, "a", "2026-03-08", text) for text in distinct]
    schema = "arrival_unit date, file string, original string, malformed boolean"
    landed = spark.createDataFrame(rows, f"{schema}, k string, t string, v string")
    landed = landed.withColumn("text", F.col("v"))
    return {row.text: row for row in judged_records(landed, source, ["text"]).collect()}


def test_guessed_types_accept_what_they_were_guessed_from(spark: SparkSession) -> None:
    for name, texts in COLUMNS.items():
        guess = guess_type(name, pa.array(texts))
        found = judged(spark, texts, {"v": guess.declared})
        assert {text: row.reason for text, row in found.items() if row.reason} == {}, guess.type
        if guess.times is None:
            continue
        for position, text in enumerate(texts):
            value = found[text].v
            if isinstance(value, datetime):
                micros = (value.astimezone(UTC) - EPOCH) // timedelta(microseconds=1)
            else:
                micros = (value - EPOCH.date()).days * 86_400_000_000
            assert guess.times[position].astype(int) == micros, text


def test_every_kind_of_guess_is_tried() -> None:
    kinds = {guess_type(name, pa.array(texts)).type for name, texts in COLUMNS.items()}
    assert kinds == {
        *("timestamp", "date", "timestamp_s", "timestamp_ms", "timestamp_us", "timestamp_ns"),
        *("boolean", "bigint", "decimal(18,2)", "decimal(38,2)", "double", "string"),
    }
