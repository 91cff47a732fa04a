"""What the library refuses, each by the argument, the value and the fix (rule F3)."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException, SparkRuntimeException
from pyspark.logger import PySparkLogger
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import windows_pipeline as wp
from windows_pipeline import (
    SlidingWindows,
    TimeWindows,
    Trigger,
    WindowFunction,
    count,
    first,
    flip11,
    sum_,
)
from windows_pipeline.aggregates import Aggregation
from windows_pipeline.dataframe.windowed import Windowed
from windows_pipeline.engine.windows import until_window_closes
from windows_pipeline.flip11 import SlideRows
from windows_pipeline.windows import WindowSpec

MS = {"ms": [4711]}
TEN_MS = SlidingWindows.of_time_difference_and_grace("10 ms", "0 ms")


@pytest.fixture(scope="module")
def events(spark: SparkSession) -> DataFrame:
    rows = [(0, "k", 3, "a"), (1, "k", 7, "b")]
    return spark.createDataFrame(rows, "at bigint, key string, ms bigint, name string")


def timed(events: DataFrame, windows: WindowSpec = TEN_MS) -> Windowed[DataFrame]:
    return wp.windowed(events, windows).by("key").event_time("ms")


@pytest.mark.parametrize(
    ("by", "event_time", "of", "named"),
    [
        ("key", "name", [count()], "'name' is of type string"),
        ("tags", "ms", [count()], "'tags' is of type array<string>"),
        ("key", "ms", [sum_("name")], "sum(name): column 'name' is of type string"),
        ("key", "ms", [sum_("at"), sum_("at")], "'sum_at' would be the name of two columns"),
        ("key", "ms", [count().alias("window_end")], "'window_end' would be the name of two"),
        ("key", "ms", [count().alias("_Slice")], "must not begin with '_', but '_Slice' does"),
        ("nothing", "ms", [count()], "'nothing' is of type void"),
        ("pause", "ms", [count()], "'pause' is of type interval"),
        ("any_case", "ms", [count()], "'any_case' is of type string collate UTF8_LCASE"),
        ("key", "ms", [sum_("day")], "sum(day): column 'day' is of type date"),
        ("key", "ms", [first("pairs")], "first(pairs): column 'pairs' is of type map<"),
    ],
)
def test_what_does_not_fit_is_refused(
    events: DataFrame, by: str, event_time: str, of: list[Aggregation], named: str
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
            wp.windowed(events, windows).by(by).event_time(event_time).agg(*of)
        assert named in str(refused.value)


WRONG: Any = 3
MISTAKES: list[tuple[Callable[[Windowed[DataFrame]], object], str]] = [
    (lambda w: w.by("kee").agg(), "by: there is no column 'kee'; use one of ["),
    (lambda w: w.event_time("m").agg(), "event_time: there is no column 'm'"),
    (lambda w: w.agg(sum_("n")), "aggregates: sum_n: there is no column 'n'"),
    (
        lambda w: w.agg(count().where("ms")),
        "aggregates: count: where: must be a boolean condition, but 'ms' is of type bigint",
    ),
    (
        lambda w: w.agg(sum_("ms").where("n > 0")),
        "aggregates: sum_ms: where: 'n > 0' must be an expression over a record of ['at', 'key', ",
    ),
    (
        lambda w: w.agg(sum_("ms +").alias("x")),
        "aggregates: x: 'ms +' must be an expression over a record of [",
    ),
    (
        lambda w: w.by("key", "Key").agg(),
        "by: 'Key' comes twice; name each column of the key once",
    ),
    (
        lambda w: w.agg("count"),  # type: ignore[arg-type]
        "aggregates: must be aggregates of windows_pipeline, not 'count'; pass count()",
    ),
    (
        lambda w: w.agg([count()]),  # type: ignore[arg-type]
        "is a list; pass aggregates one by one, as in .agg(count(), sum_('n'))",
    ),
    (lambda w: w.by(WRONG), "by: must be a column's name, not 3; pass its name as text"),
    (
        lambda w: w.by(["key"]),  # type: ignore[arg-type]
        "by: must be a column's name, not ['key']; pass its name as text, several as .by('one', ",
    ),
    (
        lambda _: wp.windows(TEN_MS, by=WRONG),
        "by: must be a column's name, not 3; pass its name as text, or a list of names",
    ),
    (
        lambda w: w.event_time(None),  # type: ignore[arg-type]
        "event_time: must be a column's name, not None",
    ),
    (
        lambda w: w.agg(pre_aggregate="no"),  # type: ignore[arg-type]
        "pre_aggregate: must be True or False, not 'no'",
    ),
    (lambda w: w.arrival(WRONG), "arrival: must be a column's name, not 3"),
    (
        lambda w: w.arrival(),
        "arrival: must name at least one column, but names none; add one, as in .arrival('offset')",
    ),
    (lambda w: w.arrival("name").agg(), "arrival: offset 'name' is of type string"),
    (lambda w: w.arrival("n").agg(), "arrival: offset: there is no column 'n'"),
    (
        lambda w: w.arrival("ms", partition="p").agg(),
        "arrival: partition: there is no column 'p'",
    ),
    (
        lambda w: w.arrival("ms", partition=WRONG),
        "arrival: partition: must be a column's name, not 3; pass its name as text",
    ),
    (
        lambda w: w.arrival("ms", idle_after="0 ms"),
        "idle_after: '0 seconds' must be above zero",
    ),
]


@pytest.mark.parametrize(("ask", "named"), MISTAKES)
def test_what_is_no_argument_is_named(
    events: DataFrame, ask: Callable[[Windowed[DataFrame]], object], named: str
) -> None:
    with pytest.raises(ValueError, match=re.escape(named)):
        ask(timed(events))


@pytest.mark.parametrize(
    ("table", "kind", "fix", "fixed"),
    [
        (pd.DataFrame(MS), "a pandas DataFrame", "events", pd.DataFrame(MS)),
        (pa.table(MS), "a pyarrow Table", "events", pa.table(MS)),
        (pl.DataFrame(MS), "a polars DataFrame", "events.to_arrow()", pl.DataFrame(MS).to_arrow()),
        (
            pl.LazyFrame(MS),
            "a polars LazyFrame",
            "events.collect().to_arrow()",
            pl.LazyFrame(MS).collect().to_arrow(),
        ),
    ],
)
def test_a_table_of_another_library_is_named(
    spark: SparkSession, table: Any, kind: str, fix: str, fixed: Any
) -> None:
    """None of its content is printed, whatever the door; the line that makes it Spark's works."""
    refusal = (
        f"events: must be a DataFrame of Spark, but is {kind}; pass spark.createDataFrame({fix})"
    )
    doors: list[Callable[[], object]] = [
        lambda: wp.windowed(table, TEN_MS),
        lambda: wp.windowed(table, SlideRows.preceding("10 ms")),
        lambda: wp.windowed(TEN_MS, table),  # type: ignore[call-overload]
        lambda: wp.windows(TEN_MS, event_time="ms").agg(count())(table),
        lambda: wp.windows(flip11.Tumble.over("10 ms").on("ms").alias("w")).agg(count())(table),
    ]
    for number, door in enumerate(doors):
        with pytest.raises(ValueError, match="events: must be a DataFrame of Spark") as raised:
            door()
        assert str(raised.value).startswith(refusal) != (number == 2)
        assert "4711" not in str(raised.value)
    made = spark.createDataFrame(fixed)
    assert wp.windowed(made, TEN_MS).event_time("ms").agg(count()).count() == 1


