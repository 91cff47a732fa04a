"""Windows on any DataFrame, through Spark: what a user of the library writes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis.strategies import SearchStrategy
from pyspark.errors import SparkRuntimeException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from engine_runs import sample, spec_of
from oracle_batch import BatchRecord, answer_batch
from oracle_definitions import Definition
from strategies import (
    arrivals_of,
    forward_definitions,
    session_definitions,
    sliding_definitions,
    time_definitions,
)
from windows_pipeline import (
    Arrival,
    SessionWindows,
    SlidingWindows,
    Stream,
    TimeWindows,
    UserAggregate,
    aggregate,
    avg,
    cogroup,
    collect_list,
    count,
    count_distinct,
    first,
    late_records,
    max_,
    median,
    min_,
    stddev_pop,
    sum_,
    until_window_closes,
    user_aggregate,
)

TEN_MS = SlidingWindows.with_time_difference_and_grace("10 ms", "0 ms")
KINDS: dict[str, Callable[[int, int], SearchStrategy[Any]]] = {
    "sliding": sliding_definitions,
    "forward": forward_definitions,
    "time": time_definitions,
    "session": session_definitions,
}


@pytest.fixture(scope="module")
def worked_example(spark: SparkSession) -> DataFrame:
    """KIP-450's records."""
    rows = [(0, "k", 3, "a"), (1, "k", 7, "b"), (2, "k", 12, "c"), (3, "k", 19, "d")]
    return spark.createDataFrame(rows, "at bigint, key string, ms bigint, name string")


def test_the_worked_example_of_the_kip(worked_example: DataFrame) -> None:
    """Rule B4: 7 sliding windows; hopping ones of this size that advance by 1 are 26."""
    of = [collect_list("name").alias("names")]
    sliding = worked_example.transform(aggregate(TEN_MS, by="key", event_time="ms", of=of))
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
    hops = worked_example.transform(aggregate(hopping, by="key", event_time="ms", of=of))
    assert hops.count() == 26


def idle_after_of(definition: Definition) -> timedelta | None:
    if definition.idle_after is None:
        return None
    return timedelta(milliseconds=definition.idle_after)


@pytest.mark.parametrize("kind", KINDS)
def test_windows_and_late_records_are_the_oracles(spark: SparkSession, kind: str) -> None:
    """Rules A to D on a DataFrame whose arrival is known: final, open and late."""
    cases = sample(arrivals_of(KINDS[kind], max_units=1, max_records_a_unit=40), 120)
    batches = [
        [
            BatchRecord(record.source_partition, place, record.key, record.event_time)
            for place, record in enumerate(case.records)
        ]
        for case in cases
    ]
    # The case with the most late records and final windows tells the most.
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
    windows, arrival = spec_of(definition), Arrival("at", "part", idle_after_of(definition))
    of = [collect_list("at").alias("records")]
    found = events.transform(
        aggregate(windows, by="key", event_time="ms", of=of, arrival=arrival)
    ).collect()
    got = sorted(
        (repr(row.key), row.window_start, row.window_end, tuple(sorted(row.records)), row.closed)
        for row in found
    )
    assert got == sorted(
        (repr(window.key), window.start, window.end, window.offsets, closed)
        for closed, side in ((True, expected.final), (False, expected.open))
        for window in side
    )
    late = events.transform(late_records(windows, by="key", event_time="ms", arrival=arrival))
    reasons = {row.at: row.reason for row in late.collect()}
    for reason, wanted in (("late", expected.dropped), ("uncovered", expected.uncovered)):
        assert sorted(at for at, said in reasons.items() if said == reason) == wanted


def test_final_results_are_the_closed_ones(worked_example: DataFrame) -> None:
    """Rule E1; without a known arrival stream time is the largest event time (rule A2)."""
    windows = worked_example.transform(
        aggregate(TEN_MS, by="key", event_time="ms", of=[count()])
    ).transform(until_window_closes)
    assert "closed" not in windows.columns
    assert sorted(row.window_end for row in windows.collect()) == [3, 7, 12, 14, 18]


