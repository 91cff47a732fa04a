"""FLIP-11's group windows on a DataFrame (rules F1, F4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import reduce
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import windows_pipeline as wp
from tests.support.oracle.count import count_windows
from windows_pipeline import (
    SessionWindows,
    TimeWindows,
    avg,
    collect_list,
    count,
    first,
    last,
    max_,
    min_,
    sum_,
)
from windows_pipeline.flip11 import Session, Slide, Tumble, rows
from windows_pipeline.windows import CountWindows, GroupWindow

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
# User, minutes after noon of the event and of its coming, amount. Neither goes by the other.
EVENTS = [
    ("a", 0, 1, 1),
    ("b", 3, 1, 2),
    ("a", 12, 12, 4),
    (None, 3, 13, 8),
    ("a", 9, 14, 16),
    ("b", 19, 19, None),
    ("a", -1, 20, 64),
    (None, 40, 39, 128),
    ("a", 20, 60, 256),
]
BY_TIME: dict[str, tuple[GroupWindow, TimeWindows | SessionWindows]] = {
    "tumbling": (
        Tumble.over("10 minutes"),
        TimeWindows.of_size_with_no_grace("10 minutes"),
    ),
    "sliding": (
        Slide.over(timedelta(minutes=10)).every("4 minutes"),
        TimeWindows.of_size_with_no_grace("10 minutes").advance_by("4 minutes"),
    ),
    "sliding with gaps": (
        Slide.over("4 minutes").every("10 minutes"),
        TimeWindows.of_size_with_no_grace("4 minutes").advance_by("10 minutes"),
    ),
    "session": (
        Session.with_gap("8 minutes"),
        SessionWindows.of_inactivity_gap_with_no_grace("8 minutes"),
    ),
}
BY_ROWS: dict[str, tuple[GroupWindow, CountWindows]] = {
    "tumbling": (Tumble.over(rows(2)), CountWindows(2, 2)),
    "sliding": (Slide.over(rows(3)).every(rows(1)), CountWindows(3, 1)),
    "sliding with gaps": (Slide.over(rows(1)).every(rows(3)), CountWindows(1, 3)),
    "sliding, short first": (
        Slide.over(rows(3)).every(rows(2)).with_short_first(),
        CountWindows(3, 2, short_first=True),
    ),
}


@pytest.fixture(scope="module")
def events(spark: SparkSession) -> DataFrame:
    """`by_time` is an order of arrival that goes by event time, `at` the one in which they came."""
    rows_of = [
        (at, user, NOON + timedelta(minutes=event), NOON + timedelta(minutes=came), amount, event)
        for at, (user, event, came, amount) in enumerate(EVENTS)
    ]
    schema = "at bigint, user string, ts timestamp, came timestamp, amount bigint, minutes bigint"
    ordered = spark.createDataFrame(rows_of, schema).withColumn("by_time", F.struct("ts", "at"))
    return ordered.orderBy("minutes").persist()


def held_by_time(
    windows: TimeWindows | SessionWindows, minutes: Sequence[int]
) -> dict[tuple[int, int], list[int]]:
    """What each window of one key holds: indices, by start and end in minutes (rules C1, D1)."""
    indices = sorted(range(len(minutes)), key=lambda index: minutes[index])
    if isinstance(windows, SessionWindows):
        gap = windows.gap_ms // 60_000
        sessions: list[list[int]] = []
        for index in indices:
            if sessions and minutes[index] - minutes[sessions[-1][-1]] <= gap:
                sessions[-1].append(index)
            else:
                sessions.append([index])
        return {(minutes[each[0]], minutes[each[-1]] + gap): each for each in sessions}
    size, advance = windows.size_ms // 60_000, windows.advance_ms // 60_000
    found = {
        (start, start + size): [p for p in indices if start <= minutes[p] < start + size]
        for start in range(-20 * advance, 20 * advance, advance)  # noon is a multiple of both
    }
    return {bounds: held for bounds, held in found.items() if held}


def all_kinds(
    events: DataFrame, windows: Mapping[str, tuple[GroupWindow, object]], on: str, keys: list[str]
) -> list[tuple[Any, ...]]:
    """The windows of every kind in one job: kind, key, start, end, held and sum."""
    found = [
        wp.windowed(events, window.on(on).alias("w"))
        .by(*keys)
        .agg(collect_list("at").alias("held"), sum_("amount"))
        .select(*keys, "w.start", F.col("w.end").alias("until"), "held", "sum_amount")
        .withColumn("kind", F.lit(kind))
        for kind, (window, _) in windows.items()
    ]
    assert found[0].columns == [*keys, "start", "until", "held", "sum_amount", "kind"]
    if not keys:
        found = [each.withColumn("user", F.lit(None)) for each in found]
    together = reduce(DataFrame.union, [each.select(RESULT) for each in found])
    return [tuple(row) for row in together.collect()]


RESULT = ["kind", "user", "start", "until", "held", "sum_amount"]
EACH_GROUPING = pytest.mark.parametrize("keys", [["user"], []], ids=["keyed", "global"])


def users_of(keys: list[str]) -> dict[str | None, list[int]]:
    """The indices of each group's records."""
    if not keys:
        return {None: list(range(len(EVENTS)))}
    users = {user for user, *_ in EVENTS}
    return {user: [p for p, each in enumerate(EVENTS) if each[0] == user] for user in users}


def total(held: Sequence[int]) -> int | None:
    amounts = [amount for amount in (EVENTS[index][3] for index in held) if amount is not None]
    return sum(amounts) if amounts else None


