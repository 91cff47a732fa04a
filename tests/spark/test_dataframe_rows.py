"""Row windows on any DataFrame, through Spark: what a user of the library writes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from random import Random

import pytest
from pyspark.errors import SparkRuntimeException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import windows_pipeline as wp
from tests.support.oracle.aggregates import aggregate
from tests.support.oracle.rows import (
    CountBlock,
    Row,
    RowDefinition,
    RowsAround,
    Session,
    TumblingBlock,
    window_of,
)
from windows_pipeline import Aggregation, avg, collect_list, count, first, max_, median, sum_
from windows_pipeline.flip11 import (
    CURRENT_ROW,
    UNBOUNDED_RANGE,
    UNBOUNDED_ROW,
    RowWindow,
    SessionRows,
    SlideRows,
    TumbleRows,
    rows,
)

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
LAST_MS = 2_500

# Each with what it means, and with functions that Spark's own frames serve or not.
SERVED = ("count", "sum", "max")
OTHERS = ("count", "sum", "first", "avg")
WINDOWS: dict[str, tuple[RowWindow, RowDefinition, tuple[str, ...]]] = {
    # Slices of 64 * 11 ms, and of 64 * 6 ms: each key is many of them.
    "around": (
        SlideRows.preceding("8 ms").following("2 ms").on("ms"),
        RowsAround(is_range=True, back=8, ahead=2),
        OTHERS,
    ),
    "before": (
        SlideRows.preceding("5 ms").following("-2 ms").on("ts"),
        RowsAround(is_range=True, back=5, ahead=-2),
        OTHERS,
    ),
    "counted": (
        SlideRows.preceding(rows(3)).following(CURRENT_ROW).on("ms"),
        RowsAround(is_range=False, back=3, ahead=0),
        OTHERS,
    ),
    "next_two": (
        SlideRows.preceding(rows(-1)).following(rows(2)),
        RowsAround(is_range=False, back=-1, ahead=2, by_arrival=True),
        ("count", "sum", "avg"),
    ),
    "grown": (
        SlideRows.preceding(UNBOUNDED_RANGE).following("-3 ms").on("ts"),
        RowsAround(is_range=True, back=None, ahead=-3),
        SERVED,
    ),
    "grown_rows": (
        SlideRows.preceding(UNBOUNDED_ROW).following(rows(1)),
        RowsAround(is_range=False, back=None, ahead=1, by_arrival=True),
        SERVED,
    ),
    "tumbled": (TumbleRows.over("50 ms").on("ts"), TumblingBlock(50), OTHERS),
    "block": (TumbleRows.over(rows(4)).on("ms"), CountBlock(4), OTHERS),
    "session": (SessionRows.with_gap("9 ms").on("ms"), Session(9), OTHERS),
}
FUNCTIONS = {"count": count, "sum": sum_, "max": max_, "first": first, "avg": avg}


@pytest.fixture(scope="module")
def given_rows() -> list[Row]:
    """Three keys, one of them null; ties, and values of which some are null."""
    random = Random(11)
    return [
        Row(
            random.choice(("a", "b", None)),
            random.randrange(-100, LAST_MS) // 4 * 4,
            arrival,
            {"amount": random.choice((None, *range(-9, 10)))},
        )
        for arrival in range(240)
    ]


@pytest.fixture(scope="module")
def events(spark: SparkSession, given_rows: list[Row]) -> DataFrame:
    """The rows, with columns of several types to carry."""
    listed = [
        (
            row.key,
            row.time,
            EPOCH + timedelta(milliseconds=row.time),
            row.arrival,
            row.values["amount"],
            [str(row.arrival), None],
            (row.time, "x"),
        )
        for row in given_rows
    ]
    schema = (
        "user string, ms bigint, ts timestamp, at bigint, amount bigint, tags array<string>, "
        "place struct<x: bigint, y: string>"
    )
    return spark.createDataFrame(listed, schema)


def of(name: str, functions: tuple[str, ...]) -> list[Aggregation]:
    return [FUNCTIONS[each]("amount").alias(f"{name}_{each}") for each in functions]


@pytest.mark.parametrize("by", [["user"], []], ids=["keyed", "global"])
def test_every_kind_is_the_oracles(events: DataFrame, given_rows: list[Row], by: list[str]) -> None:
    """Rules F2 and A6: beside each row's own columns, in slices or by Spark's own frames."""
    asked = [
        (window.alias(name), of(name, functions))
        for name, (window, _, functions) in WINDOWS.items()
    ]
    (first_window, first_wanted), *others = asked
    windows = wp.windowed(events, first_window).by(*by).arrival("at")
    for window, wanted in others:
        windows = windows.and_over(window, *wanted)
    found = windows.agg(*first_wanted)
    own = [row if by else row._replace(key=None) for row in given_rows]
    answered = {row.at: row.asDict(recursive=True) for row in found.collect()}
    assert len(answered) == len(own)
    for row in own:
        got = answered[row.arrival]
        assert got["place"] == {"x": row.time, "y": "x"}
        assert got["tags"] == [str(row.arrival), None]
        for name, (_, definition, functions) in WINDOWS.items():
            held = window_of(row, own, definition)
            times = [each.time for each in held.rows]
            values = [each.values["amount"] for each in held.rows]
            for function in functions:
                assert got[f"{name}_{function}"] == aggregate(function, values, times), name
        tumbled = window_of(row, own, WINDOWS["tumbled"][1])
        assert got["tumbled"] == {"start": local(tumbled.start), "end": local(tumbled.end)}
        assert got["session"] == {"start": window_of(row, own, WINDOWS["session"][1]).start}
        # The bounds of a frame by time are its distances from the row, if it has both.
        assert got["around"] == {"start": row.time - 8, "end": row.time + 2}
        assert got["before"] == {"start": local(row.time - 5), "end": local(row.time - 2)}
        assert got["grown"] == {"end": local(row.time - 3)}
    assert not {"counted", "next_two", "grown_rows", "block"} & set(found.columns)


def local(time_ms: int | None) -> datetime:
    """As Spark gives a timestamp: the machine's time, without a zone."""
    assert time_ms is not None
    return datetime.fromtimestamp(time_ms / 1000)  # noqa: DTZ006


