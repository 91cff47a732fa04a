"""Checks of a pipeline's own find the rows that Great Expectations' expectations would find."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import yaml
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tests.unit.test_config_own_checks import PORTABLE
from windows_pipeline.checks.own_checks import own_checks_of_records
from windows_pipeline.checks.run import (
    Batch,
    Check,
    CheckResult,
    Within,
    validate,
    with_verdicts,
)
from windows_pipeline.config import Pipeline, load_pipeline
from windows_pipeline.config.expectations.values import text_sql
from windows_pipeline.storage.tables import source_tables

DAYS = [date(2026, 11, 1), date(2026, 11, 2), date(2026, 11, 3)]
"""The last of them has no record."""
COLUMNS = {
    "k": "string",
    "t": "bigint",
    "name": "string",
    "whole": "bigint",
    "other": "bigint",
    "real": "double",
    "exact": "decimal(12,2)",
    "flag": "boolean",
    "day": "date",
    "at": "timestamp",
}
NOON = datetime(2026, 11, 1, 12, tzinfo=UTC)
RECORDS: list[tuple[Any, ...]] = [
    # name, whole, other, real, exact, flag, day, at
    ("AA", 1, 1, 0.5, Decimal("0.10"), True, DAYS[0], NOON),
    ("B'", 2, 1, -0.0, Decimal("10.00"), False, DAYS[1], NOON.replace(hour=13)),
    ("é{x}", 2**53 + 1, 2**53, float("nan"), Decimal("-7.35"), None, None, None),
    ("", -5, None, float("inf"), None, True, DAYS[0], NOON),
    (None, None, None, None, Decimal("0.11"), True, DAYS[2], None),
    ("😀a", 3, 4, float("-inf"), Decimal("99.99"), False, DAYS[0], NOON.replace(hour=1)),
    ("AA", 1, None, 1e300, Decimal("0.10"), True, DAYS[1], NOON),
    ("$x", 7, 7, 0.1, Decimal("5.00"), None, DAYS[1], NOON.replace(minute=1)),
]
CHECKS: list[tuple[str, dict[str, Any]]] = [
    ("expect_column_values_to_not_be_null", {"column": "name"}),
    ("expect_column_values_to_not_be_null", {"column": "other", "mostly": 0.5}),
    ("expect_column_values_to_not_be_null", {"column": "other", "mostly": 0.8}),
    ("expect_column_values_to_be_null", {"column": "flag"}),
    ("expect_column_values_to_be_between", {"column": "whole", "min_value": 1, "max_value": 7}),
    ("expect_column_values_to_be_between", {"column": "whole", "min_value": 2**53}),
    (
        "expect_column_values_to_be_between",
        {"column": "whole", "min_value": 1, "max_value": 7, "strict_min": True, "strict_max": True},
    ),
    ("expect_column_values_to_be_between", {"column": "real", "min_value": 0.1}),
    ("expect_column_values_to_be_between", {"column": "real", "max_value": 1e299}),
    ("expect_column_values_to_be_between", {"column": "exact", "max_value": 0.1}),
    ("expect_column_values_to_be_between", {"column": "exact", "min_value": 0.11, "mostly": 0.5}),
    ("expect_column_values_to_be_between", {"column": "day", "max_value": DAYS[1]}),
    (
        "expect_column_values_to_be_between",
        {"column": "at", "min_value": NOON, "max_value": NOON, "strict_max": True},
    ),
    ("expect_column_values_to_be_in_set", {"column": "name", "value_set": ["AA", "B'", "é{x}"]}),
    ("expect_column_values_to_be_in_set", {"column": "whole", "value_set": [1, 2]}),
    ("expect_column_values_to_be_in_set", {"column": "flag", "value_set": [True]}),
    ("expect_column_values_to_be_in_set", {"column": "day", "value_set": [DAYS[0]]}),
    ("expect_column_values_to_not_be_in_set", {"column": "name", "value_set": ["", "$x"]}),
    ("expect_column_values_to_match_regex", {"column": "name", "regex": "^[A-Z]+"}),
    (
        "expect_column_values_to_match_regex",
        {"column": "name", "regex": r"[{']|^\$", "mostly": 0.3},
    ),
    ("expect_column_values_to_not_match_regex", {"column": "name", "regex": "a|'$"}),
    (
        "expect_column_value_lengths_to_be_between",
        {"column": "name", "min_value": 1, "max_value": 2},
    ),
    ("expect_column_value_lengths_to_equal", {"column": "name", "value": 2}),
    (
        "expect_column_pair_values_a_to_be_greater_than_b",
        {"column_A": "whole", "column_B": "other"},
    ),
    (
        "expect_column_pair_values_a_to_be_greater_than_b",
        {"column_A": "whole", "column_B": "other", "or_equal": True, "mostly": 0.75},
    ),
    ("expect_column_pair_values_to_be_equal", {"column_A": "whole", "column_B": "other"}),
    ("expect_column_values_to_be_unique", {"column": "at"}),
    ("expect_column_values_to_be_unique", {"column": "t"}),
    ("expect_compound_columns_to_be_unique", {"column_list": ["name", "whole"]}),
    ("expect_compound_columns_to_be_unique", {"column_list": ["name", "exact", "day"]}),
    (
        "expect_column_unique_value_count_to_be_between",
        {"column": "name", "min_value": 5, "max_value": 6},
    ),
    ("expect_column_unique_value_count_to_be_between", {"column": "flag", "min_value": 3}),
    ("expect_table_row_count_to_be_between", {"min_value": 8, "max_value": 8}),
    ("expect_table_row_count_to_be_between", {"max_value": 7}),
]
OF_DAYS = {
    "expect_column_values_to_be_unique",
    "expect_compound_columns_to_be_unique",
    "expect_column_unique_value_count_to_be_between",
    "expect_table_row_count_to_be_between",
}


def declared(folder: Path, checks: Mapping[str, object]) -> Pipeline:
    text = {
        "name": "own",
        "source": {
            "path": "data", "format": "jsonl", "columns": COLUMNS, "key": "k", "event_time": "t",
        },
        "partitions": {"start": DAYS[0]},
        "checks": checks,
        "windows": {"w": {"kind": "tumbling", "size": "1 day", "grace": "0 ms"}},
    }  # fmt: skip
    file = folder / "own.yaml"
    # Days and times as text, as YAML's aliases of them would be refused.
    plain = json.loads(json.dumps(text, default=lambda day: day.isoformat()))
    file.write_text(yaml.safe_dump(plain, allow_unicode=True, sort_keys=False))
    return load_pipeline(file)


def raw_events(spark: SparkSession, folder: Path, days: list[date]) -> DataFrame:
    """The records, in each of some days, as rows of raw_events."""
    schema = source_tables(declared(folder, {}), str(folder)).raw_events.schema
    names = ("name", "whole", "other", "real", "exact", "flag", "day", "at")
    rows = [
        {
            "arrival_unit": day,
            "source_partition": "0",
            "offset": offset,
            "key": "a",
            "event_time": datetime.fromtimestamp(offset / 1000, UTC),
            "running_max": datetime.fromtimestamp(offset / 1000, UTC),
            **dict(zip(names, values, strict=True)),
        }
        for day in days
        for offset, values in enumerate(RECORDS)
    ]
    return spark.createDataFrame(rows, schema)


def checked(
    spark: SparkSession, folder: Path, checks: Mapping[str, object], days: list[date]
) -> dict[str, CheckResult]:
    own = own_checks_of_records(declared(folder, checks))
    batches = own.batches(raw_events(spark, folder, days), days)
    return {result.check.name: result for result in validate(list(batches))}


def by_great_expectations(rows: DataFrame) -> list[Any]:
    """The results of Great Expectations' own expectations, on the columns as they are declared."""
    import great_expectations as gx  # once `checks.run` has said that it reports to no one
    from great_expectations import expectations

    context = gx.get_context(mode="ephemeral")
    asset = context.data_sources.add_spark("plain", persist=False).add_dataframe_asset("rows")
    batch = asset.get_batch(asset.build_batch_request({"dataframe": rows}))
    named = {
        name: getattr(expectations, "".join(map(_capital, name.split("_")))) for name, _ in CHECKS
    }
    suite = gx.ExpectationSuite(
        "own",
        expectations=[
            named[name](**arguments, meta={"number": number})
            for number, (name, arguments) in enumerate(CHECKS)
        ],
    )
    found = batch.validate(suite, result_format="BASIC").results
    return sorted(found, key=lambda result: result.expectation_config.meta["number"])


