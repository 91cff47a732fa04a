"""FLIP-11's group windows on a DataFrame: what works and what is refused (rules F1, F3)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from oracle_count import count_windows
from windows_pipeline import (
    Session,
    SessionWindows,
    Slide,
    TimeWindows,
    Tumble,
    aggregate,
    avg,
    collect_list,
    count,
    first,
    group_windows,
    last,
    max_,
    rows,
    sum_,
)
from windows_pipeline.windows import CountWindows, GroupWindow

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
# Arrival, user, minutes after noon, amount; they do not come by time.
EVENTS = [
    (0, "a", 0, 1),
    (1, "b", 3, 2),
    (2, "a", 12, 4),
    (3, None, 3, 8),
    (4, "a", 9, 16),
    (5, "b", 19, None),
    (6, "a", -1, 64),
    (7, None, 40, 128),
    (8, "a", 20, 256),
]
BY_TIME: dict[str, tuple[GroupWindow, Any]] = {
    "tumbling": (
        Tumble.over("10 minutes").on("ts").alias("w"),
        TimeWindows.of_size_with_no_grace("10 minutes"),
    ),
    "sliding": (
        Slide.over(timedelta(minutes=10)).every("4 minutes").on("ts").alias("w"),
        TimeWindows.of_size_with_no_grace("10 minutes").advance_by("4 minutes"),
    ),
    "sliding with gaps": (
        Slide.over("4 minutes").every("10 minutes").on("ts").alias("w"),
        TimeWindows.of_size_with_no_grace("4 minutes").advance_by("10 minutes"),
    ),
    "session": (
        Session.with_gap("8 minutes").on("ts").alias("w"),
        SessionWindows.of_inactivity_gap_with_no_grace("8 minutes"),
    ),
}


@pytest.fixture(scope="module")
def events(spark: SparkSession) -> DataFrame:
    rows_of = [
        (at, user, NOON + timedelta(minutes=minutes), amount, minutes)
        for at, user, minutes, amount in EVENTS
    ]
    return spark.createDataFrame(
        rows_of, "at bigint, user string, ts timestamp, amount bigint, minutes bigint"
    ).persist()


def held_by_time(window: Any, minutes: list[int]) -> list[tuple[int, int, list[int]]]:
    """Start, end and what each window of one key holds, by rules C1 and D1, in minutes."""
    if isinstance(window, SessionWindows):
        gap = window.gap_ms // 60_000
        sessions: list[list[int]] = []
        for minute in sorted(minutes):
            if sessions and minute - sessions[-1][-1] <= gap:
                sessions[-1].append(minute)
            else:
                sessions.append([minute])
        return [(held[0], held[-1] + gap, held) for held in sessions]
    size, advance = window.size_ms // 60_000, window.advance_ms // 60_000
    starts = range(-20 * advance, 20 * advance, advance)  # noon is a multiple of 4 and 10 minutes
    windows = [(s, s + size, sorted(m for m in minutes if s <= m < s + size)) for s in starts]
    return [window for window in windows if window[2]]


@pytest.mark.parametrize("keyed", [True, False])
@pytest.mark.parametrize("kind", BY_TIME)
def test_windows_by_time(events: DataFrame, kind: str, keyed: bool) -> None:  # noqa: FBT001
    """Rules F1, C1 and D1: the end of a session is its last record and the gap."""
    window, spec = BY_TIME[kind]
    keys = ["user"] if keyed else []
    found = (
        group_windows(events, window)
        .group_by("w", *keys)
        .select(*keys, "w.start", "w.end", collect_list("minutes").alias("held"))
    )
    assert found.columns == [*keys, "start", "end", "held"]
    expected = [
        (*((user,) if keyed else ()), NOON + timedelta(minutes=s), NOON + timedelta(minutes=e), h)
        for user in ({user for _, user, *_ in EVENTS} if keyed else [None])
        for s, e, h in held_by_time(
            spec, [minutes for _, own, minutes, _ in EVENTS if not keyed or own == user]
        )
    ]
    got = [
        tuple(x.astimezone(UTC) if isinstance(x, datetime) else x for x in row)
        for row in found.collect()
    ]
    assert sorted(got, key=repr) == sorted(expected, key=repr)


@pytest.mark.parametrize("keyed", [True, False])
@pytest.mark.parametrize(
    ("window", "spec"),
    [
        (Tumble.over(rows(2)), CountWindows(2, 2)),
        (Slide.over(rows(3)).every(rows(1)), CountWindows(3, 1)),
        (Slide.over(rows(1)).every(rows(3)), CountWindows(1, 3)),
        (Slide.over(rows(3)).every(rows(2)).with_short_first(), CountWindows(3, 2, True)),
    ],
)
def test_windows_by_rows(
    events: DataFrame,
    window: GroupWindow,
    spec: CountWindows,
    keyed: bool,  # noqa: FBT001
) -> None:
    """Rule F1: by arrival, per key or over all; what does not fill a window makes none."""
    assert window.windows == spec
    keys = ["user"] if keyed else []
    arrived = group_windows(events.orderBy("ts"), window.on("at").alias("w"))
    found = arrived.group_by("w", *keys).select(
        *keys, "w.start", "w.end as fired", collect_list("at").alias("held"), sum_("amount")
    )
    expected = [
        (
            *((key,) if keyed else ()),
            held[0],
            held[-1],
            list(held),
            sum(values)
            if (values := [v for p in held if (v := EVENTS[p][3]) is not None])
            else None,
        )
        for key, held in count_windows(
            [user if keyed else None for _, user, *_ in EVENTS],
            spec.size,
            spec.advance,
            short_first=spec.short_first,
        )
    ]
    assert found.columns == [*keys, "start", "fired", "held", "sum_amount"]
    assert sorted(map(tuple, found.collect()), key=repr) == sorted(expected, key=repr)


def test_processing_time_goes_by_a_column_of_ingest_time(events: DataFrame) -> None:
    """Rule F1: the same windows, of the time at which records came; here a bigint of ms."""
    window = Tumble.over("4 ms").on("at").alias("w")
    found = group_windows(events, window).group_by("user", "w")
    counted = found.select("w", "user", count().alias("n"), max_("amount").alias("most"))
    assert counted.where("user = 'a'").orderBy("w.start").select("w.*", "n", "most").collect() == [
        (0, 4, 2, 4),
        (4, 8, 2, 64),
        (8, 12, 1, 256),
    ]


def test_every_aggregate_with_conditions_and_expressions(events: DataFrame) -> None:
    """Rule G1: first and last of windows by rows go by arrival."""
    window = Tumble.over(rows(5)).on("at").alias("w")
    (row,) = (
        group_windows(events, window)
        .group_by("w", "user")
        .select(
            first("minutes"),
            last("minutes").alias("latest"),
            count("amount").where("amount > 4").alias("large"),
            avg(F.col("amount") * 2).alias("twice"),
            "user",
        )
        .collect()
    )
    assert row.asDict() == {
        "first_minutes": 0,
        "latest": 20,
        "large": 3,
        "twice": (1 + 4 + 16 + 64 + 256) * 2 / 5,
        "user": "a",
    }


def test_windows_of_windows(events: DataFrame) -> None:
    """A result is a DataFrame as any other: the largest of each two sums."""
    inner = group_windows(events, Tumble.over("10 minutes").on("ts").alias("w"))
    sums = inner.group_by("w", "user").select("user", "w.start", sum_("amount").alias("total"))
    outer = group_windows(sums, Tumble.over(rows(2)).on("start").alias("pair"))
    found = outer.group_by("pair", "user").select("user", max_("total").alias("most"))
    assert sorted(map(tuple, found.collect())) == [("a", 64), ("a", 256), ("b", 2)]


def test_it_is_the_engine_of_aggregate(events: DataFrame) -> None:
    """The same windows as `aggregate` gives where all records are on time."""
    window, spec = BY_TIME["sliding"]
    grouped = group_windows(events, window).group_by("w", "user")
    found = grouped.select("user", "w.start", "w.end", count(), sum_("amount"))
    of = [count(), sum_("amount")]
    other = events.transform(aggregate(spec, by="user", event_time="ts", of=of))
    wanted = other.select("user", "window_start", "window_end", "count", "sum_amount")
    assert found.exceptAll(wanted).isEmpty()
    assert wanted.exceptAll(found).isEmpty()


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
    "half a row": (lambda: rows(1.5), "rows: 1.5 is no whole number of rows"),  # type: ignore[arg-type]
    "half a millisecond": (
        lambda: Tumble.over(timedelta(microseconds=500)),
        "over: datetime.timedelta(microseconds=500) has a part smaller than a millisecond",
    ),
    "a number without unit": (lambda: Tumble.over("10"), "over: '10' is no duration"),
    "time every rows": (
        lambda: Slide.over("1 minute").every(rows(5)),
        "every: RowCount(count=5) does not go with over('1 minute')",
    ),
    "rows every time": (
        lambda: Slide.over(rows(5)).every("1 minute"),
        "every: '1 minute' does not go with over(RowCount(count=5))",
    ),
    "session of rows": (
        lambda: Session.with_gap(rows(3)),  # type: ignore[arg-type]
        "with_gap: RowCount(count=3): a session ends with a silence",
    ),
    "short windows by time": (
        lambda: Tumble.over("1 minute").with_short_first(),
        "with_short_first: only windows by rows",
    ),
    "alias": (lambda: Tumble.over("1 minute").alias("w.start"), "alias: 'w.start' is no name"),
    "column": (lambda: Tumble.over("1 minute").on(""), "on: '' is no column"),
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
        "'w' would be the name of two columns",
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
        "'user' would be the name of two columns",
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
