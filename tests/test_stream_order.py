"""A micro-batch in stretches has the order of arrival that one pass over it gives (A1, A2, A4)."""

from __future__ import annotations

from datetime import date, timedelta
from random import Random
from typing import NamedTuple

import pytest
from pyspark.sql import SparkSession

from windows_pipeline.engine.timeline import NEVER_MS
from windows_pipeline.jobs.log import LogRow
from windows_pipeline.streaming import order
from windows_pipeline.streaming.order import OFFSET, PARTITION, in_stream_order
from windows_pipeline.streaming.standing import Part, Standing, standing_of

DAY = date(2026, 1, 1)
NEXT = DAY + timedelta(days=1)
IN_FORCE_MS = 6_000


class Judged(NamedTuple):
    """A record as `judged_records` tells it; `n` names it."""

    unit: date
    file: str | None
    reason: str | None
    source_partition: str | None
    key: str | None
    event_time: int | None
    n: int


COLUMNS = (
    "unit date, file string, reason string, source_partition string, key string, "
    "event_time bigint, n bigint"
)


def standing() -> Standing:
    """One partition is ahead of the time in force, one behind it: it was idle and woke."""
    rows = [
        LogRow(DAY, "ahead", 9_000, 5, 0, 4, IN_FORCE_MS, 0, "s", 0),
        LogRow(DAY, "behind", 2_000, 3, 0, 2, IN_FORCE_MS, 0, "s", 0),
    ]
    return standing_of(rows, DAY, None)


def judged(draw: Random, records: int) -> list[Judged]:
    rows = []
    for n in range(records):
        unit = draw.choice([DAY, NEXT])
        # Names that sort otherwise than their numbers do.
        file = draw.choice([None, *(f"part-{number}" for number in range(12))])
        if draw.random() < 0.1:
            rows.append(Judged(unit, file, "null_key", None, None, None, n))
            continue
        partition = draw.choice(["ahead", "behind", "new"])
        rows.append(Judged(unit, file, None, partition, "k", draw.randrange(12_000), n))
    return rows


def in_one_pass(
    rows: list[Judged], before: Standing
) -> tuple[dict[int, tuple[int, int]], list[Part]]:
    """Offset and running maximum by `n`, and the parts, in the plainest way."""
    found: dict[int, tuple[int, int]] = {}
    parts: list[Part] = []
    for place in sorted({(r.unit, r.source_partition) for r in rows if r.source_partition}):
        unit, partition = place
        logged = [row for row in before.log if (row.unit, row.source_partition) == place]
        first = 1 + max(
            (row.last_offset for row in logged if row.last_offset is not None), default=-1
        )
        own_ms = before.stream_time_ms.get(str(partition), NEVER_MS)
        known = [row.max_event_time_ms for row in logged if row.max_event_time_ms is not None]
        running = max([*known, before.in_force_ms if before.in_force_ms > own_ms else NEVER_MS])
        mine = [row for row in rows if (row.unit, row.source_partition) == place]
        mine.sort(key=lambda row: (row.file or "", row.event_time, row.key, row.n))
        for at, row in enumerate(mine):
            assert row.event_time is not None
            running = max(running, row.event_time)
            found[row.n] = (first + at, running)
        times = [row.event_time for row in mine if row.event_time is not None]
        assert partition is not None
        parts.append(Part(unit, partition, first, first + len(mine) - 1, len(mine), max(times)))
    return found, parts


def test_files_are_numbered_as_one(spark: SparkSession) -> None:
    rows = judged(Random(20), 400)
    frame = spark.createDataFrame(rows, COLUMNS)
    found = in_stream_order(frame, None, standing())
    expected, parts = in_one_pass(rows, standing())
    told = {
        row.n: (row.offset, row.running_max)
        for row in found.records.where("reason IS NULL").collect()
    }
    assert told == expected
    assert sorted(found.parts) == sorted(parts)
    assert found.rejected == {
        unit: sum(row.unit == unit for row in rows if row.reason) for unit in (DAY, NEXT)
    }
    assert set(found.records.columns) == {*frame.columns, "offset", "running_max"}
    assert found.records.count() == len(rows)


def test_the_arrival_column_orders_across_files(spark: SparkSession) -> None:
    rows = judged(Random(21), 200)
    found = in_stream_order(spark.createDataFrame(rows, COLUMNS), "n", standing())
    offsets: dict[tuple[date, str], list[int]] = {}
    for row in sorted(found.records.where("reason IS NULL").collect(), key=lambda row: row.n):
        offsets.setdefault((row.unit, row.source_partition), []).append(row.offset)
    logged = {(DAY, "ahead"): 5, (DAY, "behind"): 3}
    firsts = {place: logged.get(place, 0) for place in offsets}
    assert offsets == {
        place: list(range(first, first + len(offsets[place]))) for place, first in firsts.items()
    }
    assert sum(map(len, offsets.values())) == sum(row.reason is None for row in rows)


@pytest.mark.parametrize("offsets_a_stretch", [7, 1_000])
def test_a_topics_offsets_stay_its_own(
    spark: SparkSession, offsets_a_stretch: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(order, "_OFFSETS_A_STRETCH", offsets_a_stretch)
    draw = Random(22)
    rows = [
        (NEXT, "", "null_key" if draw.random() < 0.1 else None, draw.randrange(12_000), n)
        for n in range(100)
    ]
    columns = f"unit date, file string, reason string, event_time bigint, {OFFSET} bigint"
    frame = spark.createDataFrame(rows, columns).selectExpr("*", f"'ahead' AS {PARTITION}")
    found = in_stream_order(frame, None, standing())
    running = NEVER_MS
    expected = {}
    for _, _, reason, time_ms, offset in rows:
        if reason is None:
            running = max(running, time_ms)
            expected[offset] = running
    told = {row.offset: row.running_max for row in found.records.where("reason IS NULL").collect()}
    assert told == expected
    rejected = sum(reason is not None for _, _, reason, _, _ in rows)
    assert found.parts == [Part(NEXT, "ahead", 0, 99, 100 - rejected, running, rejected)]
    assert found.rejected == {NEXT: rejected}
