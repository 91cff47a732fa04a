"""What the library refuses, each by the argument, the value and the cure (rule F3)."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from pyspark.errors import SparkRuntimeException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from windows_pipeline import (
    Arrival,
    SlideRows,
    SlidingWindows,
    Stream,
    TimeWindows,
    Trigger,
    aggregate,
    cogroup,
    count,
    firings,
    first,
    late_records,
    process_firings,
    row_windows,
    sum_,
    until_window_closes,
)

TEN_MS = SlidingWindows.with_time_difference_and_grace("10 ms", "0 ms")


@pytest.fixture(scope="module")
def events(spark: SparkSession) -> DataFrame:
    rows = [(0, "k", 3, "a"), (1, "k", 7, "b")]
    return spark.createDataFrame(rows, "at bigint, key string, ms bigint, name string")


@pytest.mark.parametrize(
    ("by", "event_time", "of", "named"),
    [
        ("key", "name", [count()], "'name' is of type string"),
        ("tags", "ms", [count()], "'tags' is of type array<string>"),
        ("key", "ms", [sum_("name")], "sum(name): column 'name' is of type string"),
        ("key", "ms", [sum_("at"), sum_("at")], "'sum_at' would be the name of two columns"),
        ("key", "ms", [count().alias("window_end")], "'window_end' would be the name of two"),
        ("key", "ms", [count().alias("Target")], "'Target' is what the engine calls a column"),
        ("key", "ms", [count().alias("_c")], "must not begin with '_', and '_c' does"),
        ("nothing", "ms", [count()], "'nothing' is of type void"),
        ("pause", "ms", [count()], "'pause' is of type interval"),
        ("any_case", "ms", [count()], "'any_case' is of type string collate UTF8_LCASE"),
        ("key", "ms", [sum_("day")], "sum(day): column 'day' is of type date"),
        ("key", "ms", [first("pairs")], "first(pairs): column 'pairs' is of type map<"),
    ],
)
def test_what_does_not_fit_is_refused(
    events: DataFrame, by: str, event_time: str, of: list[object], named: str
) -> None:
    events = events.withColumns(
        {
            "tags": F.array("name"),
            "nothing": F.lit(None),
            "pause": F.make_interval(days=F.lit(1)),
            "any_case": F.expr("name COLLATE UTF8_LCASE"),
            "day": F.current_date(),
            "pairs": F.create_map("name", "at"),
        }
    )
    for windows in (TEN_MS, TimeWindows.of_size_with_no_grace("10 ms")):
        with pytest.raises(ValueError, match=r"cast|alias|takes") as refused:
            aggregate(windows, by=by, event_time=event_time, of=of)(events)  # type: ignore[arg-type]
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
            "of: sum_ms: where: 'n > 0' is no expression over a record of ['at', 'key', 'ms', ",
        ),
        ({"of": [sum_("ms +").alias("x")]}, "of: x: 'ms +' is no expression over a record of ["),
        ({"by": ["key", "Key"]}, "by: 'Key' comes twice; name each column of the key once"),
        ({"of": ["count"]}, "of: 'count' is no aggregate of windows_pipeline"),
        ({"of": None}, "of: None is no list of aggregates; write of=[count()]"),
        ({"by": 3}, "by: 3 is no name of a column; pass its name as text, or a list of names"),
        ({"by": [3]}, "by: 3 is no name of a column"),
        ({"by": "*"}, "by: there is no column '*'"),
        ({"event_time": None}, "event_time: None is no name of a column"),
        ({"pre_aggregate": "no"}, "pre_aggregate: must be True or False, not 'no'"),
        ({"of": count()}, "of: this is one aggregate; put it in a list"),
        ({"arrival": "at"}, "arrival: 'at' is none; pass Arrival('at')"),
        ({"arrival": Arrival("name")}, "arrival: offset 'name' is of type string"),
        ({"arrival": Arrival("n")}, "arrival: offset: there is no column 'n'"),
        ({"arrival": Arrival("ms", "p")}, "arrival: source_partition: there is no column 'p'"),
    ],
)
def test_what_is_no_argument_is_named(
    events: DataFrame, changed: dict[str, Any], named: str
) -> None:
    asked = {"by": "key", "event_time": "ms", "of": [count()]} | changed
    with pytest.raises(ValueError, match=re.escape(named)):
        aggregate(TEN_MS, **asked)(events)


def test_what_is_none_of_the_arguments_is_named(events: DataFrame) -> None:
    """Of each function that takes records; columns that cannot be told apart, too."""
    key: dict[str, Any] = {"by": "key", "event_time": "ms"}
    at = Arrival("at")
    hops, trigger = TimeWindows.of_size_with_no_grace("10 ms"), Trigger.at_window_end()
    around = SlideRows.preceding("10 ms").on("ms")
    wrong: Any = "10 ms"
    stream = Stream(events, "key", "ms", [count()])
    twice = events.select("key", "ms", F.col("name").alias("MS"))
    dotted = events.withColumnRenamed("key", "a.b")
    mistakes: dict[str, Callable[[], object]] = {
        "events: '10 ms' is no DataFrame": lambda: aggregate(TEN_MS, **key, of=[])(wrong),
        "streams: Stream(": lambda: cogroup(hops, stream),  # type: ignore[arg-type]
        "streams: [] is no list of streams": lambda: cogroup(hops, []),
        "streams[1]: '10 ms' is none": lambda: cogroup(hops, [stream, wrong]),
        "windows: '10 ms' are none": lambda: late_records(wrong, **key, arrival=at)(events),
        "arrival: None is none; pass Arrival('offset')": lambda: late_records(
            TEN_MS,
            **key,
            arrival=None,  # type: ignore[arg-type]
        )(events),
        "trigger: '10 ms' is none": lambda: firings(hops, wrong, **key, arrival=at)(events),
        "arrival: '10 ms' is none; pass Arrival('10 ms')": lambda: firings(
            hops, trigger, **key, arrival=wrong
        )(events),
        "function: '10 ms' is none": lambda: process_firings(
            hops, trigger, wrong, **key, arrival=at
        )(events),
        "windows: '1' is none; take SlideRows": lambda: row_windows(wrong, of=[])(events),
        "of: this is one aggregate": lambda: row_windows(around, of=count()),  # type: ignore[arg-type]
        "arrival: 3 is no name of a column": lambda: row_windows(around, of=[], arrival=3),  # type: ignore[arg-type]
        "event_time: column 'ms' is there 2 times": lambda: aggregate(TEN_MS, **key, of=[])(twice),
        "by: column 'a.b' has a point in its name; write it in backticks, '`a.b`'": lambda: (
            aggregate(TEN_MS, by="a.b", event_time="ms", of=[])(dotted)
        ),
    }
    for told, make in mistakes.items():
        with pytest.raises(ValueError, match=r"^\w+") as refused:
            make()
        assert str(refused.value).startswith(told)


@pytest.mark.parametrize("kind", ["timestamp_ntz", "date", "double"])
def test_times_without_an_instant_are_refused(events: DataFrame, kind: str) -> None:
    """What zone, or what part of a millisecond, is meant is the user's to say."""
    seconds = events.withColumn("t", F.expr("timestamp_seconds(ms)"))
    events = seconds.withColumn("t", F.col("ms" if kind == "double" else "t").cast(kind))
    told = f"event_time: 't' is of type {kind}; cast it to timestamp, or to bigint milliseconds"
    with pytest.raises(ValueError, match=told):
        aggregate(TEN_MS, by="key", event_time="t", of=[count()])(events)