def _capital(part: str) -> str:
    return part[:1].upper() + part[1:]


def test_each_expectation_finds_what_great_expectations_finds(
    spark: SparkSession, tmp_path: Path
) -> None:
    day = DAYS[:1]
    checks = {f"c{number}": {name: arguments} for number, (name, arguments) in enumerate(CHECKS)}
    own = checked(spark, tmp_path, checks, day)
    rows = raw_events(spark, tmp_path, day).withColumns(
        {"k": F.col("key"), "t": F.unix_millis("event_time")}
    )
    theirs = by_great_expectations(rows)
    assert len(own) == len(theirs) == len(CHECKS)
    for number, ((name, arguments), result) in enumerate(zip(CHECKS, theirs, strict=True)):
        case = (name, arguments, result)
        mine = own[f"c{number}"]
        assert not (result.exception_info or {}).get("raised_exception"), case
        assert mine.passed == result.success, case
        if name not in OF_DAYS and arguments.get("mostly", 1) == 1:
            assert mine.failing_rows == result.result["unexpected_count"], case
    assert {result.success for result in theirs} == {True, False}


def test_days_are_judged_one_by_one(spark: SparkSession, tmp_path: Path) -> None:
    """Rule H1: the same whatever days a run has; a day without a record is judged, too."""
    checks = {
        "once": {"expect_column_values_to_be_unique": {"column": "t"}},
        "twice": {"expect_column_values_to_be_unique": {"column": "whole"}},
        "some": {"expect_table_row_count_to_be_between": {"min_value": 1}},
        "real": {
            "where": "flag",
            "expect_table_row_count_to_be_between": {"min_value": 4, "max_value": 4},
        },
        "mostly": {"expect_column_values_to_not_be_null": {"column": "other", "mostly": 0.7}},
    }
    found = checked(spark, tmp_path, checks, DAYS[:2])
    rows = raw_events(spark, tmp_path, DAYS[:2])
    batches = own_checks_of_records(declared(tmp_path, checks)).batches(rows, DAYS)
    with_empty = {result.check.name: result for result in validate(list(batches))}
    assert {name: result.failing_rows for name, result in found.items()} == {
        "once": 0, "twice": 2, "some": 0, "real": 0, "mostly": 2,
    }  # fmt: skip
    assert {name: result.failing_rows for name, result in with_empty.items()} == {
        "once": 0, "twice": 2, "some": 1, "real": 1, "mostly": 2,
    }  # fmt: skip
    assert with_empty["some"].sample == [
        {"arrival_unit": "2026-11-03", "check": "some", "found": "rows 0", "is_broken": "True"}
    ]
    assert [row["found"] for row in found["mostly"].sample] == ["judged 8, failing 3"] * 2