@EACH_GROUPING
@pytest.mark.parametrize("on", ["ts", "came"], ids=["event time", "processing time"])
def test_windows_by_time(events: DataFrame, on: str, keys: list[str]) -> None:
    """Rules F1, C1 and D1: the end of a session is its last record and the gap."""
    column = {"ts": 1, "came": 2}[on]
    expected = []
    for kind, (_, spec) in BY_TIME.items():
        for user, indices in users_of(keys).items():
            times = [EVENTS[index][column] for index in indices]
            for (start, end), held in held_by_time(spec, times).items():  # type: ignore[arg-type]
                bounds = [NOON + timedelta(minutes=minutes) for minutes in (start, end)]
                of = [indices[index] for index in held]
                expected.append((kind, user, *bounds, sorted(of), total(of)))
    found = [
        (kind, user, start.astimezone(UTC), end.astimezone(UTC), sorted(held), amount)
        for kind, user, start, end, held, amount in all_kinds(events, BY_TIME, on, keys)
    ]
    assert sorted(map(repr, found)) == sorted(map(repr, expected))


@EACH_GROUPING
@pytest.mark.parametrize("on", ["by_time", "at"], ids=["event time", "arrival"])
def test_windows_by_rows(events: DataFrame, on: str, keys: list[str]) -> None:
    """Rule F1: by an order, per key or over all; what does not fill a window makes none."""
    order = list(range(len(EVENTS)))
    if on == "by_time":
        order.sort(key=lambda index: EVENTS[index][1])
    expected = []
    for kind, (window, spec) in BY_ROWS.items():
        assert window.windows == spec
        fired = count_windows(
            [EVENTS[index][0] if keys else None for index in order],
            spec.size,
            spec.advance,
            short_first=spec.short_first,
        )
        for user, indices in fired:
            held = [order[index] for index in indices]
            expected.append((kind, user, held[0], held[-1], held, total(held)))
    found = [
        (kind, user, *((x.at if on == "by_time" else x) for x in bounds), held, amount)
        for kind, user, *bounds, held, amount in all_kinds(events, BY_ROWS, on, keys)
    ]
    assert sorted(map(repr, found)) == sorted(map(repr, expected))


def test_milliseconds_and_the_window_as_a_struct(events: DataFrame) -> None:
    """A time column may be a bigint of milliseconds; bounds are of its type."""
    grouped = wp.windowed(events, Tumble.over("4 ms").alias("w")).event_time("at").by("user")
    counted = grouped.agg(count().alias("n"), max_("amount").alias("most"))
    assert counted.columns == ["user", "w", "n", "most"]
    of_one = counted.where("user = 'a'").orderBy("w.start").select("w.*", "n", "most")
    assert of_one.collect() == [(0, 4, 2, 4), (4, 8, 2, 64), (8, 12, 1, 256)]


def test_aggregates_with_conditions_and_expressions(events: DataFrame) -> None:
    """Rule G1: first and last of windows by rows go by arrival."""
    window = Tumble.over(rows(5)).on("at").alias("w")
    (row,) = (
        wp.windowed(events, window)
        .by("user")
        .agg(
            first("minutes"),
            last("minutes").alias("latest"),
            count("amount").where("amount > 4").alias("large"),
            avg(F.col("amount") * 2).alias("twice"),
            min_(F.struct("ts", "amount")).alias("first_offset"),
        )
        .withColumn("first_offset", F.col("first_offset.amount"))
        .drop("w")
        .collect()
    )
    assert row.asDict() == {
        "first_minutes": 0,
        "latest": 20,
        "large": 3,
        "twice": (1 + 4 + 16 + 64 + 256) * 2 / 5,
        "first_offset": 64,
        "user": "a",
    }


def test_windows_of_windows(events: DataFrame) -> None:
    """A result is a DataFrame as any other: the larger of each two sums."""
    inner = wp.windowed(events, Tumble.over("10 minutes").on("ts").alias("w")).by("user")
    sums = inner.agg(sum_("amount").alias("total")).select("user", "w.start", "total")
    outer = wp.windows(Tumble.over(rows(2)).alias("pair"), by="user").arrival("start")
    found = sums.transform(outer.agg(max_("total").alias("most"))).drop("pair")
    assert sorted(map(tuple, found.collect()), key=repr) == [
        ("a", 256),
        ("a", 64),
        ("b", 2),
        (None, 128),
    ]


TUMBLE = Tumble.over("10 minutes").on("ts").alias("w")
COUNTED = Tumble.over(rows(2)).on("at").alias("w")


def test_a_streams_table_gives_what_its_records_at_once_give(
    spark: SparkSession, events: DataFrame, tmp_path: Path
) -> None:
    """Rule F4: a query of windows by rows and one by time, over a stream's micro-batches."""
    landed, table = str(tmp_path / "landed"), str(tmp_path / "table")
    plain = events.drop("by_time")
    plain.repartition(3, "at").write.parquet(landed)
    stream = spark.readStream.schema(plain.schema).option("maxFilesPerTrigger", 1).parquet(landed)
    writer = stream.writeStream.option("checkpointLocation", str(tmp_path / "checkpoint"))
    query = writer.trigger(availableNow=True).start(table, format="parquet")
    query.awaitTermination()
    batches = [progress["numInputRows"] for progress in query.recentProgress]
    assert sum(rows > 0 for rows in batches) == 3

    def answers(frame: DataFrame) -> list[str]:
        asked = [wp.windowed(frame, window).by("user") for window in (COUNTED, TUMBLE)]
        return sorted(
            repr(row) for each in asked for row in each.agg(count(), sum_("amount")).collect()
        )

    assert answers(spark.read.parquet(table)) == answers(plain)
