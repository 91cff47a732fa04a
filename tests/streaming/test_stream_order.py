"""Stretches give a micro-batch the order of arrival of a single pass (rules A1, A2, A4)."""

from __future__ import annotations

from collections import Counter
from datetime import date, timedelta
from random import Random
from typing import NamedTuple

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from windows_pipeline.arrival.watermark import LogRow
from windows_pipeline.kernels.time import NEVER_MS
from windows_pipeline.sources.tuning import IngestTuning
from windows_pipeline.streaming.log_state import BatchPart, LogState, state_of
from windows_pipeline.streaming.order import FILE, OFFSET, PARTITION, in_stream_order

DAY = date(2026, 1, 1)
NEXT = DAY + timedelta(days=1)
IN_FORCE_MS = 6_000
FILES = [f"part-{number}" for number in (7, 3, 11, 0, 10, 2, 5, 1, 9, 4, 6, 8)]
"""File names in the order of writing."""


class Judged(NamedTuple):
    """A record as `judged_records` returns it; `n` identifies it."""

    arrival_unit: date
    file: str
    reason: str | None
    source_partition: str | None
    key: str | None
    event_time_ms: int | None
    n: int


COLUMNS = (
    "arrival_unit date, file string, reason string, source_partition string, key string, "
    "_event_time_ms bigint, n bigint"
)


def log_state() -> LogState:
    """A partition is ahead of the watermark; the other was idle, resumed, and is behind it."""
    rows = [
        LogRow(DAY, "ahead", 9_000, 5, 0, 4, IN_FORCE_MS, 0, "s", 0),
        LogRow(DAY, "behind", 2_000, 3, 0, 2, IN_FORCE_MS, 0, "s", 0),
    ]
    return state_of(rows, DAY, None)


def judged(draw: Random, records: int) -> list[Judged]:
    rows = []
    for n in range(records):
        arrival_unit = draw.choice([DAY, NEXT])
        # The names sort otherwise than their numbers.
        file = draw.choice(FILES)
        if draw.random() < 0.1:
            rows.append(Judged(arrival_unit, file, "null_key", None, None, None, n))
            continue
        partition = draw.choice(["ahead", "behind", "new"])
        rows.append(Judged(arrival_unit, file, None, partition, "k", draw.randrange(12_000), n))
    return rows


def in_one_pass(
    rows: list[Judged], before: LogState, files: list[str] | None = None
) -> tuple[dict[int, tuple[int, int]], list[BatchPart]]:
    """Offset and running maximum by `n`, and the parts, by a loop over the records."""
    rank = {file: at for at, file in enumerate(files or sorted({row.file for row in rows}))}
    found: dict[int, tuple[int, int]] = {}
    parts: list[BatchPart] = []
    for arrival_unit_partition in sorted(
        {(r.arrival_unit, r.source_partition) for r in rows if r.source_partition}
    ):
        arrival_unit, partition = arrival_unit_partition
        logged = [
            row
            for row in before.log
            if (row.arrival_unit, row.source_partition) == arrival_unit_partition
        ]
        first = 1 + max(
            (row.last_offset for row in logged if row.last_offset is not None), default=-1
        )
        own_ms = before.stream_time_ms.get(str(partition), NEVER_MS)
        known = [row.max_event_time_ms for row in logged if row.max_event_time_ms is not None]
        running = max([*known, before.watermark_ms if before.watermark_ms > own_ms else NEVER_MS])
        mine = [
            row
            for row in rows
            if (row.arrival_unit, row.source_partition) == arrival_unit_partition
        ]
        mine.sort(key=lambda row: (rank[row.file], row.event_time_ms, row.key, row.n))
        for at, row in enumerate(mine):
            assert row.event_time_ms is not None
            running = max(running, row.event_time_ms)
            found[row.n] = (first + at, running)
        times = [row.event_time_ms for row in mine if row.event_time_ms is not None]
        assert partition is not None
        parts.append(
            BatchPart(arrival_unit, partition, first, first + len(mine) - 1, len(mine), max(times))
        )
    return found, parts


