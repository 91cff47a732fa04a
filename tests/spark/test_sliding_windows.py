"""The sliding engine as Spark runs it, many cases a job, against the oracle."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from tests.support.oracle.windows import (
    Record,
    SlidingDefinition,
    keyed_windows,
    late_records,
    windows_after,
)
from tests.support.spark_cases import (
    EPOCH,
    EVERY_FUNCTION,
    SHORT_SHARDS,
    SparkRun,
    aggregates_of,
    sample,
    texts,
)
from tests.support.strategies import Arrivals, arrivals
from windows_pipeline.checks.window_rules import recount_windows
from windows_pipeline.incremental.late import late_records as late_rows
from windows_pipeline.incremental.windows import arrival_unit_windows

GOLDEN = Path(__file__).parents[1] / "golden" / "contract" / "sliding.jsonl"
MILLISECOND = timedelta(milliseconds=1)
DEFINITIONS = {
    "golden": SlidingDefinition(time_difference=10, grace=5),
    "clamped, with empty windows": SlidingDefinition(6, 0, first_window_start=9, emit_empty=True),
}


def golden_cases(definition: SlidingDefinition) -> list[Arrivals]:
    """The contract's cases of one definition, their records in two units."""
    cases = map(json.loads, GOLDEN.read_text(encoding="utf-8").splitlines())
    window = {
        "kind": "sliding",
        "time_difference_ms": definition.time_difference,
        "grace_ms": definition.grace,
    }
    return [
        Arrivals(_records(case["input"]), 2, definition)
        for case in cases
        if case["window"] == window
    ]


def _records(rows: Sequence[dict[str, Any]]) -> list[Record]:
    return [
        Record(
            int(2 * each["offset"] >= len(rows)),
            each["partition"],
            each["offset"],
            each["key"],
            each["timestamp"],
            {"whole": each["value"], "real": float(each["value"])},
        )
        for each in rows
    ]


def cases_of(definition: SlidingDefinition) -> list[Arrivals]:
    """Golden ones, and generated ones of which only `idle_after` stays their own."""
    generated = [
        case._replace(definition=replace(definition, idle_after=case.definition.idle_after))
        for case in sample(arrivals(), 60)
    ]
    named = [partly_late_case(definition), held_by_a_right_window(definition)]
    return [*named, *golden_cases(definition), *generated]


def partly_late_case(definition: SlidingDefinition) -> Arrivals:
    """Lone records of a key and of the null key whose left windows were closed (rule B5)."""
    ahead, end = 1000, 2000
    lone = ahead - definition.grace - 1
    values = {"whole": 1, "real": 0.1}
    records = [
        Record(0, 0, 0, "z", ahead, values),
        Record(0, 0, 1, "a", lone, values),
        Record(1, 0, 2, None, lone, values),
        Record(2, 0, 3, "z", end, values),
    ]
    return Arrivals(records, 3, definition)


def held_by_a_right_window(definition: SlidingDefinition) -> Arrivals:
    """Late for their left window, in that which an earlier record made, wherever slices begin."""
    values = {"whole": 1, "real": 0.1}
    records: list[Record] = []
    for index in range(4 * definition.time_difference + 4):
        first = 1001 * (index + 1)
        ahead = first + 3 + definition.grace
        for key, time in ((f"k{index}", first), ("z", ahead), (f"k{index}", first + 2)):
            records.append(Record(0, 0, len(records), key, time, values))
    return Arrivals([*records, Record(1, 0, len(records), "z", 10**6, values)], 2, definition)


