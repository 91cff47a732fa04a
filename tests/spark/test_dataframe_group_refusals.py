"""What FLIP-11's group windows refuse (rule F3)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import windows_pipeline as wp
from windows_pipeline import TimeWindows, count
from windows_pipeline.flip11 import Session, Slide, Tumble, rows
from windows_pipeline.windows import GroupWindow


@pytest.fixture(scope="module")
def events(spark: SparkSession) -> DataFrame:
    """No record is needed: all is refused before anything runs."""
    return spark.createDataFrame([], "at bigint, user string, ts timestamp, amount bigint")


SPECS_REFUSED: dict[str, tuple[Callable[[], object], str]] = {
    "size zero": (lambda: Tumble.over("0 minutes"), "over: '0 seconds' must be above zero"),
    "advance zero": (
        lambda: Slide.over("1 minute").every("0 ms"),
        "every: '0 seconds' must be above zero",
    ),
    "no rows": (lambda: Tumble.over(rows(0)), "over: 0 rows must be above zero"),
    "half a millisecond": (
        lambda: Tumble.over(timedelta(microseconds=500)),
        "over: datetime.timedelta(microseconds=500) has a part smaller than a millisecond",
    ),
    "time every rows": (
        lambda: Slide.over("1 minute").every(rows(5)),
        "every: RowCount(count=5) must have the unit of over('1 minute')",
    ),
    "session of rows": (
        lambda: Session.with_gap(rows(3)),  # type: ignore[arg-type]
        "with_gap: must be a duration, not RowCount(count=3)",
    ),
    "short windows by time": (
        lambda: Tumble.over("1 minute").with_short_first(),
        "with_short_first: windows must be by rows, not by time",
    ),
    "alias": (lambda: Tumble.over("1 minute").alias("w.start"), "alias: 'w.start' is not a name"),
    "column": (lambda: Tumble.over("1 minute").on(""), "on: '' is not a column"),
}


@pytest.mark.parametrize("what", SPECS_REFUSED)
def test_specifications_refused(what: str) -> None:
    """Rule F3: each refusal names the argument and the value."""
    make, message = SPECS_REFUSED[what]
    with pytest.raises(ValueError, match=r"^\w+: ") as refused:
        make()
    assert str(refused.value).startswith(message)


TUMBLE = Tumble.over("10 minutes").on("ts").alias("w")
COUNTED = Tumble.over(rows(2)).on("at").alias("w")
USES_REFUSED: dict[str, tuple[Callable[[DataFrame], object], str]] = {
    "no time column": (
        lambda events: wp.windowed(events, Tumble.over("1 minute").alias("w")).agg(),
        ("window: must have a column of time, but none is named; add .event_time('ts') or .on"),
    ),
    "no arrival column": (
        lambda events: wp.windowed(events, Tumble.over(rows(2)).alias("w")).agg(),
        (
            "window: must have a column of the order of arrival, but none is named; "
            "add .arrival('offset') or"
        ),
    ),
    "no alias": (
        lambda events: wp.windowed(events, Tumble.over("1 minute").on("ts")).agg(),
        (
            "window: must have an alias, which names the column of its bounds, but has none; "
            "add .alias"
        ),
    ),
    "no advance": (
        lambda events: wp.windowed(events, Slide.over("1 minute")),  # type: ignore[call-overload]
        (
            "windows must be SlidingWindows, TimeWindows, SessionWindows or windows of "
            "windows_pipeline.flip11, not SlideOver(size='1 minute'); end Slide.over(...) with"
        ),
    ),
    "alias hides a column": (
        lambda events: wp.windowed(events, TUMBLE.alias("User")).agg(),
        "alias: 'User' hides the column of that name",
    ),
    "time of another type": (
        lambda events: wp.windowed(events, TUMBLE.on("user")).agg(count()),
        "event_time: 'user' is of type string; cast it",
    ),
    "arrival without an order": (
        lambda events: wp.windowed(
            events.withColumn("tags", F.array("user")), COUNTED.on("tags")
        ).agg(count()),
        "on: 'tags' is of type array<string>, which has no order",
    ),
    "time of windows by rows": (
        lambda events: wp.windowed(events, COUNTED).event_time("ts"),
        (
            "event_time: windows of rows(...) follow the order of arrival; "
            "name its column with .arrival('ts')"
        ),
    ),
    "arrival of windows by time": (
        lambda events: wp.windowed(events, TUMBLE).arrival("at"),
        (
            "arrival: group windows by time treat every row as on time; "
            "leave .arrival(...) out, or use"
        ),
    ),
    "key twice": (
        lambda events: wp.windowed(events, TUMBLE).by("user", "user").agg(),
        "by: 'user' comes twice; name each column of the key once",
    ),
    "the alias as a key": (
        lambda events: wp.windowed(events, TUMBLE).by("w").agg(),
        "by: there is no column 'w'; use one of [",
    ),
    "a result of the alias's name": (
        lambda events: wp.windowed(events, TUMBLE).agg(count().alias("w")),
        "aggregates: 'w' would be the name of two columns of the result; give count",
    ),
    "an alias with the reserved prefix": (
        lambda events: wp.windowed(events, TUMBLE.alias("_w")).agg(count()),
        "alias: a result's name must not begin with '_', but '_w' does; choose another alias",
    ),
    "a name": (
        lambda events: wp.windowed(events, COUNTED).agg("user"),  # type: ignore[arg-type]
        "aggregates: must be aggregates of windows_pipeline, not 'user'; pass count()",
    ),
}


@pytest.mark.parametrize("what", USES_REFUSED)
def test_uses_refused(events: DataFrame, what: str) -> None:
    """Rule F3: what has no meaning on this DataFrame, before anything runs."""
    use, message = USES_REFUSED[what]
    with pytest.raises(ValueError) as refused:  # noqa: PT011  the text is compared below
        use(events)
    assert str(refused.value).startswith(message)


@pytest.mark.parametrize("window", [TUMBLE.on("timestamp"), COUNTED.on("timestamp")])
def test_a_stream_is_refused(spark: SparkSession, window: GroupWindow) -> None:
    """Rule F3: with or without windows, nothing is computed of what never ends."""
    stream = spark.readStream.format("rate").load()
    with pytest.raises(
        ValueError,
        match=r"events: must be a batch DataFrame, but is a stream.*write its micro-batches",
    ):
        wp.windowed(stream, window)
    with pytest.raises(
        ValueError,
        match=r"events: must be a batch DataFrame, but is a stream.*write its micro-batches",
    ):
        stream.transform(wp.windows(window).agg())
    tumbling = TimeWindows.of_size_with_no_grace("1 minute")
    with pytest.raises(
        ValueError, match="events: must be a batch DataFrame, but is a streaming DataFrame"
    ):
        stream.transform(wp.windows(tumbling, event_time="timestamp").agg(count()))