def require_as_one(rows: list[Judged], frame: DataFrame, *, ranges: int | None = None) -> None:
    """Requires the numbers of a single pass over the records."""
    files = [*FILES, *sorted({row.file for row in rows}.difference(FILES))]
    found = in_stream_order(
        frame.withColumn(FILE, F.col("file")),
        None,
        log_state(),
        in_files=lambda names: sorted(names, key=files.index),
        ranges=ranges,
    )
    expected, parts = in_one_pass(rows, log_state(), files)
    numbers = {
        row.n: (row.offset, row["_running_max_ms"])
        for row in found.records.where("reason IS NULL").collect()
    }
    assert numbers == expected
    assert sorted(found.parts) == sorted(parts)
    assert found.rejected == Counter(row.arrival_unit for row in rows if row.reason)
    assert set(found.records.columns) == {*frame.columns, "offset", "_running_max_ms"}
    assert found.records.count() == len(rows)


@pytest.mark.parametrize("in_one_task", [True, False])
def test_files_are_numbered_as_in_one_pass(spark: SparkSession, *, in_one_task: bool) -> None:
    """The files of a Delta table, each in order of event time."""
    rows = judged(Random(20), 400)
    frame = spark.createDataFrame(rows, COLUMNS).repartition(3, *["file"] * in_one_task)
    require_as_one(rows, frame)


@pytest.mark.parametrize("ranges", [1, 7, 40])
def test_large_files_are_numbered_as_in_one_pass(spark: SparkSession, ranges: int) -> None:
    """In ranges that cut files or hold several files."""
    rows = judged(Random(23), 400)
    frame = spark.createDataFrame(rows, COLUMNS).repartition(3)
    require_as_one(rows, frame, ranges=ranges)


@pytest.mark.parametrize("ranges", [None, 7])
def test_the_arrival_column_orders_across_files(spark: SparkSession, ranges: int | None) -> None:
    rows = judged(Random(21), 200)
    frame = spark.createDataFrame(rows, COLUMNS)
    found = in_stream_order(frame, "n", log_state(), ranges=ranges)
    numbers = {
        row.n: (row.offset, row["_running_max_ms"])
        for row in found.records.where("reason IS NULL").collect()
    }
    # As if each record came in a file of its own.
    by_n = [row._replace(file=f"{row.n:03}") for row in rows]
    expected, parts = in_one_pass(by_n, log_state())
    assert numbers == expected
    assert sorted(found.parts) == sorted(parts)


@pytest.mark.parametrize("offsets_per_stretch", [7, 1_000])
@pytest.mark.parametrize(
    ("partition", "arrival_unit", "known_ms"),
    [
        ("ahead", NEXT, NEVER_MS),  # another day: its running maxima start again
        ("ahead", DAY, 9_000),
        ("behind", DAY, IN_FORCE_MS),  # it resumes, and meets the watermark
        ("behind", NEXT, IN_FORCE_MS),
    ],
)
def test_records_keep_the_offsets_of_their_topic(
    spark: SparkSession,
    partition: str,
    arrival_unit: date,
    known_ms: int,
    offsets_per_stretch: int,
) -> None:
    draw = Random(22)
    rows = [
        (arrival_unit, "", "null_key" if draw.random() < 0.1 else None, draw.randrange(12_000), n)
        for n in range(20, 120)
    ]
    times = f"_event_time_ms bigint, {OFFSET} bigint"
    columns = f"arrival_unit date, file string, reason string, {times}"
    frame = spark.createDataFrame(rows, columns).selectExpr("*", f"'{partition}' AS {PARTITION}")
    tuning = IngestTuning(offsets_per_stretch=offsets_per_stretch)
    found = in_stream_order(frame, None, log_state(), tuning=tuning)
    running, largest_ms = known_ms, NEVER_MS
    expected = {}
    for _, _, reason, time_ms, offset in rows:
        if reason is None:
            running, largest_ms = max(running, time_ms), max(largest_ms, time_ms)
            expected[offset] = running
    numbers = {
        row.offset: row["_running_max_ms"]
        for row in found.records.where("reason IS NULL").collect()
    }
    assert numbers == expected
    rejected = sum(reason is not None for _, _, reason, _, _ in rows)
    assert found.parts == [
        BatchPart(arrival_unit, partition, 20, 119, 100 - rejected, largest_ms, rejected)
    ]
    assert found.rejected == {arrival_unit: rejected}


@pytest.mark.parametrize("records", [0, 3])
def test_without_an_accepted_record_there_is_no_part(spark: SparkSession, records: int) -> None:
    rows = [Judged(NEXT, "part", "null_key", None, None, None, n) for n in range(records)]
    frame = spark.createDataFrame(rows, COLUMNS).withColumn(FILE, F.col("file"))
    found = in_stream_order(frame, None, log_state())
    assert found.parts == []
    assert found.rejected == ({NEXT: records} if records else {})
    assert found.records.count() == records
