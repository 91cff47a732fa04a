"""Checks of a pipeline's own find the rows and days that a slow, plain reading of them finds."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from fractions import Fraction
from math import isnan
from pathlib import Path
from typing import Any, cast

import dagster as dg
import pyarrow as pa
import pytest
import yaml
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tests.support.pipeline_texts import FLIGHTS, load_text
from windows_pipeline.checks.own_checks import own_checks_of_records
from windows_pipeline.checks.run import (
    Batch,
    Check,
    CheckResult,
    Within,
    judge,
    validate,
    verdicts_of,
    with_verdicts,
)
from windows_pipeline.checks.table_rules import raw_events_checks
from windows_pipeline.config import Pipeline, load_pipeline
from windows_pipeline.dagster.assets.checks import rules_evaluations
from windows_pipeline.storage.tables import tables_of

DAYS = [date(2026, 11, 1), date(2026, 11, 2), date(2026, 11, 3)]
"""The first has all records, the second half of them, the last none."""
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
NAMES = ("name", "whole", "other", "real", "exact", "flag", "day", "at")
NOON = datetime(2026, 11, 1, 12, tzinfo=UTC)
RECORDS: list[tuple[Any, ...]] = [
    ("AA", 1, 1, 0.0, Decimal("0.10"), True, DAYS[0], NOON),
    ("é{x}", 2**53 + 1, 2**53, float("nan"), Decimal("-7.35"), None, None, None),
    ("B'", 2, 1, -0.0, Decimal("10.00"), False, DAYS[1], NOON.replace(hour=13)),
    ("", -5, None, float("inf"), None, True, DAYS[0], NOON),
    (None, None, None, None, Decimal("0.11"), True, DAYS[2], None),
    ("😀a", 3, 4, float("nan"), Decimal("99.99"), False, DAYS[0], NOON.replace(hour=1)),
    ("AA", 1, None, 1e300, Decimal("0.10"), True, DAYS[1], NOON),
    ("$x", 7, 7, 0.1, Decimal("5.00"), None, DAYS[1], NOON.replace(minute=1)),
]
Record = Mapping[str, Any]
Holds = Callable[[Record], bool | None]


def every(_: Record) -> bool:
    """The `where` of a check that looks at each row, and the `that` of a rule of days."""
    return True


def flagged(row: Record) -> bool | None:
    """The `where: flag` of a check."""
    return cast(bool | None, row["flag"])


CASES: list[tuple[dict[str, Any], Holds, Holds]] = [
    # The check, its `where` and its `that` in Python.
    ({"that": "name is not null"}, every, lambda r: r["name"] is not None),
    (
        {"that": "whole between 1 and 7"},
        every,
        lambda r: None if r["whole"] is None else 1 <= r["whole"] <= 7,
    ),
    (
        {"where": "flag", "that": r"name in ('AA', 'B\'', 'é{x}')"},
        flagged,
        lambda r: None if r["name"] is None else r["name"] in ("AA", "B'", "é{x}"),
    ),
    ({"that": "whole <=> other"}, every, lambda r: r["whole"] == r["other"]),
    (
        {"that": "at <= '2026-11-01T12:00:00Z'"},
        every,
        lambda r: None if r["at"] is None else r["at"] <= NOON,
    ),
    *(
        (
            {"that": "whole > other", "mostly": share},
            every,
            lambda r: None if None in (r["whole"], r["other"]) else r["whole"] > r["other"],
        )
        for share in (0.25, 0.5, 0.625, 0.63, 0.75, 0.999999)
    ),
    *(
        (
            {"where": "other is not null", "that": "exact >= 0.1", "mostly": share},
            lambda r: r["other"] is not None,
            lambda r: None if r["exact"] is None else r["exact"] >= Decimal("0.1"),
        )
        for share in (0.5, 0.8, 0.81)
    ),
]
OF_DAYS: list[tuple[dict[str, Any], Holds, Holds]] = [
    *(({"unique": name}, every, every) for name in ("t", *NAMES)),
    *(({"unique": [first, "whole"]}, every, every) for first in NAMES if first != "whole"),
    ({"unique": ["name", "exact", "day"]}, every, every),
    ({"where": "flag", "unique": ["name", "real"]}, flagged, every),
    ({"where": "not flag", "unique": "whole"}, lambda r: r["flag"] is False, every),
    *(
        ({"distinct": {"column": name, bound: n}}, every, every)
        for name in NAMES
        for bound in ("least", "most")
        for n in (2, 3, 5)
    ),
    ({"where": "flag", "distinct": {"column": "name", "least": 1, "most": 1}}, flagged, every),
    *(({"rows": {"least": n}}, every, every) for n in (0, 1, 4, 5, 8)),
    *(({"rows": {"most": n}}, every, every) for n in (0, 3, 7, 2**53)),
    ({"where": "flag", "rows": {"least": 2, "most": 3}}, flagged, every),
]


def records_of(day: date) -> list[Record]:
    """The records that arrive on a day."""
    arrived = {DAYS[0]: RECORDS, DAYS[1]: RECORDS[:4]}.get(day, [])
    return [
        {"t": offset, **dict(zip(NAMES, values, strict=True))}
        for offset, values in enumerate(arrived)
    ]


def failures(check: Mapping[str, Any], where: Holds, that: Holds, day: date) -> int:
    """How many rows fail a check by its meaning; of a rule of the whole day 1 or 0."""
    rows = [record for record in records_of(day) if where(record)]
    failing = sum(that(row) is False for row in rows)
    if "mostly" in check:
        return len(rows) - failing < len(rows) * Fraction(str(check["mostly"]))
    if "unique" in check:
        names = [check["unique"]] if isinstance(check["unique"], str) else check["unique"]
        values = [tuple(plain(row[name]) for name in names) for row in rows]
        some = [value for value in values if any(part is not None for part in value)]
        return len(set(some)) < len(some)
    if "distinct" in check:
        found = {plain(row[check["distinct"]["column"]]) for row in rows} - {None}
        return outside(len(found), check["distinct"])
    return outside(len(rows), check["rows"]) if "rows" in check else failing


def outside(number: int, bounds: Mapping[str, Any]) -> bool:
    return not bounds.get("least", number) <= number <= bounds.get("most", number)


def plain(value: object) -> object:
    """A value that equals what SQL groups it with: each NaN is one value."""
    return "NaN" if isinstance(value, float) and isnan(value) else value


def declared(folder: Path, checks: Mapping[str, object]) -> Pipeline:
    text = {
        "name": "own",
        "source": {
            "path": "data", "format": "jsonl", "columns": COLUMNS, "key": "k", "event_time": "t",
        },
        "partitions": {"start": "2026-11-01"},
        "checks": checks,
        "windows": {"w": {"kind": "tumbling", "size": "1 day", "grace": "0 ms"}},
    }  # fmt: skip
    file = folder / "own.yaml"
    # Equal parts are written twice, not as YAML's aliases.
    file.write_text(yaml.safe_dump(json.loads(json.dumps(text)), allow_unicode=True))
    return load_pipeline(file)


def raw_events(spark: SparkSession, folder: Path, days: Sequence[date]) -> DataFrame:
    """The records of days as rows of raw_events."""
    schema = tables_of(declared(folder, {}), str(folder)).raw_events.schema
    rows = [
        {
            **record,
            "arrival_unit": day,
            "source_partition": "0",
            "offset": record["t"],
            "key": "a",
            "event_time": datetime.fromtimestamp(record["t"] / 1000, UTC),
            "running_max": datetime.fromtimestamp(record["t"] / 1000, UTC),
        }
        for day in days
        for record in records_of(day)
    ]
    return spark.createDataFrame(rows, schema)


def checked(
    spark: SparkSession, folder: Path, checks: Mapping[str, object], days: Sequence[date]
) -> dict[str, CheckResult]:
    own = own_checks_of_records(declared(folder, checks))
    batches = own.batches(raw_events(spark, folder, days), days)
    return {result.check.name: result for result in validate(list(batches))}


@pytest.mark.parametrize("days", [DAYS[:1], DAYS[1:], DAYS], ids=["one", "others", "all"])
def test_each_rule_finds_what_a_plain_reading_finds(
    spark: SparkSession, tmp_path: Path, days: list[date]
) -> None:
    """Rule H1: of each day the same, whatever days a run has; also of a day without a record."""
    cases = [*CASES, *OF_DAYS]
    checks = {f"c{number}": check for number, (check, _, _) in enumerate(cases)}
    found = checked(spark, tmp_path, checks, days)
    assert len(found) == len(cases)
    for number, case in enumerate(cases):
        expected = {day: failures(*case, day) for day in days}
        failing = {day: int(rows) for day, rows in expected.items() if rows}
        assert found[f"c{number}"].failing_by_arrival_unit == failing, case[0]


def test_a_failing_day_shows_its_numbers(spark: SparkSession, tmp_path: Path) -> None:
    checks = {
        "some": {"rows": {"least": 1}},
        "nearly": {"that": "other is not null", "mostly": 0.8},
        "once": {"unique": "name"},
        "kinds": {"where": "flag", "distinct": {"column": "exact", "most": 1}},
    }
    found = checked(spark, tmp_path, checks, DAYS)
    assert {name: result.sample for name, result in found.items()} == {
        name: [
            {"arrival_unit": str(day), "check": name, "found": numbers, "is_broken": "true"}
            for day, numbers in days
        ]
        for name, days in {
            "some": [(DAYS[2], "rows 0")],
            "nearly": [(DAYS[0], "judged 8, failing 3"), (DAYS[1], "judged 4, failing 1")],
            "once": [(DAYS[0], "values 7, distinct 6")],
            "kinds": [(DAYS[0], "distinct 2")],
        }.items()
    }


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


def test_what_only_one_of_the_two_finds_fails_the_run(spark: SparkSession) -> None:
    """Great Expectations and the count of failing rows must agree; a check never passes by one."""
    checks = [
        Check("apart", "", "first = 40"),
        Check("not_empty", "", "n IS NULL", within=Within("n", least=1)),
    ]
    rows = spark.createDataFrame([(0, 1), (20, 2)], "first int, n int")
    batches = [Batch("rows", rows, checks)]
    with verdicts_of(batches) as verdicts:
        sound = verdicts.toArrow()
    assert [result.passed for result in judge(batches, sound)] == [True, True]
    for column, spoiled, refused in [
        ("_smallest_not_empty", 0, "refuses rows, but none counts"),
        ("_broken_not_empty", 1, "refuses no row, but some count"),
    ]:
        index = sound.schema.get_field_index(column)
        values = pa.array([spoiled] * sound.num_rows, sound.schema.field(index).type)
        changed = sound.set_column(index, column, values)
        with pytest.raises(RuntimeError, match=f"check not_empty: .*{refused}"):
            judge(batches, changed)


def test_a_share_of_few_records_fails_no_day(spark: SparkSession, tmp_path: Path) -> None:
    """limits.least_records: such a day is named; one with all records rejected fails (rule A6)."""
    checks = raw_events_checks(load_text(tmp_path, FLIGHTS))
    (check,) = (each for each in checks if each.name == "rejected_within_limit")
    days = [date(2013, 1, number) for number in range(1, 7)]
    counts = [(49, 50), (50, 50), (49, 51), (0, 3), (52, 0), (0, 0)]
    found = [(day, *count) for day, count in zip(days, counts, strict=True)]
    rows = spark.createDataFrame(found, "arrival_unit date, arrival_unit_rows int, rejected int")
    (result,) = validate([Batch("rows", rows, [check])])
    assert result.failing_by_arrival_unit == {days[2]: 1, days[3]: 1}
    assert result.excused == {days[0]}
    asset = dg.AssetKey("raw_events")
    shown = {
        str(each.partition): str(each.metadata["rules"].value).partition("`rejected_within_")[2]
        for each in rules_evaluations(asset, [result], days[:3], str)
    }
    outcomes = ["not judged", "holds", "fails"]
    assert all(
        outcome in text.split("|")[1]
        for outcome, text in zip(outcomes, shown.values(), strict=True)
    ), shown
