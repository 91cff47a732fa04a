"""Windows on any DataFrame, through Spark: what a user of the library writes."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from random import Random
from typing import Any

import pytest
from pyspark.errors import SparkRuntimeException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import windows_pipeline as wp
from tests.support.oracle.batch import BatchRecord, answer_batch
from tests.support.oracle.definitions import Definition
from tests.support.spark_cases import sample, spec_of
from tests.support.strategies import (
    OF_KIND,
    arrivals_of,
)
from windows_pipeline import (
    SessionWindows,
    SlidingWindows,
    TimeWindows,
    Trigger,
    avg,
    collect_list,
    count,
    count_distinct,
    first,
    max_,
    max_by,
    median,
    min_,
    min_by,
    stddev_pop,
    sum_,
)

WindowSpec = TimeWindows | SessionWindows | SlidingWindows
TEN_MS = SlidingWindows.of_time_difference_and_grace("10 ms", "0 ms")


@pytest.fixture(scope="module")
def worked_example(spark: SparkSession) -> DataFrame:
    """KIP-450's records."""
    rows = [(0, "k", 3, "a"), (1, "k", 7, "b"), (2, "k", 12, "c"), (3, "k", 19, "d")]
    return spark.createDataFrame(rows, "at bigint, key string, ms bigint, name string")


def test_the_worked_example_of_the_kip(worked_example: DataFrame) -> None:
    """Rule B4: 7 sliding windows; hopping ones of this size that advance by 1 are 26."""
    names = collect_list("name").alias("names")
    by_key = wp.windowed(worked_example, TEN_MS).by("key").event_time("ms")
    sliding = by_key.agg(names)
    found = {(row.window_start, row.window_end): "".join(row.names) for row in sliding.collect()}
    assert found == {
        (-7, 3): "a",
        (-3, 7): "ab",
        (2, 12): "abc",
        (4, 14): "bc",
        (8, 18): "c",
        (9, 19): "cd",
        (13, 23): "d",
    }
    hopping = TimeWindows.of_size_with_no_grace("10 ms").advance_by("1 ms")
    hops = worked_example.transform(wp.windows(hopping, by="key", event_time="ms").agg(names))
    assert hops.count() == 26


def idle_after_of(definition: Definition) -> timedelta | None:
    if definition.idle_after is None:
        return None
    return timedelta(milliseconds=definition.idle_after)


@pytest.mark.parametrize("kind", ["sliding", "time", "session"])
def test_windows_and_late_records_are_the_oracles(spark: SparkSession, kind: str) -> None:
    """Rules A to D on a DataFrame whose arrival is known: final, open and late."""
    cases = sample(
        arrivals_of(OF_KIND[kind], max_arrival_units=1, max_records_a_arrival_unit=40), 120
    )
    batches = [
        [
            BatchRecord(record.source_partition, index, record.key, record.event_time)
            for index, record in enumerate(case.records)
        ]
        for case in cases
    ]
    # The case with the most late records and final windows proves the most.
    answers = [
        answer_batch(batch, case.definition) for batch, case in zip(batches, cases, strict=True)
    ]
    number = max(range(len(answers)), key=lambda i: len(answers[i].dropped) * len(answers[i].final))
    batch = batches[number]
    definition = cases[number].definition
    expected = answers[number]
    assert expected.dropped
    assert expected.final

    events = spark.createDataFrame(batch, "part int, at bigint, key string, ms bigint")
    windows = wp.windowed(events, spec_of(definition)).by("key").event_time("ms")
    windows = windows.arrival("at", partition="part", idle_after=idle_after_of(definition))
    found = windows.agg(collect_list("at").alias("records")).collect()
    got = sorted(
        (repr(row.key), row.window_start, row.window_end, tuple(sorted(row.records)), row.closed)
        for row in found
    )
    assert got == sorted(
        (repr(window.key), window.start, window.end, window.offsets, closed)
        for closed, side in ((True, expected.final), (False, expected.open))
        for window in side
    )
    reasons = {row.at: row.reason for row in windows.late().collect()}
    for reason, wanted in (
        ("late", expected.dropped),
        ("outside_windows", expected.outside_windows),
    ):
        assert sorted(at for at, said in reasons.items() if said == reason) == wanted


