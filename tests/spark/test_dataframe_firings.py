"""Firings on DataFrames (rules A1, A4, E2, E3, E4); a few Spark jobs for everything."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

import windows_pipeline as wp
from tests.support.oracle.firings import Firing, Key, Policy
from tests.support.oracle.firings import firings as oracle_firings
from tests.support.spark_cases import SHORT_SHARDS
from windows_pipeline import SessionWindows, SlidingWindows, TimeWindows, collect_list, count, sum_
from windows_pipeline.aggregates import FUNCTIONS, Aggregate
from windows_pipeline.dataframe.windowed import Windowed
from windows_pipeline.engine.firings.kernel import FiringSpec
from windows_pipeline.engine.firings.plan import fire
from windows_pipeline.engine.firings.process import FunctionKernel
from windows_pipeline.engine.time_shards import TIME_SHARD, in_time_shards, shard_length_ms
from windows_pipeline.windows.firing.triggers import Trigger
from windows_pipeline.windows.firing.window_function import FiringContext, WindowFunction

HOPPING = TimeWindows(20, 5, 5)
SLIDING = SlidingWindows(12, 5)
EARLY = Trigger.at_window_end().early_every("4 ms")
UPDATES = Trigger.at_window_end().early_every_n(2).with_out_of_orderness("2 ms")
COLUMNS = "user string, ts bigint, value bigint, at bigint, source string"


def made(seed: int, number: int = 60) -> list[tuple[Key, int]]:
    chosen = random.Random(seed)
    return [(chosen.choice([None, "a", "b"]), n + chosen.randint(-12, 3)) for n in range(number)]


def frame(spark: SparkSession, records: list[tuple[Key, int]]) -> DataFrame:
    rows = [(key, time, at, at, "one") for at, (key, time) in enumerate(records)]
    return spark.createDataFrame(random.Random(0).sample(rows, len(rows)), COLUMNS)


def by_user(
    events: DataFrame, windows: TimeWindows | SlidingWindows | SessionWindows
) -> Windowed[DataFrame]:
    return wp.windowed(events, windows).by("user").event_time("ts").arrival("at")


def in_order(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    return sorted(rows, key=repr)


def wanted(firing: Firing) -> tuple[Any, ...]:
    cause = "RECORD" if firing.cause == "record" else "STREAM_TIME"
    met = None if firing.after is None else firing.stream_time
    ids = (firing.key, firing.start, firing.end, firing.id, firing.reason, cause)
    total = sum(firing.records) if firing.records else None
    held = (len(firing.records), total, list(firing.records))
    return (*ids, met, firing.after, *held, firing.is_final)


@pytest.mark.parametrize(
    ("windows", "trigger", "policy"),
    [
        (HOPPING, EARLY, Policy(20, 5, lateness=5, interval=4)),
        (
            SlidingWindows(3, 2, emit_empty=True),
            EARLY.discarding(),
            Policy(difference=3, lateness=2, interval=4, discarding=True, emit_empty=True),
        ),
    ],
)
def test_firings_of_a_dataframe(
    spark: SparkSession, windows: TimeWindows | SlidingWindows, trigger: Trigger, policy: Policy
) -> None:
    """Rules B8, E2, with a null key (A6), in any order of rows and with an input that ends."""
    records = made(1)
    of = [sum_("value").alias("total"), collect_list("value").alias("listed")]
    found = by_user(frame(spark, records), windows).firings(trigger, *of, input_ends=True)
    assert found.columns == [
        *("user", "window_start", "window_end", "firing_id", "reason", "cause", "stream_time"),
        *("fired_after", "first_event_time", "last_event_time", "record_count", "total", "listed"),
        "is_final",
    ]
    rows = [
        (*row[:8], row.record_count, row.total, sorted(row.listed), row.is_final)
        for row in found.collect()
    ]
    expected = oracle_firings(records, policy._replace(input_ends=True))
    assert policy.emit_empty == any(not firing.records for firing in expected)
    assert in_order(rows) == in_order([wanted(firing) for firing in expected])


def test_a_final_result_is_one_firing_of_any_windows(spark: SparkSession) -> None:
    """Rules A4 and E1: each closed window once, after the first record that closes it."""
    records = made(2)
    events = frame(spark, records)
    for windows, beyond in (
        (SlidingWindows(10, 5), 5 + 1),
        (SessionWindows(3, 5), 3 + 5 + 1),
    ):
        timed, number = by_user(events, windows), count().alias("n")
        fired = timed.firings(Trigger.until_window_closes(), number).collect()
        bounds = {(r.user, r.window_start, r.window_end, r.n) for r in fired}
        if isinstance(windows, SlidingWindows):
            closed = timed.agg(number).where("closed").collect()
            assert bounds == {(r.user, r.window_start, r.window_end, r.n) for r in closed}
        for row in fired:
            stream_times = [max(time for _, time in records[: n + 1]) for n in range(len(records))]
            after = next(n for n, s in enumerate(stream_times) if s >= row.window_end + beyond)
            assert (row.fired_after, row.stream_time) == (after, stream_times[after])
            assert (row.firing_id, row.reason, row.is_final) == (0, "ON_TIME", True)


@pytest.mark.parametrize(
    ("windows", "trigger", "policy"),
    [
        (HOPPING, EARLY.with_final(), Policy(20, 5, lateness=5, interval=4)),
        (
            SessionWindows(3, 6),
            UPDATES.without_late().with_final(),
            Policy(gap=3, lateness=4, out_of_orderness=2, every_n=2, late=False),
        ),
    ],
)
def test_a_final_firing_follows_the_others(
    spark: SparkSession, windows: TimeWindows | SessionWindows, trigger: Trigger, policy: Policy
) -> None:
    """Rules E1, E2: the last of its window, unless that on time is final."""
    records = made(5)
    of = [sum_("value").alias("total"), collect_list("value").alias("listed")]
    found = by_user(frame(spark, records), windows).firings(trigger, *of)
    rows = [
        (*row[:3], row.firing_id, row.reason, row.cause, row.stream_time, row.fired_after,
         row.record_count, row.total, sorted(row.listed), row.is_final)
        for row in found.collect()
    ]  # fmt: skip
    expected = oracle_firings(records, policy._replace(final=True))
    finals = [firing for firing in expected if firing.is_final]
    assert {firing.reason for firing in finals} == {"ON_TIME", "LATE"}
    assert len({firing[:3] for firing in finals}) == len(finals)
    of_sessions = [f._replace(end=f.end - policy.gap) for f in expected]
    assert in_order(rows) == in_order([wanted(firing) for firing in of_sessions])


def test_source_partitions_are_merged_by_stream_time(spark: SparkSession) -> None:
    """Rules A1 and A4: as far as the slowest has come, in the order of (S, partition, offset)."""
    halves = {"one": made(3), "two": [(key, time + 5) for key, time in made(4)]}
    merged, ends = [], []
    for source, records in halves.items():
        stream_time = -100
        for at, (key, time) in enumerate(records):
            stream_time = max(stream_time, time)
            merged.append((stream_time, source, at, key, time))
        ends.append((stream_time, source))
    rows = [(key, time, at, at, source) for _, source, at, key, time in merged]
    events = spark.createDataFrame(rows, COLUMNS)
    held = sorted(record for record in merged if record[:2] <= min(ends))
    found = by_user(events, HOPPING).arrival("at", partition="source").firings(EARLY)
    policy = Policy(20, 5, lateness=5, interval=4)
    expected = [
        (f.key, f.start, f.id, f.reason, f.stream_time, *held[f.after][1:3], len(f.records))
        for f in oracle_firings([record[3:] for record in held], policy)
        if f.after is not None
    ]
    got = [
        (
            r.user,
            r.window_start,
            r.firing_id,
            r.reason,
            r.stream_time,
            r.fired_after_partition,
            r.fired_after,
            r.record_count,
        )
        for r in found.collect()
    ]
    assert in_order(got) == in_order(expected)


def test_a_users_function_sees_records_and_context(spark: SparkSession) -> None:
    """Rule E3."""

    def summed(key: Any, window: Any, content: Any, context: FiringContext) -> Iterator[Any]:
        """A row for each record of an early firing; one of all for others."""
        values = [record["value"] for record in content]
        for value in values if context.reason == "EARLY" else [sum(values)]:
            yield key, window.start_ms, context.firing_id, context.stream_time, value

    records = made(6)
    schema = "user string, start bigint, id bigint, met bigint, value bigint"
    function = WindowFunction(summed, schema, records=["value"])
    found = by_user(frame(spark, records), HOPPING).process(EARLY, function)
    assert [field.simpleString() for field in found.schema] == schema.replace(" ", ":").split(",:")
    expected = []
    for f in oracle_firings(records, Policy(20, 5, lateness=5, interval=4)):
        values = f.records if f.reason == "EARLY" else [sum(f.records)]
        expected += [(f.key, f.start, f.id, f.stream_time, value) for value in values]
    assert in_order([tuple(row) for row in found.collect()]) == in_order(expected)


def test_what_fails_names_key_window_and_firing(spark: SparkSession) -> None:
    """Rule E3; Spark gives no rows of a job that fails."""
    found = by_user(frame(spark, [("a", 3)]), HOPPING).process(
        Trigger.at_window_end().early_every_update(),
        WindowFunction(lambda *_: [1 // 0], "n bigint"),
    )
    with pytest.raises(Exception, match="ZeroDivisionError") as raised:
        found.collect()
    assert "firing 0 of the window of key 'a' from -15 to 5 (ms)" in str(raised.value)
    assert f"{__file__}, line " in str(raised.value)


def test_records_that_are_not_there_are_named(spark: SparkSession) -> None:
    """Rule E3."""
    function = WindowFunction(lambda *_: [], "n bigint", records=["nope"])
    timed = by_user(frame(spark, [("a", 3)]), HOPPING)
    with pytest.raises(ValueError, match="records: there is no column 'nope'; use one of"):
        timed.process(Trigger.at_window_end(), function)


@pytest.mark.parametrize(
    ("process", "error", "message"),
    [
        (lambda *_: [(1, 2)], TypeError, "is no row of 'n bigint', in firing 7 of the window"),
        (lambda *_: None, TypeError, "returned None in firing 7 .*; have it yield rows"),
    ],
)
def test_a_row_that_is_not_of_the_schema(
    process: Callable[..., Any], error: type[Exception], message: str
) -> None:
    """Rule E3: with key, window and firing."""
    context = {"firing_id": [7], "reason": ["LATE"], "cause": ["RECORD"], "_stream_time_ms": [9]}
    columns = {
        "k": ["a"],
        "_window_start_ms": [0],
        "_window_end_ms": [5],
        **context,
        "is_final": [False],
    }
    kernel = FunctionKernel(WindowFunction(process, "n bigint"), ["k"], {"k": "k"})
    with pytest.raises(error, match=message) as raised:
        list(kernel(iter([pa.RecordBatch.from_pydict(columns)])))
    assert "firing 7 of the window of key 'a' from 0 to 5 (ms)" in str(raised.value)


def test_windows_over_all_records_have_an_empty_key() -> None:
    """Rule E3."""
    seen = []

    def process(key: Any, *_: Any) -> list[Any]:
        seen.append(key)
        return [(1,)]

    window = {"_window_start_ms": [0], "_window_end_ms": [5]}
    context = {"firing_id": [7], "reason": ["LATE"], "cause": ["RECORD"], "_stream_time_ms": [9]}
    columns = {**window, **context, "is_final": [False]}
    kernel = FunctionKernel(WindowFunction(process, "n bigint"), [], {"id": "firing_id"})
    (made,) = kernel(iter([pa.RecordBatch.from_pydict(columns)]))
    assert (seen, made.to_pydict()) == ([()], {"n": [1]})


def test_what_a_window_function_refuses() -> None:
    with pytest.raises(ValueError, match="process: 3 is not a function"):
        WindowFunction(3, "n bigint")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="schema: 'n bignum' is not a schema"):
        WindowFunction(lambda *_: [], "n bignum")
    with pytest.raises(ValueError, match="records: 'value' is not a list of columns"):
        WindowFunction(lambda *_: [], "n bigint", records="value")


@pytest.mark.parametrize(
    ("windows", "trigger"),
    [
        (HOPPING, UPDATES),
        (TimeWindows(7, 7, 3), EARLY.discarding()),
        (SLIDING, EARLY),
    ],
    ids=str,
)
def test_firings_in_time_shards_are_those_of_whole_keys(
    spark: SparkSession, windows: TimeWindows | SlidingWindows, trigger: Trigger
) -> None:
    """Rules E2 and E4: each firing once, with its number and its records."""
    records, begin = made(6, 240), 100
    rows = [
        (0, key, time, max(other for _, other in records[: at + 1]), at, at >= begin)
        for at, (key, time) in enumerate(records)
    ]
    schema = "_computed_day int, user string, _event_time_ms bigint, _stream_time_ms bigint"
    came = spark.createDataFrame(rows, f"{schema}, at bigint, _is_new boolean").persist()
    length_ms = shard_length_ms(windows, SHORT_SHARDS)
    assert length_ms is not None
    assert in_time_shards(came, windows, length_ms).select(TIME_SHARD).distinct().count() > 3
    listed = Aggregate("listed", FUNCTIONS["collect_list"], "at")
    targets = {0: FiringSpec(windows, trigger)}

    def fired(records: DataFrame, shard_ms: int | None) -> list[tuple[Any, ...]]:
        found = fire(records, targets, ["user"], [listed], ["at"], shard_ms=shard_ms)
        return in_order([*found.collect()])

    for of in (came, came.drop("_is_new")):
        whole = fired(of, None)
        assert len(whole) > 50
        assert fired(of, length_ms) == whole
    came.unpersist()


def test_no_record_makes_no_firing(spark: SparkSession) -> None:
    """Rule E2: stream time passes no instant, although the input ends."""
    for windows in (HOPPING, SLIDING):
        events = by_user(frame(spark, []), windows)
        assert events.firings(EARLY, count(), input_ends=True).collect() == []