def test_conditions_lists_and_expressions(spark: SparkSession) -> None:
    """Rule G1: what the library's aggregates take, they take here."""
    orders = spark.createDataFrame(
        [(1, 5, 2.5), (2, 5, -1.0), (3, 9, 0.5)], "at int, ms int, x double"
    )
    window = SlideRows.preceding("4 ms").following("0 ms").on("ms")
    wanted = [
        count(),
        sum_("x").where("x > 0").alias("record"),  # names that the engine has too
        collect_list(F.col("x") * 2).alias("window_start_ms"),
        median("x").alias("key_0"),
    ]
    found = wp.windowed(orders, window).agg(*wanted).orderBy("at").collect()
    assert [tuple(row) for row in found] == [
        (1, 5, 2.5, 2, 2.5, [-2.0, 5.0], 0.75),
        (2, 5, -1.0, 2, 2.5, [-2.0, 5.0], 0.75),
        (3, 9, 0.5, 3, 3.0, [-2.0, 5.0, 1.0], 0.5),
    ]


def refusal(events: DataFrame, window: RowWindow) -> str:
    with pytest.raises(ValueError, match=r".") as refused:
        wp.windowed(events, window).by("user").arrival("at").agg(count())
    with pytest.raises(ValueError, match=r".") as later:
        events.transform(wp.windows(window, by="user").arrival("at").agg(count()))
    assert str(later.value) == str(refused.value)
    return str(refused.value)


def test_streams_are_refused(spark: SparkSession) -> None:
    """Rule F3: with what to do instead; a frame without an end never has a result."""
    stream = spark.readStream.format("rate").load()
    window = SlideRows.preceding("1 hour").on("timestamp").alias("w")
    assert "SlideRows 'w': row windows take no streaming DataFrame" in refusal(stream, window)
    endless = window.following(UNBOUNDED_RANGE)
    assert "following without a bound has no result on a stream" in refusal(stream, endless)


def test_refusals_name_what_and_where(events: DataFrame) -> None:
    """Rule F3."""
    window = SlideRows.preceding("1 hour").on("ms").alias("w")
    assert "'user' is of type string; cast it to timestamp" in refusal(events, window.on("user"))
    assert "the alias hides the column" in refusal(events, window.alias("amount"))
    several = wp.windowed(events, window)
    with pytest.raises(ValueError, match="SlideRows 'w': another window has the same alias"):
        several.and_over(window, count()).agg()
    with pytest.raises(ValueError, match="and_over: window must be SlideRows, TumbleRows or Sess"):
        several.and_over(3)  # type: ignore[arg-type]


def test_a_missing_time_is_an_error_in_spark_frames_too(spark: SparkSession) -> None:
    """A row without a time is rejected before, or stops the job."""
    broken = spark.createDataFrame([(None, 1)], "ms bigint, at int")
    for window in (SlideRows.preceding(UNBOUNDED_RANGE), SlideRows.preceding("1 ms")):
        answered = wp.windowed(broken, window).event_time("ms").agg(count())
        with pytest.raises(SparkRuntimeException, match="event_time: 'ms' is null in a record"):
            answered.collect()


def test_an_overflow_in_spark_frames_names_the_row(spark: SparkSession) -> None:
    """Rule G2: the sum of a window is an error where it does not fit, and only there."""
    most = 2**63 - 1
    listed = [("k", 5, 1, most), ("k", 5, 2, 1), ("k", 5, 3, -1), ("k", 9, 4, -most)]
    sums = spark.createDataFrame(listed, "key string, ms bigint, at int, n bigint")
    grown = wp.windows(SlideRows.preceding(UNBOUNDED_RANGE), by="key", event_time="ms")
    asked = grown.agg(sum_("n").alias("total"), sum_("at").alias("places"))
    answered = sums.transform(asked).orderBy("at").collect()
    assert [row.total for row in answered] == [most, most, most, 0]
    assert [row.places for row in answered] == [6, 6, 6, 10]  # of integers that cannot overflow
    message = (
        r"sum\(n\) overflows bigint in the window of a row of key \(k\) at 5 \(ms\); .* "
        "make the column a decimal or a double"
    )
    with pytest.raises(SparkRuntimeException, match=message):
        sums.where("at < 3").transform(asked).collect()