def test_final_results_are_the_closed_ones(worked_example: DataFrame) -> None:
    """Rule E1; without a known arrival stream time is the largest event time (rule A2)."""
    windows = wp.windowed(worked_example, TEN_MS).by("key").event_time("ms").final().agg(count())
    assert "closed" not in windows.columns
    assert sorted(row.window_end for row in windows.collect()) == [3, 7, 12, 14, 18]


def test_late_records_say_what_they_met(spark: SparkSession) -> None:
    """Rule A5: the reason, S, C and how late it was, beside the record's own columns."""
    events = spark.createDataFrame(
        [(0, "a", 100, "x"), (1, "b", 50, "y")], "at bigint, key string, ms bigint, note string"
    )
    windows = SlidingWindows.of_time_difference_and_grace("10 ms", "20 ms")
    timed = wp.windowed(events, windows).by("key").event_time("ms")
    (row,) = timed.arrival("at").late().collect()
    assert row.asDict() == {
        "at": 1,
        "key": "b",
        "ms": 50,
        "note": "y",
        "reason": "late",
        "stream_time": 100,
        "close_time": 80,
        "late_by_ms": 30,
    }


@pytest.fixture
def in_berlin(spark: SparkSession) -> Iterator[None]:
    """A session of another zone, whose clocks change on the day of the records."""
    setting = "spark.sql.session.timeZone"
    zone = str(spark.conf.get(setting))
    spark.conf.set(setting, "Europe/Berlin")
    yield
    spark.conf.set(setting, zone)


@pytest.mark.usefixtures("in_berlin")
def test_every_type_of_column(spark: SparkSession) -> None:
    """Rules A6, G1, G2: timestamps with zones, decimals, dates, composite keys, nulls, NaN."""
    noon = datetime(2026, 3, 29, 12, tzinfo=UTC)
    zoned = noon.astimezone(tz=None)
    rows = [
        ("u", None, float("nan"), noon, Decimal("0.10"), noon.date(), True, -0.0),
        ("u", None, float("nan"), zoned + timedelta(minutes=5), Decimal("0.20"), None, None, None),
        (None, 1, 0.0, noon, Decimal("99999999.99"), noon.date(), False, 1.5),
        (None, 1, -0.0, noon + timedelta(minutes=20), None, None, None, float("inf")),
    ]
    events = spark.createDataFrame(
        rows,
        "user string, part int, x double, at timestamp, price decimal(10,2), day date, "
        "flag boolean, v double",
    ).withColumn("nested", F.struct("part", "x"))
    of = [
        sum_("price"),
        avg("price"),
        min_("day"),
        count_distinct("flag"),
        max_("v"),
        count("at").where("price > 0.15").alias("dear"),
        sum_(F.col("price") * 2).alias("double_price"),
        first("at"),
        median("v"),
        stddev_pop("v"),
    ]
    windows = SlidingWindows.of_time_difference_and_grace("10 minutes", timedelta(0))
    found = wp.windowed(events, windows).by("user", "nested").event_time("at").agg(*of)
    assert dict(found.dtypes)["sum_price"] == "decimal(20,2)"
    assert dict(found.dtypes)["window_start"] == "timestamp"
    rows_by_end = {
        (row.nested.part, row.end): row
        for row in found.withColumn("end", F.unix_millis("window_end")).collect()
    }
    noon_ms = round(noon.timestamp() * 1000)
    minutes = 60_000
    assert sorted(rows_by_end, key=repr) == sorted(
        [
            (None, noon_ms),
            (None, noon_ms + 5 * minutes),
            (None, noon_ms + 10 * minutes + 1),
            (1, noon_ms),
            (1, noon_ms + 10 * minutes + 1 + 10 * minutes - 1),
        ],
        key=repr,
    )
    assert {part: row.user for (part, _), row in rows_by_end.items()} == {None: "u", 1: None}
    both = rows_by_end[None, noon_ms + 5 * minutes]
    assert (both.record_count, both.sum_price, both.avg_price) == (
        2,
        Decimal("0.30"),
        Decimal("0.150000"),
    )
    assert (both.min_day, both.count_distinct_flag, both.max_v, both.dear) == (
        noon.date(),
        1,
        0.0,
        1,
    )
    assert both.double_price == Decimal("0.60")
    last_one = rows_by_end[1, noon_ms + 20 * minutes]
    assert last_one.dear == 0  # where the condition is null
    assert (last_one.sum_price, last_one.max_v, last_one.median_v) == (
        None,
        float("inf"),
        float("inf"),
    )