def test_late_records_say_what_they_met(spark: SparkSession) -> None:
    """Rule A5: the reason, S, C and how late it was, beside the record's own columns."""
    events = spark.createDataFrame(
        [(0, "a", 100, "x"), (1, "b", 50, "y")], "at bigint, key string, ms bigint, note string"
    )
    windows = SlidingWindows.with_time_difference_and_grace("10 ms", "20 ms")
    late = late_records(windows, by="key", event_time="ms", arrival=Arrival("at"))(events)
    (row,) = late.collect()
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
    windows = SlidingWindows.with_time_difference_and_grace("10 minutes", timedelta(0))
    found = events.transform(aggregate(windows, by=["user", "nested"], event_time="at", of=of))
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
    found = worked_example.transform(aggregate(sessions, by=[], event_time="ms", of=[count()]))
    assert sorted(
        (row.window_start, row.window_end, row.session_timeout, row["count"])
        for row in found.collect()
    ) == [(3, 7, 11, 2), (12, 12, 16, 1), (19, 19, 23, 1)]


def test_a_users_own_aggregate(worked_example: DataFrame) -> None:
    """Rule G1: create, update, merge, result."""
    longest = UserAggregate(
        create=lambda: "",
        update=lambda so_far, name: so_far + name,
        merge=lambda a, b: a + b,
        result=lambda so_far: so_far[::-1],
        result_type="string",
    )
    of = [user_aggregate("name", longest).alias("backwards")]
    found = worked_example.transform(aggregate(TEN_MS, by="key", event_time="ms", of=of))
    assert {row.window_end: row.backwards for row in found.collect()}[12] == "cba"


def test_cogrouped_streams(spark: SparkSession) -> None:
    """Several streams, each with aggregates of its own, in the same windows; A4 across them."""
    clicks = spark.createDataFrame(
        [(0, "u", 0), (1, "u", 4), (2, "u", 40)], "o bigint, user string, ms bigint"
    )
    orders = spark.createDataFrame(
        [(0, "u", 5, 7), (1, "u", 21, 1)], "n bigint, buyer string, ms bigint, amount bigint"
    )
    tumbling = TimeWindows.of_size_with_no_grace("10 ms")
    found = cogroup(
        tumbling,
        [
            Stream(clicks, "user", "ms", [count().alias("clicks")], Arrival("o")),
            Stream(orders, "buyer", "ms", [sum_("amount"), count().alias("orders")], Arrival("n")),
        ],
    )
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


@pytest.mark.parametrize(
    ("by", "event_time", "of", "named"),
    [
        ("key", "name", [count()], "'name' is of type string"),
        ("tags", "ms", [count()], "'tags' is of type array<string>"),
        ("key", "ms", [sum_("name")], "sum(name): column 'name' is of type string"),
        ("key", "ms", [sum_("at"), sum_("at")], "'sum_at' would be the name of two columns"),
        ("key", "ms", [count().alias("window_end")], "'window_end' would be the name of two"),
    ],
)
def test_what_does_not_fit_is_refused(
    worked_example: DataFrame, by: str, event_time: str, of: list[object], named: str
) -> None:
    events = worked_example.withColumn("tags", F.array("name"))
    with pytest.raises(ValueError, match=r"cast|alias|takes") as refused:
        aggregate(TEN_MS, by=by, event_time=event_time, of=of)(events)  # type: ignore[arg-type]
    assert named in str(refused.value)


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"by": "kee"}, "by: there is no column 'kee'; use one of ["),
        ({"event_time": "m"}, "event_time: there is no column 'm'"),
        ({"of": [sum_("n")]}, "of: sum_n: there is no column 'n'"),
        ({"of": [count().where("ms")]}, "of: count: where: 'ms' is of type bigint, no condition"),
        (
            {"of": [sum_("ms").where("n > 0")]},
            "of: sum_ms: where: 'n > 0' is no expression over ['at', 'key', 'ms', 'name']: [UNRES",
        ),
        ({"of": [sum_("ms +").alias("x")]}, "of: x: 'ms +' is no expression over ["),
        ({"by": ["key", "Key"]}, "by: 'Key' comes twice; name each column of the key once"),
        ({"of": ["count"]}, "of: 'count' is no aggregate of windows_pipeline"),
        ({"of": count()}, "of: this is one aggregate; put it in a list"),
        ({"arrival": "at"}, "arrival: 'at' is none; pass Arrival('at')"),
        ({"arrival": Arrival("name")}, "arrival: offset 'name' is of type string"),
        ({"arrival": Arrival("n")}, "arrival: offset: there is no column 'n'"),
        ({"arrival": Arrival("ms", "p")}, "arrival: source_partition: there is no column 'p'"),
    ],
)
def test_what_is_no_argument_is_named(
    worked_example: DataFrame, changed: dict[str, Any], named: str
) -> None:
    asked = {"by": "key", "event_time": "ms", "of": [count()]} | changed
    with pytest.raises(ValueError, match=re.escape(named)):
        aggregate(TEN_MS, **asked)(worked_example)