class Kept(logging.Handler):
    """Keeps what a logger says."""

    def __init__(self) -> None:
        super().__init__()
        self.messages: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.messages.append(record.getMessage())


@pytest.fixture
def logged() -> Iterator[list[str]]:
    """What PySpark logs of errors of queries: 2,000 characters of JSON each, on standard error."""
    kept = Kept()
    names = ("DataFrameQueryContextLogger", "SQLQueryContextLogger")
    loggers = [PySparkLogger.getLogger(name) for name in names]
    for logger in loggers:
        logger.addHandler(kept)
    yield kept.messages
    for logger in loggers:
        logger.removeHandler(kept)


def test_a_refused_column_is_one_error_alone(
    spark: SparkSession, events: DataFrame, logged: list[str]
) -> None:
    """PySpark logs the errors of its own queries, before and after."""
    with pytest.raises(ValueError, match="did you mean 'name'"):
        wp.windowed(events, TEN_MS).by("nam").event_time("ms").agg(count())
    with pytest.raises(ValueError, match="must be an expression over a record"):
        timed(events).agg(count().where("nam = 1"))
    with pytest.raises(ValueError, match="there is no window function 'HOP'"):
        wp.sql(spark, "SELECT HOP(1)")
    assert logged == []
    with pytest.raises(AnalysisException):
        events.select("nam")
    with pytest.raises(AnalysisException):
        spark.sql("SELECT HOP(1)")
    assert len(logged) == 2