def test_windows_over_all_records(worked_example: DataFrame) -> None:
    """Without a key there is one group."""
    sessions = SessionWindows.of_inactivity_gap_with_no_grace("4 ms")
    found = wp.windowed(worked_example, sessions).event_time("ms").agg(count())
    assert sorted(
        (row.window_start, row.window_end, row.session_timeout, row["count"])
        for row in found.collect()
    ) == [(3, 7, 11, 2), (12, 12, 16, 1), (19, 19, 23, 1)]


def test_cogrouped_streams(spark: SparkSession) -> None:
    """Several streams, each with aggregates of its own, in the same windows; A4 across them."""
    clicks = spark.createDataFrame(
        [(0, "u", 0), (1, "u", 4), (2, "u", 40)], "o bigint, user string, ms bigint"
    )
    orders = spark.createDataFrame(
        [(0, "u", 5, 7), (1, "u", 21, 1)], "n bigint, buyer string, ms bigint, amount bigint"
    )
    tumbling = TimeWindows.of_size_with_no_grace("10 ms")
    first_stream = wp.windowed(clicks, tumbling).by("user").event_time("ms").arrival("o")
    second = wp.windowed(orders, tumbling).by("buyer").event_time("ms").arrival("n")
    both = first_stream.cogroup(second, sum_("amount"), count().alias("orders"))
    found = both.agg(count().alias("clicks"))
    assert found.columns[0] == "user"
    rows = {row.window_start: row for row in found.collect()}
    assert {
        start: (row.record_count, row.clicks, row.sum_amount, row.orders, row.closed)
        for start, row in rows.items()
    } == {
        0: (3, 2, 7, 1, True),
        20: (1, 0, 1, 1, False),  # the orders have come to 21 only
        40: (1, 1, None, 0, False),
    }
    final = both.final().agg(count().alias("clicks"))
    assert [(row.window_start, row.orders) for row in final.collect()] == [(0, 1)]


@pytest.mark.parametrize(
    "windows",
    [SlidingWindows(6, 5), SessionWindows(3, 5), TimeWindows(8, 4, 5)],
    ids=["sliding", "sessions", "hopping"],
)
def test_late_records_and_firings_of_several_streams_are_those_of_their_union(
    spark: SparkSession, windows: WindowSpec
) -> None:
    """Rules A4, A5, B5, E2: each stream is a source partition of the union."""
    random = Random(5)
    arrived = [
        (str(stream), offset, random.choice(("a", "b")), 2 * offset - random.randrange(20))
        for stream in (1, 2)
        for offset in range(25)
    ]
    union = spark.createDataFrame(arrived, "stream string, o bigint, user string, ms bigint")
    each = [union.where(f"stream = '{stream}'").drop("stream") for stream in (1, 2)]

    def timed(events: DataFrame, partition: str | None) -> Any:
        of_user = wp.windowed(events, windows).by("user").event_time("ms")
        return of_user.arrival("o", partition=partition)

    first, second = (timed(events, None) for events in each)
    both, together = first.cogroup(second, max_("o").alias("most")), timed(union, "stream")
    late = sorted(
        (str(row.stream), row.user, *(row.record_1 or row.record_2), row.reason, row.late_by_ms)
        for row in both.late().collect()
    )
    assert {row[-2] for row in late} >= {"late"}
    assert late == sorted(
        (row.stream, row.user, row.o, row.user, row.ms, row.reason, row.late_by_ms)
        for row in together.late().collect()
    )
    bounds = ("user", "window_start", "window_end", "firing_id", "reason", "stream_time")
    of = [*bounds, "fired_after", "record_count", "is_final"]
    firing = Trigger.at_window_end().early_every("3 ms")
    for trigger in (firing, Trigger.until_window_closes()):
        found = both.firings(trigger, count().alias("n"), on_error="null")
        wanted = together.firings(
            trigger, count().where("stream = '1'").alias("n"), max_("o").where("stream = '2'")
        )
        after = F.col("fired_after_stream").cast("string")
        rows = found.select(*of, after, "n", "most").collect()
        others = wanted.select(*of, "fired_after_partition", "n", "max_o").collect()
        assert len(rows) > 5
        assert sorted(repr(tuple(row)) for row in rows) == sorted(
            repr(tuple(row)) for row in others
        )


