"""Offsets and running maxima follow the order of arrival (rules A1, A2)."""

from __future__ import annotations

import random
from collections import defaultdict
from datetime import date, datetime, timedelta
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from windows_pipeline.arrival.log import arrival_log_rows
from windows_pipeline.arrival.order import in_arrival_order
from windows_pipeline.arrival.ranges import in_arrival_order_by_ranges
from windows_pipeline.checks.recounts.arrival import recount_running_maxima

DAYS = [date(2013, 1, day) for day in (1, 2, 3)]
SCHEMA = (
    "arrival_unit date, source_partition string, key string, _event_time_ms bigint, "
    "came timestamp, file string, value double"
)
Record = tuple[date, str, str, int, datetime, str, float | None]


def records_of(seed: int, count: int) -> list[Record]:
    """Records with many ties in arrival and event time, some of them equal in all columns."""
    pick = random.Random(seed)
    start = datetime(2013, 1, 1)
    return [
        (
            pick.choice(DAYS[:2]),
            pick.choice(["0", "1"]),
            pick.choice("ab"),
            pick.randrange(-20, 20),
            start + timedelta(minutes=pick.randrange(count // 8)),
            pick.choice(["f1", "f2", "f3"]),
            pick.choice([None, 0.5, 1.5]),
        )
        for _ in range(count)
    ]


def null_first(value: Any) -> tuple[bool, Any]:
    return (value is not None, value if value is not None else 0)


def by_hand(records: list[Record], *, by_file: bool) -> list[tuple[Any, ...]]:
    """The rule in plain Python: sort each arrival unit's partition, count, keep the maximum."""
    groups: dict[tuple[date, str], list[Record]] = defaultdict(list)
    for record in records:
        groups[record[:2]].append(record)
    numbered: list[tuple[Any, ...]] = []
    for (arrival_unit, partition), members in groups.items():
        first = 5 if by_file else 4
        members.sort(key=lambda r: (r[first], r[3], r[2], r[4], null_first(r[6])))
        most = -(2**63)
        for offset, (_, _, key, time, came, _, value) in enumerate(members):
            most = max(most, time)
            numbered.append((arrival_unit, partition, offset, most, key, time, came, value))
    return numbered


@pytest.mark.parametrize("arrival", ["came", None])
def test_offsets_and_running_maxima_follow_arrival(
    spark: SparkSession, arrival: str | None
) -> None:
    """Rules A1 and A2, against the same rule in plain Python."""
    records = records_of(seed=3, count=300)
    ordered = in_arrival_order(spark.createDataFrame(records, SCHEMA), arrival)
    names = [
        "arrival_unit",
        "source_partition",
        "offset",
        "_running_max_ms",
        "key",
        "_event_time_ms",
        "came",
        "value",
    ]
    found = [tuple(row) for row in ordered.select(*names).collect()]
    expected = by_hand(records, by_file=arrival is None)
    assert sorted(found, key=lambda row: row[:3]) == sorted(expected, key=lambda row: row[:3])


def test_the_order_does_not_depend_on_files_or_partitions(spark: SparkSession) -> None:
    """Rule A1: other files, another order of rows, another number of tasks, same numbers."""
    records = records_of(seed=4, count=200)
    moved = [(*record[:5], f"g{i % 7}", record[6]) for i, record in enumerate(records)]
    random.Random(5).shuffle(moved)
    in_one_task = spark.createDataFrame(records, SCHEMA).coalesce(1)
    in_seven = spark.createDataFrame(moved, SCHEMA).repartition(7)
    first, second = (
        in_arrival_order(rows, "came").drop("file") for rows in (in_one_task, in_seven)
    )
    assert first.exceptAll(second).count() == 0
    assert second.exceptAll(first).count() == 0


def test_the_log_sums_up_each_arrival_unit_and_marks_the_empty_one(spark: SparkSession) -> None:
    """Rule A2: an arrival unit without accepted records has a row, too."""
    one, two, three = DAYS
    ordered = spark.createDataFrame(
        [(one, "0", 0, 70), (one, "0", 1, 50), (one, "1", 0, -3), (two, "0", 0, 60)],
        "arrival_unit date, source_partition string, offset bigint, _event_time_ms bigint",
    )
    rejected = spark.createDataFrame([(one,), (three,), (three,)], "arrival_unit date")
    log = arrival_log_rows(ordered, rejected, DAYS)
    assert log.columns == [
        "arrival_unit",
        "source_partition",
        "first_offset",
        "last_offset",
        "rows",
        "_max_event_time_ms",
        "arrival_unit_rejected",
    ]
    assert {tuple(row) for row in log.collect()} == {
        (one, "0", 0, 1, 2, 70, 1),
        (one, "1", 0, 0, 1, -3, 1),
        (two, "0", 0, 0, 1, 60, 0),
        (three, None, None, None, 0, None, 2),
    }


NAMES = ("stretch", "rows_before", "max_before")


def test_ranges_give_the_same_numbers(spark: SparkSession) -> None:
    """Rules A1 and A2: ties, nulls, and ranges that cut arrival units and source partitions."""
    records = [*records_of(seed=6, count=300), *records_of(seed=7, count=8)[:4] * 30]
    rejected = [(day, None, None, None, None, "f1", None) for day in DAYS]
    frame = spark.createDataFrame([*records, *rejected], SCHEMA).repartition(3)
    # A source may have columns of these names.
    frame = frame.withColumns({name: F.hash("came", "_event_time_ms") for name in NAMES}).persist()
    by_task = in_arrival_order(frame, "came")
    ranged = in_arrival_order_by_ranges(frame, "came", 7)
    rows, cut = (
        [repr(tuple(row)) for row in ordered.drop("file").collect() if row.source_partition]
        for ordered in (by_task, ranged.records)
    )
    assert len(rows) == len(records)
    assert sorted(cut) == sorted(rows)
    # The ranges cut arrival units and source partitions, and hold rejected records, too.
    sizes = [row["count"] for row in ranged.cached.groupBy("_stretch").count().collect()]
    assert len(sizes) > 4
    assert sum(sizes) == len(records) + len(rejected)
    ranged.cached.unpersist()
    frame.unpersist()


def test_a_recount_in_stretches_equals_one_of_the_whole(spark: SparkSession) -> None:
    """Rule A2: wrong and repeated records are recounted, too."""
    pick = random.Random(8)
    rows: list[tuple[date, str, int, int, int, int]] = []
    expected = []
    for batch, arrival_unit in enumerate(DAYS[:2]):
        largest = -100
        for offset in range(20):
            time = pick.randrange(offset * 2) if offset else -50
            largest = max(largest, time)
            running_max = largest - (offset in (6, 13))
            is_repeated = offset in (4, 14)
            for is_again in (False, True)[: 1 + is_repeated]:
                rows.append((arrival_unit, "0", offset, time, running_max, batch))
                expected.append((arrival_unit, "0", batch, running_max, largest, is_again))
    columns = ["arrival_unit", "source_partition", "offset", "event_time", "running_max", "batch"]
    raw = spark.createDataFrame(rows, columns)
    found = [recount_running_maxima(raw, stretch_rows) for stretch_rows in (None, 5)]
    whole, cut = (sorted(map(tuple, recount.collect())) for recount in found)
    assert whole == cut == sorted(expected)