def test_what_is_none_of_the_arguments_is_named(events: DataFrame) -> None:
    """Of each verb that takes records; ambiguous columns, too."""
    hops, trigger = TimeWindows.of_size_with_no_grace("10 ms"), Trigger.at_window_end()
    wrong: Any = "10 ms"
    stream = timed(events, hops)
    coming = stream.arrival("at")
    twice = events.select("key", "ms", F.col("name").alias("MS"))
    dotted = events.withColumnRenamed("key", "a.b")
    of_windows = (
        "windows must be SlidingWindows, TimeWindows, SessionWindows or windows of "
        "windows_pipeline.flip11, not "
    )
    other = "cogroup: other must be a stream in windows, not "
    frame = "events: must be a DataFrame of Spark, but is of type "
    mistakes: dict[str, Callable[[], object]] = {
        f"{frame}str; pass one, such as spark.table(": lambda: wp.windowed(wrong, TEN_MS),
        f"{frame}list; pass one, such as spark.table(": lambda: (
            wp.windows(hops)
            .event_time("ms")
            .agg()(
                []  # type: ignore[arg-type]
            )
        ),
        f"{of_windows}'10 ms'; take one": lambda: wp.windowed(events, wrong),
        f"{other}of type str; pass windowed(": lambda: stream.cogroup(wrong),
        "cogroup: the streams must share their windows; the first has TimeWindows(": lambda: (
            stream.cogroup(timed(events))
        ),
        "cogroup: stream 2: its key is of type bigint": lambda: stream.cogroup(
            stream.by("ms")
        ).agg(),
        "cogroup: stream 2: either all streams or none must have an arrival": lambda: (
            stream.cogroup(coming).agg()
        ),
        "late: whether a record is late depends on the order of arrival, which": stream.late,
        "firings: when windows fire depends on the order of arrival, which": lambda: stream.firings(
            trigger
        ),
        "trigger: must be a Trigger, not '10 ms'; pass": lambda: coming.firings(wrong),
        "aggregates: must be empty, because the window function takes": lambda: coming.process(
            trigger, WindowFunction(lambda *_: [], "n bigint", records=["at"]), count()
        ),
        "input_ends: must be True or False, not 3": lambda: coming.firings(
            trigger, input_ends=WRONG
        ),
        "event_time: the name 'ms' must be unique, but 2 columns have it": lambda: timed(
            twice
        ).agg(),
        "by: column 'a.b' has a dot in its name; write it in backticks, '`a.b`'": lambda: (
            timed(dotted).by("a.b").agg()
        ),
    }
    for message, make in mistakes.items():
        with pytest.raises(ValueError, match=r"^\w+") as refused:
            make()
        assert str(refused.value).startswith(message)


NO_EVENT_TIME: dict[str, Callable[[Windowed[DataFrame]], object]] = {
    "agg": lambda w: w.agg(count()),
    "late": lambda w: w.late(),
    "firings": lambda w: w.firings(Trigger.at_window_end()),
    "cogroup": lambda w: w.cogroup(w),
    "windows": lambda _: wp.windows(TEN_MS, by="key").agg(count()),
}


@pytest.mark.parametrize("end", NO_EVENT_TIME)
def test_an_event_time_that_is_not_named_is_to_be_added(events: DataFrame, end: str) -> None:
    """Rule F3: of each end, also before it has records."""
    message = re.escape("no column of the event time is named; add .event_time('ts')")
    with pytest.raises(ValueError, match=f"^event_time: .*{message}"):
        NO_EVENT_TIME[end](wp.windowed(events, TEN_MS).by("key").arrival("at"))