def test_names_and_keys_are_what_they_say(spark: SparkSession) -> None:
    """A column by its name, however it reads as SQL; -0.0 is 0.0 in a key's field, too (G2)."""
    rows = [((0.0, "a"), 1, 5), ((-0.0, "a"), 2, 7), ((1.0, "a"), 3, 9)]
    schema = "key struct<x: double, y: string>, ms int, true bigint"
    events = spark.createDataFrame(rows, schema).withColumn("Ünï", F.col("true") + 1)
    of = [max_("true").alias("most"), max_("Ünï").alias("more")]
    windows = TimeWindows.of_size_with_no_grace("10 ms")
    for pre_aggregate in (True, False):
        timed = wp.windowed(events, windows).by("key").event_time("ms")
        every = timed.agg(*of, pre_aggregate=pre_aggregate)
        found = every.select("key.x", "record_count", "most", "more").collect()
        assert {(str(row[0]), *row[1:]) for row in found} == {("0.0", 2, 7, 8), ("1.0", 1, 9, 10)}


def test_an_int_of_milliseconds_does_not_wrap(spark: SparkSession) -> None:
    events = spark.createDataFrame([("a", 2**31 - 8)], "key string, ms int")
    sessions = SessionWindows.of_inactivity_gap_with_no_grace("10 ms")
    timed = wp.windowed(events, sessions).by("key").event_time("ms").agg(count())
    with pytest.raises(
        SparkRuntimeException, match=r"is an int, and .* fits none; cast it to bigint"
    ):
        timed.collect()


LEVELS = [("p", 0, 9, "a", 1), ("q", 1, 5, "b", 1), ("q", 2, 7, "c", 1), ("p", 3, 6, "d", 2)]
"""Of three records with the smallest level, the first to arrive is the last by event time."""


@pytest.mark.parametrize(
    "windows",
    [
        TimeWindows.of_size_and_grace("10 ms", "20 ms"),
        TimeWindows.of_size_and_grace("10 ms", "20 ms").advance_by("5 ms"),
        SessionWindows.of_inactivity_gap_and_grace("10 ms", "20 ms"),
        SlidingWindows.of_time_difference_and_grace("8 ms", "20 ms"),
    ],
    ids=["tumbling", "hopping", "session", "sliding"],
)
def test_arrival_decides_where_what_decides_is_equal(
    spark: SparkSession, windows: WindowSpec
) -> None:
    """Rules A1, G1: across source partitions by stream time, without an order by event time."""
    events = spark.createDataFrame(
        [(*row, "k") for row in LEVELS],
        "part string, at bigint, ms bigint, name string, level int, key string",
    )
    by_key = wp.windowed(events, windows).by("key").event_time("ms")
    aggregates = (
        min_by("name", "level").alias("least"),
        max_by("name", -F.col("level")).alias("most"),
    )
    expected = {
        by_key: ("b", "a"),
        by_key.arrival("at"): ("a", "c"),
        by_key.arrival("at", partition="part"): ("b", "a"),
    }
    for windowed, (least, most) in expected.items():
        (whole,) = windowed.agg(*aggregates).where("record_count = 4").limit(1).collect()
        assert (whole.least, whole.most) == (least, most)
    fired = by_key.arrival("at").firings(
        wp.Trigger.until_window_closes(), *aggregates, input_ends=True
    )
    (whole,) = fired.where("record_count = 4").limit(1).collect()
    assert (whole.least, whole.most) == ("a", "c")