@pytest.mark.parametrize("kind", ["timestamp_ntz", "date", "double"])
def test_times_without_an_instant_are_refused(worked_example: DataFrame, kind: str) -> None:
    """What zone, or what part of a millisecond, is meant is the user's to say."""
    seconds = worked_example.withColumn("t", F.expr("timestamp_seconds(ms)"))
    events = seconds.withColumn("t", F.col("ms" if kind == "double" else "t").cast(kind))
    told = f"event_time: 't' is of type {kind}; cast it to timestamp, or to bigint milliseconds"
    with pytest.raises(ValueError, match=told):
        aggregate(TEN_MS, by="key", event_time="t", of=[count()])(events)


def test_columns_and_texts_in_the_place_of_names_and_windows_are_refused(
    worked_example: DataFrame,
) -> None:
    wrong: Any = F.sum("ms")
    with pytest.raises(ValueError, match="is no aggregate of windows_pipeline"):
        aggregate(TEN_MS, by="key", event_time="ms", of=[wrong])(worked_example)
    with pytest.raises(ValueError, match=r"by: .* is no name of a column"):
        aggregate(TEN_MS, by=wrong, event_time="ms", of=[])(worked_example)
    text_is_true = sum_("ms").where(F.col("name"))
    with pytest.raises(ValueError, match="of: sum_ms: where: Column<'name'> is of type string"):
        aggregate(TEN_MS, by="key", event_time="ms", of=[text_is_true])(worked_example)
    with pytest.raises(ValueError, match=r"event_time: .* is no name of a column"):
        aggregate(TEN_MS, by="key", event_time=wrong, of=[])(worked_example)
    text: Any = "10 ms"
    with pytest.raises(ValueError, match="windows: '10 ms' are none; take SlidingWindows"):
        aggregate(text, by="key", event_time="ms", of=[])(worked_example)


@pytest.mark.parametrize(
    ("offsets", "said"),
    [
        ([1, 2, 2, 3], "in source partition q offset 2 comes twice"),
        ([1, None, 2, 3], "in source partition q a record has no offset"),
    ],
)
def test_an_order_of_arrival_that_is_not_known_is_refused(
    spark: SparkSession, offsets: list[int | None], said: str
) -> None:
    """Rule A1: of one source partition; another one has its own offsets."""
    rows = [("a", ms, offset, "q") for ms, offset in enumerate(offsets)]
    rows += [("a", ms, ms, "p") for ms in (1, 2)]
    events = spark.createDataFrame(rows, "key string, ms bigint, at bigint, source string")
    arrival = Arrival("at", "source")
    windows = aggregate(TEN_MS, by="key", event_time="ms", of=[], arrival=arrival)
    with pytest.raises(SparkRuntimeException, match=said):
        windows(events).collect()
    late = late_records(TEN_MS, by="key", event_time="ms", arrival=arrival)
    with pytest.raises(SparkRuntimeException, match=said):
        late(events).collect()


def test_records_are_no_windows_to_close(worked_example: DataFrame) -> None:
    """Rule E1: nor is what `aggregate` returns before it has records."""
    for no_windows in (worked_example, aggregate(TEN_MS, by="key", event_time="ms", of=[])):
        with pytest.raises(ValueError, match=r"^keyed_windows: .*; pass what events.transform\("):
            until_window_closes(no_windows)  # type: ignore[arg-type]


def test_a_record_without_event_time_is_refused(worked_example: DataFrame) -> None:
    """Rule A6: the library says so, by the user's own name; it does not drop it."""
    events = worked_example.withColumn("seen", F.expr("timestamp_millis(nullif(ms, 7))"))
    windows = aggregate(TEN_MS, by="key", event_time="seen", of=[count()])(events)
    told = r"event_time: 'seen' is null in a record.*events\.where\('seen IS NOT NULL'\)"
    with pytest.raises(SparkRuntimeException, match=told):
        windows.collect()