def test_a_verb_that_windows_do_not_have_says_what_to_do(events: DataFrame) -> None:
    """Rule F3: of the builders of other windows, and after `final` and `cogroup`."""
    coming: Any = timed(events).arrival("at")
    around: Any = wp.windowed(events, SlideRows.preceding("10 ms").on("ms"))
    grouped: Any = wp.windowed(events, flip11.Tumble.over("10 ms").on("ms").alias("w"))
    both = coming.cogroup(coming)
    refused: list[tuple[Any, str, str]] = [
        (around, "final", "every row has one result, which is final; call agg"),
        (around, "late", "no row is late in row windows"),
        (around, "process", "for firings use TimeWindows"),
        (grouped, "final", "every window is final; call agg"),
        (grouped, "process", "for firings use TimeWindows"),
        (grouped, "cogroup", "for several use TimeWindows"),
        (both, "by", "call it on each stream before cogroup"),
        (both, "process", "union the streams' rows, with a column that names"),
        (both.final(), "event_time", "call it before final()"),
        (coming.final(), "firings", "pass Trigger.until_window_closes()"),
    ]
    for builder, verb, message in refused:
        assert not hasattr(builder, verb)
        with pytest.raises(AttributeError, match=f"^{verb}: .*{re.escape(message)}"):
            getattr(builder, verb)
    for builder in (coming, around, grouped, both, both.final()):
        with pytest.raises(AttributeError, match="has no attribute 'aggregate'"):
            _ = builder.aggregate


def test_each_verb_gives_a_new_builder(events: DataFrame) -> None:
    """One that was handed on is as it was; where a verb comes twice, the last call counts."""
    plain = wp.windowed(events, TEN_MS).event_time("ms")
    keyed = plain.by("key").by("name")
    assert "key" not in plain.agg().columns
    assert keyed.agg().columns[0] == "name"
    assert "key" not in keyed.agg().columns
    with pytest.raises(AttributeError):
        plain.plan = keyed.plan  # type: ignore[misc]


@pytest.mark.parametrize("kind", ["timestamp_ntz", "date", "double"])
def test_times_without_an_instant_are_refused(events: DataFrame, kind: str) -> None:
    """What zone, or what part of a millisecond, is meant is the user's to say."""
    seconds = events.withColumn("t", F.expr("timestamp_seconds(ms)"))
    events = seconds.withColumn("t", F.col("ms" if kind == "double" else "t").cast(kind))
    message = f"event_time: 't' is of type {kind}; cast it to timestamp, or to bigint milliseconds"
    with pytest.raises(ValueError, match=message):
        timed(events).event_time("t").agg(count())


def test_a_condition_is_a_boolean_of_one_record(events: DataFrame) -> None:
    by_key = timed(events)
    of_all = count().where(F.sum("ms") > 3)
    with pytest.raises(
        ValueError, match=r"aggregates: count: where: .* must be an expression over"
    ):
        by_key.agg(of_all)
    text_is_true = sum_("ms").where(F.col("name"))
    message = "where: must be a boolean condition, but Column<'name'> is of type string"
    message = f"^aggregates: sum_ms: {message}"
    with pytest.raises(ValueError, match=message):
        by_key.agg(text_is_true)


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
    windows = timed(events).arrival("at", partition="source")
    for found in (windows.agg(), windows.late()):
        with pytest.raises(SparkRuntimeException, match=said):
            found.collect()


def test_several_columns_may_order_arrival(spark: SparkSession) -> None:
    """Rule A1: the first decides, then the next; one combination twice is refused."""
    rows = [("k", 40, 1, 0), ("k", 3, 1, 1), ("k", 50, 0, 9)]
    events = spark.createDataFrame(rows, "key string, ms bigint, file int, line int")
    windows = timed(events).arrival("file", "line")
    (late,) = windows.late().select("ms", "stream_time").where("ms < 40").collect()
    assert tuple(late) == (3, 50)
    assert {row.ms for row in windows.late().collect()} == {3}
    with pytest.raises(SparkRuntimeException, match="comes twice"):
        timed(events.union(events)).arrival("file", "line").agg().collect()


def test_records_are_no_windows_to_close(events: DataFrame) -> None:
    """Rule E1: nor is what `agg` returns before it has records."""
    wrong: list[Any] = [events, wp.windows(TEN_MS, by="key", event_time="ms").agg()]
    for no_windows in wrong:
        with pytest.raises(ValueError, match=r"^keyed_windows: .*; pass what windowed\(events, "):
            until_window_closes(no_windows)


def test_a_record_without_event_time_is_refused(events: DataFrame) -> None:
    """Rule A6: the library says so, by the user's own name; it does not drop it."""
    events = events.withColumn("seen", F.expr("timestamp_millis(nullif(ms, 7))"))
    windows = timed(events).event_time("seen").agg(count())
    message = r"event_time: 'seen' is null in a record.*events\.where\('seen IS NOT NULL'\)"
    with pytest.raises(SparkRuntimeException, match=message):
        windows.collect()