@pytest.mark.parametrize("name", DEFINITIONS)
def test_windows_and_late_records_are_those_of_the_oracle(spark: SparkSession, name: str) -> None:
    """Rules A2 to A6, B2 to B8, E1, E4 and G2 through Spark's own joins, shuffle and sort."""
    cases = cases_of(DEFINITIONS[name])
    run = SparkRun(spark, cases)
    aggregates = aggregates_of(EVERY_FUNCTION)
    computed = arrival_unit_windows(
        run.records, run.spec, aggregates, run.closings, tuning=SHORT_SHARDS
    ).persist()
    windows = computed.where(F.col("_window_end_ms").isNotNull()).collect()
    late = late_rows(run.records, computed, run.spec, ["real"], list(run.closings)).collect()
    computed.unpersist()

    for case, found in zip(cases, run.windows(windows, EVERY_FUNCTION), strict=True):
        assert texts(found) == texts(keyed_windows(*case, EVERY_FUNCTION)), case
    for case, listed in zip(cases, run.late(late), strict=True):
        assert listed == late_records(*case), case
    assert {row.key for row in late if row.reason == "partly_late"} >= {"a", None}
    assert "late" in {row.reason for row in late}


def test_a_late_record_says_what_it_met(spark: SparkSession) -> None:
    """Rules A4, A5: stream time, close time and how far behind; S is 30, the watermark 100."""
    records = [
        Record(0, 0, 0, "k", 30, {"whole": 1, "real": 0.5}),
        Record(0, 1, 0, "k", 100, {"whole": 1, "real": 0.5}),
        Record(0, 0, 1, None, 4, {"whole": 7, "real": 1.5}),
        Record(1, 0, 2, "k", 50, {"whole": 8, "real": 2.5}),
    ]
    definition = SlidingDefinition(time_difference=10, grace=5, idle_after=60)
    run = SparkRun(spark, [Arrivals(records, 2, definition)])
    computed = arrival_unit_windows(run.records, run.spec, [], run.closings, tuning=SHORT_SHARDS)
    rows = late_rows(
        run.records, computed, run.spec, ["whole", "real"], list(run.closings)
    ).collect()
    found = sorted(
        (row.offset, row.source_partition, row.key, row.late_by_ms, row.whole, row.real)
        for row in rows
    )
    assert found == [(1, "0", None, 25 - 4, 7, 1.5), (2, "0", "k", 95 - 50, 8, 2.5)]
    times = {row.offset: (row.event_time, row.stream_time, row.close_time) for row in rows}
    assert times == {1: at(4, 30, 25), 2: at(50, 100, 95)}


def at(*times_ms: int) -> tuple[Any, ...]:
    """Instants as the session, in UTC, gives them back."""
    return tuple((EPOCH + time_ms * MILLISECOND).replace(tzinfo=None) for time_ms in times_ms)


def recounted(run: SparkRun, windows: DataFrame) -> list[Row]:
    """The recount of windows from all records."""
    return recount_windows(run.records, windows, run.spec, {}, SHORT_SHARDS).collect()


def windows_of(run: SparkRun, records: DataFrame) -> DataFrame:
    """The windows of some records."""
    computed = arrival_unit_windows(records, run.spec, [], run.closings, tuning=SHORT_SHARDS)
    return computed.where(F.col("_window_end_ms").isNotNull())


def test_the_recount_finds_windows_that_miss_a_record(spark: SparkSession) -> None:
    """Rule B5: of each case the kernel is not shown the first record of partition 0."""
    definition = SlidingDefinition(time_difference=10, grace=50)
    cases = [case._replace(definition=definition) for case in cases_of(definition)]
    run = SparkRun(spark, cases)
    shown = run.records.where("NOT (source_partition = '0' AND offset = 0)")
    found = recounted(run, windows_of(run, shown))
    different = {
        (*run.case_and_arrival_unit(row["_computed_day"]), row.key, row["_window_start_ms"])
        for row in found
        if row.is_window and row.record_count != row.recount
    }
    stood = {
        (*run.case_and_arrival_unit(row["_computed_day"]), row.key, row["_window_start_ms"])
        for row in found
        if row.is_window
    }
    holding = {
        (number, arrival_unit, window.key, window.start)
        for number, case in enumerate(cases)
        for arrival_unit in range(case.arrival_units)
        for window in windows_after(case.records, arrival_unit, case.definition)
        if any(record.id[1:] == (0, 0) for record in window.records)
    }
    assert different == holding & stood
    assert len(different) > 50