def test_columns_and_texts_in_the_place_of_names_and_windows_are_refused(
    events: DataFrame,
) -> None:
    wrong: Any = F.sum("ms")
    with pytest.raises(ValueError, match="is no aggregate of windows_pipeline"):
        aggregate(TEN_MS, by="key", event_time="ms", of=[wrong])(events)
    with pytest.raises(ValueError, match=r"by: .* is no name of a column"):
        aggregate(TEN_MS, by=wrong, event_time="ms", of=[])(events)
    of_all = count().where(F.sum("ms") > 3)
    with pytest.raises(ValueError, match=r"of: count: where: .* is no expression over"):
        aggregate(TEN_MS, by="key", event_time="ms", of=[of_all])(events)
    text_is_true = sum_("ms").where(F.col("name"))
    with pytest.raises(ValueError, match="of: sum_ms: where: Column<'name'> is of type string"):
        aggregate(TEN_MS, by="key", event_time="ms", of=[text_is_true])(events)
    with pytest.raises(ValueError, match=r"event_time: .* is no name of a column"):
        aggregate(TEN_MS, by="key", event_time=wrong, of=[])(events)
    text: Any = "10 ms"
    with pytest.raises(ValueError, match="windows: '10 ms' are none; take SlidingWindows"):
        aggregate(text, by="key", event_time="ms", of=[])(events)


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


def test_records_are_no_windows_to_close(events: DataFrame) -> None:
    """Rule E1: nor is what `aggregate` returns before it has records."""
    for no_windows in (events, aggregate(TEN_MS, by="key", event_time="ms", of=[])):
        with pytest.raises(ValueError, match=r"^keyed_windows: .*; pass what events.transform\("):
            until_window_closes(no_windows)  # type: ignore[arg-type]


def test_a_record_without_event_time_is_refused(events: DataFrame) -> None:
    """Rule A6: the library says so, by the user's own name; it does not drop it."""
    events = events.withColumn("seen", F.expr("timestamp_millis(nullif(ms, 7))"))
    windows = aggregate(TEN_MS, by="key", event_time="seen", of=[count()])(events)
    told = r"event_time: 'seen' is null in a record.*events\.where\('seen IS NOT NULL'\)"
    with pytest.raises(SparkRuntimeException, match=told):
        windows.collect()
