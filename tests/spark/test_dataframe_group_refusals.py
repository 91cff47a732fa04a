"""What FLIP-11's group windows refuse (rule F3)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from windows_pipeline import (
    Session,
    Slide,
    TimeWindows,
    Tumble,
    aggregate,
    count,
    group_windows,
    rows,
    sum_,
)
from windows_pipeline.windows import GroupWindow


@pytest.fixture(scope="module")
def events(spark: SparkSession) -> DataFrame:
    """No record is needed: all is refused before anything runs."""
    return spark.createDataFrame([], "at bigint, user string, ts timestamp, amount bigint")


SPECS_REFUSED: dict[str, tuple[Callable[[], object], str]] = {
    "size zero": (lambda: Tumble.over("0 minutes"), "over: '0 seconds' must be above zero"),
    "size negative": (lambda: Slide.over("-1 minute"), "over: '-1 minute' must be above zero"),
    "advance zero": (
        lambda: Slide.over("1 minute").every("0 ms"),
        "every: '0 seconds' must be above zero",
    ),
    "gap zero": (lambda: Session.with_gap("0 ms"), "with_gap: '0 seconds' must be above zero"),
    "no rows": (lambda: Tumble.over(rows(0)), "over: 0 rows must be above zero"),
    "negative rows": (lambda: Slide.over(rows(-2)), "over: -2 rows must be above zero"),
    "advance of no rows": (
        lambda: Slide.over(rows(2)).every(rows(0)),
        "every: 0 rows must be above zero",
    ),
    "half a row": (lambda: rows(1.5), "rows: 1.5 is not a whole number"),  # type: ignore[arg-type]
    "half a millisecond": (
        lambda: Tumble.over(timedelta(microseconds=500)),
        "over: datetime.timedelta(microseconds=500) has a part smaller than a millisecond",
    ),
    "a number without unit": (lambda: Tumble.over("10"), "over: '10' has no unit; write a unit"),
    "time every rows": (
        lambda: Slide.over("1 minute").every(rows(5)),
        "every: RowCount(count=5) must have the unit of over('1 minute')",
    ),
    "rows every time": (
        lambda: Slide.over(rows(5)).every("1 minute"),
        "every: '1 minute' must have the unit of over(RowCount(count=5))",
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
    make, told = SPECS_REFUSED[what]
    with pytest.raises(ValueError, match=r"^\w+: ") as refused:
        make()
    assert str(refused.value).startswith(told)


TUMBLE = Tumble.over("10 minutes").on("ts").alias("w")
COUNTED = Tumble.over(rows(2)).on("at").alias("w")
USES_REFUSED: dict[str, tuple[Callable[[DataFrame], object], str]] = {
    "no time column": (
        lambda events: group_windows(events, Tumble.over("1 minute").alias("w")),
        "window: it has no column of time; name it with .on",
    ),
    "no arrival column": (
        lambda events: group_windows(events, Tumble.over(rows(2)).alias("w")),
        "window: it has no column of the order of arrival; name it with .on",
    ),
    "no alias": (
        lambda events: group_windows(events, Tumble.over("1 minute").on("ts")),
        "window: it has no name to group by",
    ),
    "no advance": (
        lambda events: group_windows(events, Slide.over("1 minute")),  # type: ignore[arg-type]
        "window: SlideOver(size='1 minute') is no group window; end Slide.over(...) with",
    ),
    "alias hides a column": (
        lambda events: group_windows(events, TUMBLE.alias("User")),
        "alias: 'User' hides the column of that name",
    ),
    "missing time column": (
        lambda events: group_windows(events, TUMBLE.on("tss")),
        "on: there is no column 'tss'; did you mean 'ts'?",
    ),
    "time of another type": (
        lambda events: group_windows(events, TUMBLE.on("user")).group_by("w").select(count()),
        "event_time: 'user' is of type string; cast it",
    ),
    "arrival without an order": (
        lambda events: (
            group_windows(events.withColumn("tags", F.array("user")), COUNTED.on("tags"))
            .group_by("w")
            .select(count())
        ),
        "on: 'tags' is of type array<string>, which has no order",
    ),
    "no window to group by": (
        lambda events: group_windows(events, TUMBLE).group_by("user"),
        "group_by: the windows 'w' are not among ['user']",
    ),
    "alias twice": (
        lambda events: group_windows(events, TUMBLE).group_by("w", "w"),
        "group_by: 'w' comes twice; name it once",
    ),
    "missing key": (
        lambda events: group_windows(events, TUMBLE).group_by("w", "usr"),
        "group_by: there is no column 'usr'; did you mean 'user'?",
    ),
    "a column that is no key": (
        lambda events: group_windows(events, TUMBLE).group_by("w").select("user", count()),
        "select: 'user' is none of w.start, w.end, w",
    ),
    "two results of one name": (
        lambda events: (
            group_windows(events, TUMBLE)
            .group_by("w", "user")
            .select("user", count().alias("user"))
        ),
        "select: 'user' comes twice; rename one, as with count().alias(",
    ),
    "nothing selected": (
        lambda events: group_windows(events, COUNTED).group_by("w").select(),
        "select: there is nothing",
    ),
    "a Column": (
        lambda events: group_windows(events, COUNTED).group_by("w").select(F.col("w")),  # type: ignore[arg-type]
        "select: Column<'w'> is neither text nor an aggregate",
    ),
    "a sum of text": (
        lambda events: group_windows(events, COUNTED).group_by("w").select(sum_("user")),
        "sum(user): column 'user' is of type string",
    ),
}


@pytest.mark.parametrize("what", USES_REFUSED)
def test_uses_refused(events: DataFrame, what: str) -> None:
    """Rule F3: what has no meaning on this DataFrame, before anything runs."""
    use, told = USES_REFUSED[what]
    with pytest.raises(ValueError) as refused:  # noqa: PT011  the text is compared below
        use(events)
    assert str(refused.value).startswith(told)


@pytest.mark.parametrize("window", [TUMBLE.on("timestamp"), COUNTED.on("timestamp")])
def test_a_stream_is_refused(spark: SparkSession, window: GroupWindow) -> None:
    """Rule F3: with or without windows, nothing is computed of what never ends."""
    stream = spark.readStream.format("rate").load()
    with pytest.raises(ValueError, match=r"events: this is a stream.*write its micro-batches"):
        group_windows(stream, window)
    tumbling = TimeWindows.of_size_with_no_grace("1 minute")
    with pytest.raises(ValueError, match="events: this is a stream"):
        stream.transform(aggregate(tumbling, by=[], event_time="timestamp", of=[count()]))