def test_a_condition_fails_where_it_is_false(spark: SparkSession, tmp_path: Path) -> None:
    """As in a CHECK of SQL, a row for which it is unknown passes."""
    checks = {
        "positive": {"that": "whole > 0"},
        "named": {"where": "whole > 0", "that": "name is not null and name <> ''"},
        "either": {"that": "exact >= 0 or name = 'é{x}'"},
        # An overflow is unknown, too: a record's value never stops a run.
        "large": {"that": "whole * 999999999999999999 * 10 + other > abs(whole) / other"},
        "least": {"that": "abs(0 - 999999999999999999 * 9 - 223372036854775817) < 0"},
        "cast": {"that": "cast(real as bigint) >= 0"},
    }
    found = checked(spark, tmp_path, checks, DAYS[:1])
    assert {name: result.failing_rows for name, result in found.items()} == {
        "positive": 1, "named": 0, "either": 0, "large": 0, "least": 0, "cast": 0,
    }  # fmt: skip
    (shown,) = found["positive"].sample
    assert (shown["arrival_unit"], shown["offset"], shown["whole"]) == ("2026-11-01", "3", "-5")
    assert "flag" not in shown


def test_great_expectations_judges_the_rows_themselves(spark: SparkSession) -> None:
    """A row that is spoiled after our own condition has judged it fails, and so does a verdict."""
    checks = [
        Check("length", "", "first > last", within=Within("last - first", 10, 10)),
        Check("not_empty", "", "n IS NULL", within=Within("n", least=1)),
        Check("apart", "", "first = 40"),
    ]
    rows = spark.createDataFrame(
        [(0, 10, 1), (20, 30, 2), (30, 40, 3)], "first int, last int, n int"
    )
    verdicts = with_verdicts(rows, checks)
    sound = Batch("rows", rows, checks, verdicts=verdicts)
    assert [result.passed for result in validate([sound])] == [True, True, True]
    assert {name for name in verdicts.columns if name.startswith("_value")} == {
        "_value_length", "_value_not_empty",
    }  # fmt: skip
    for column, spoiled, failing in [
        ("_value_length", 11, 0), ("_value_length", 9, 0),
        ("_value_not_empty", 0, 1), ("_fails_apart", True, 2),
    ]:  # fmt: skip
        changed = F.when(F.col("_value_not_empty") == 3, spoiled).otherwise(F.col(column))
        batch = Batch("rows", rows, checks, verdicts=verdicts.withColumn(column, changed))
        found = [result.failing_rows for result in validate([batch])]
        assert found == [int(number == failing) for number in range(3)], column


def test_java_reads_each_accepted_regular_expression(spark: SparkSession) -> None:
    """What loads can't fail in a run."""
    texts = spark.createDataFrame([("AB1",)], "text string")
    matched = [F.expr(f"text RLIKE {text_sql(regex)}").alias(regex) for regex in PORTABLE]
    assert len(texts.select(*matched).collect()[0]) == len(PORTABLE)
