"""Alerts and episodes in Spark against the oracle, all cases in one job."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from datetime import date, timedelta

import pytest
from hypothesis import strategies as st
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from tests.support.oracle import alerts as oracle_alerts
from tests.support.oracle import episodes as oracle_episodes
from tests.support.oracle import notifications as oracle_notifications
from tests.support.oracle.aggregates import Number
from tests.support.oracle.windows import SlidingDefinition, WindowRow
from tests.support.spark_cases import instant, sample, texts
from windows_pipeline.incremental.alerts import RuleSql, broken_rules, with_episodes
from windows_pipeline.incremental.closed_days import ClosedDays
from windows_pipeline.incremental.episodes import episode_rows
from windows_pipeline.incremental.notifications import episode_events
from windows_pipeline.incremental.silences import with_next_record
from windows_pipeline.kernels.time import NEVER_MS
from windows_pipeline.windows import SlidingWindows

LENGTH_MS = 10
CLOSES = (-20, 5, 20, 45)
"""The close time after each arrival unit."""
SEVERITIES = st.none() | st.sampled_from((-1.0, 0.0, -0.0, 1.0, 2.0, math.inf, -math.inf, math.nan))

Case = list[WindowRow]


def window(key: str | None, end: int, severity: float | None, count: int = 1) -> WindowRow:
    values: dict[str, Number | None] = {"worst": severity}
    return WindowRow(0, key, end - LENGTH_MS, end, end, end, count, values, True)


CASES: st.SearchStrategy[Case] = st.lists(
    st.builds(
        window,
        st.sampled_from(("a", "b", None)),
        st.integers(-40, 40),
        SEVERITIES,
        st.integers(0, 3),
    ),
    max_size=14,
    unique_by=lambda row: (row.key, row.end),
)
SMALLEST_LAST = [window("a", 0, None), window("a", 1, -math.inf), window("a", 30, None)]


def breaks(row: WindowRow) -> bool:
    return row.record_count < 3


def severity(row: WindowRow) -> Number | None:
    worst: Number | None = row.values["worst"]
    return worst


@pytest.fixture(scope="module")
def cases() -> list[Case]:
    return [SMALLEST_LAST, *sample(CASES, 120)]


@pytest.fixture(scope="module")
def final_windows(spark: SparkSession, cases: Sequence[Case]) -> DataFrame:
    """Every case's windows; `case` is its number."""
    rows = [
        (number, row.key, instant(row.start), instant(row.end), row.record_count, severity(row))
        for number, case in enumerate(cases)
        for row in case
    ]
    return spark.createDataFrame(
        rows,
        "case int, key string, window_start timestamp, window_end timestamp, "
        "record_count bigint, worst double",
    )


def in_one_job(final_windows: DataFrame, severity: str = "worst") -> DataFrame:
    """Alerts of all cases; a rule's name holds its case, so that episodes are of one."""
    rule = RuleSql("record_count < 3", severity)
    raised = broken_rules(final_windows, {"few": rule})
    of_case = F.concat("rule", F.lit(" "), F.col("case").cast("string"))
    by_case = {row.rule: rule for row in raised.select(of_case.alias("rule")).distinct().collect()}
    return with_episodes(raised.withColumn("rule", of_case), by_case)


def milliseconds(rows: DataFrame, *names: str) -> DataFrame:
    number = F.substring_index("rule", " ", -1).cast("int").alias("number")
    return rows.select(number, "*", *(F.unix_millis(name).alias(f"{name}_ms") for name in names))


def test_alerts_are_those_of_the_oracle(final_windows: DataFrame, cases: Sequence[Case]) -> None:
    """Rule E5: which windows break the rule, and the episode of each."""
    rows = milliseconds(
        in_one_job(final_windows), "window_start", "window_end", "episode_start"
    ).collect()
    found = [
        (r.number, r.key, r.window_start_ms, r.window_end_ms, r.episode_start_ms, r.severity)
        for r in rows
    ]
    wanted = [
        (number, *alert[1:-1])
        for number, case in enumerate(cases)
        for alert in oracle_alerts.alerts(case, breaks, severity)
    ]
    assert texts(found) == texts(wanted)


def test_a_severity_grows_with_its_episode(final_windows: DataFrame, cases: Sequence[Case]) -> None:
    """Rule E5: `episode_ms` is from the start of the episode's first window to a window's end."""
    few = final_windows.where("case < 30")
    times = ("window_end", "episode_start")
    found = [
        (row.number, row.key, row.window_end_ms, row.episode_start_ms, row.severity)
        for row in milliseconds(in_one_job(few, "`episode_ms` / 2"), *times).collect()
    ]
    wanted = [
        (number, alert.key, alert.end, alert.episode, (alert.end - alert.episode) / 2)
        for number, case in enumerate(cases[:30])
        for alert in oracle_alerts.alerts(case, breaks, severity)
    ]
    assert {lasted for *_, lasted in wanted} > {LENGTH_MS / 2}
    assert texts(found) == texts(wanted)


def closed_days(closes: Sequence[int]) -> ClosedDays:
    """Arrival units with these close times; nothing was closed before."""
    after_ms = {arrival_unit_day(number): close for number, close in enumerate(closes)}
    return ClosedDays(NEVER_MS, after_ms)


def closed_alerts(final_windows: DataFrame) -> DataFrame:
    """The alerts of closed windows, each with its arrival unit and its key's next record."""
    arrival_unit = closed_in(F.unix_millis("window_end"), CLOSES)
    alerts = in_one_job(final_windows).withColumn("arrival_unit", arrival_unit)
    seen = final_windows.withColumn("key", key_of_case()).where(arrival_unit.isNotNull())
    followed = with_next_record(alerts.withColumn("key", key_of_case()), seen)
    return followed.where("arrival_unit IS NOT NULL").withColumn("key", F.col("key.key"))


def test_episodes_are_those_of_the_oracle(final_windows: DataFrame, cases: Sequence[Case]) -> None:
    """Rules B8, E5: what each day lists, with the worst window, the earliest among equals."""
    rows = episode_rows(
        closed_alerts(final_windows),
        SlidingWindows(LENGTH_MS, 0, emit_empty=True),
        {},
        ("window_start", "window_end"),
        ("record_count", "worst"),
        F.lit(True),
        closed_days(CLOSES),
    )
    times = ("episode_start", "until", "open_until", "window_start", "window_end")
    found = [
        (
            row.number, (row.arrival_unit - arrival_unit_day(0)).days, row.key,
            row.episode_start_ms, row.until_ms, row.open_until_ms, row.has_alert, row.alerts,
            unsigned(row.severity), row.window_start_ms, row.window_end_ms,
        )
        for row in milliseconds(rows, *times).collect()
    ]  # fmt: skip
    wanted = []
    for number, case in enumerate(cases):
        closed = [row._replace(arrival_unit=bisect_right(CLOSES, row.end)) for row in case]
        closed = [row for row in closed if row.arrival_unit < len(CLOSES)]
        raised = oracle_alerts.alerts(closed, breaks, severity)
        wanted += [
            (number, *one[:7], unsigned(one.severity), *one[8:])
            for one in oracle_episodes.listed(raised, CLOSES, LENGTH_MS, closed)
        ]
    assert {(one[5] is None, one[6]) for one in wanted} == {
        (is_silent, has_alert) for is_silent in (True, False) for has_alert in (True, False)
    }
    assert texts(found) == texts(wanted)


def test_a_missing_day_ends_no_episode(spark: SparkSession) -> None:
    """Rule A4: after it nothing closes."""
    ended = spark.range(2).select(ClosedDays(NEVER_MS, {}).ended_in(F.col("id")).alias("day"))
    assert [row.day for row in ended.collect()] == [None, None]


def unsigned(number: Number | None) -> Number | None:
    """The number; zeros of either sign are equal."""
    return None if number is None else number + 0.0


def test_notifications_are_those_of_the_oracle(
    final_windows: DataFrame, cases: Sequence[Case]
) -> None:
    """Rule E6: any severities; an arrival unit with a later close time closes a window."""
    definition = SlidingDefinition(time_difference=LENGTH_MS, grace=0, emit_empty=True)
    happened = episode_events(
        closed_alerts(final_windows),
        SlidingWindows(LENGTH_MS, 0, emit_empty=True),
        ("window_start", "window_end"),
        ("worst",),
        {},
        F.col("arrival_unit") > F.lit(arrival_unit_day(0)),
        closed_days(CLOSES),
    )
    times = ("episode_start", "window_start", "window_end", "until")
    found = [
        (
            row.number, (row.arrival_unit - arrival_unit_day(0)).days, row.key,
            row.episode_start_ms, row.event, row.window_start_ms, row.window_end_ms, row.until_ms,
            row.severity,
        )
        for row in milliseconds(happened, *times).collect()
        if row.event == "ended" or row.arrival_unit > arrival_unit_day(0)
    ]  # fmt: skip
    wanted = []
    for number, case in enumerate(cases):
        closed = [row._replace(arrival_unit=bisect_right(CLOSES, row.end)) for row in case]
        closed = [row for row in closed if row.arrival_unit < len(CLOSES)]
        raised = oracle_alerts.alerts(closed, breaks, severity)
        wanted += [
            (number, *event)
            for event in oracle_notifications.events(raised, CLOSES, definition, closed)
            if event.event == "ended" or event.arrival_unit > 0
        ]
    assert {event[4] for event in wanted} == {"opened", "worsened", "ended"}
    assert any(event[4] == "ended" and silent_before(cases[event[0]], event) for event in wanted)
    assert texts(found) == texts(wanted)


# Key, end and number of records of final windows. `b` has a record soon after its silence, and the
# second silence of `a` breaks no rule; `c` has no record again.
SILENCES = [
    ("a", 0, 1), ("a", 11, 0), ("a", 50, 1), ("a", 61, 0), ("a", 90, 1),
    ("b", 0, 1), ("b", 11, 0), ("b", 15, 1),
    ("c", 0, 1), ("c", 11, 0),
    (None, 0, 1), (None, 11, 0), (None, 150, 2), (None, 155, 3),
]  # fmt: skip


def test_a_silence_ends_with_the_next_record(spark: SparkSession) -> None:
    """Rules B8, E6: whenever that comes; and a severity follows from how long it took."""
    closes = (20, 60, 200)
    rows = [(key, instant(end - LENGTH_MS), instant(end), count) for key, end, count in SILENCES]
    columns = "key string, window_start timestamp, window_end timestamp, record_count bigint"
    final = spark.createDataFrame(rows, columns)
    early = "record_count = 0 AND unix_millis(window_end) < 20"
    rules = {"quiet 0": RuleSql(early, "`episode_ms`")}
    raised = with_episodes(broken_rules(final, rules), rules)
    arrival_unit = closed_in(F.unix_millis("window_end"), closes)
    happened = episode_events(
        with_next_record(raised.withColumn("arrival_unit", arrival_unit), final),
        SlidingWindows(LENGTH_MS, 0, emit_empty=True),
        ("window_start", "window_end"),
        (),
        rules,
        F.lit(True),
        closed_days(closes),
    )
    found = {
        ((row.arrival_unit - arrival_unit_day(0)).days, row.key, row.event, row.since_ms,
         row.until_ms, row.window_end_ms, row.severity)
        for row in milliseconds(happened, "since", "until", "window_end").collect()
    }  # fmt: skip
    assert found == {
        (0, "a", "opened", 1, 11, 11, 10.0),
        (1, "a", "ended", 1, 50, 11, 49.0),
        (0, "b", "opened", 1, 11, 11, 10.0),
        # Until 21 another window could have continued the episode; the first arrival unit ends
        # earlier.
        (1, "b", "ended", 1, 15, 11, 14.0),
        (0, "c", "opened", 1, 11, 11, 10.0),
        (0, None, "opened", 1, 11, 11, 10.0),
        (2, None, "ended", 1, 150, 11, 149.0),
    }


def test_a_day_lists_a_silence_for_32_days_of_event_time(spark: SparkSession) -> None:
    """Rules B8, E5: whether 'a' is back after just 32 days, a millisecond later, or never."""
    most = 32 * 86_400_000
    closes = (20, most - 1, most, most + 1, most + 2)
    day_of = [arrival_unit_day(number) for number in range(len(closes))]
    final_columns = "key string, window_start timestamp, window_end timestamp, record_count bigint"
    rules = {"quiet 0": RuleSql("record_count = 0", "`episode_ms`")}
    spec = SlidingWindows(LENGTH_MS, 0, emit_empty=True)
    rows = []
    backs = {"just": most, "later": most + 1, "never": None}
    for key, back in backs.items():
        rows.append((key, instant(0), instant(LENGTH_MS), 0))
        if back is not None:
            rows.append((key, instant(back - LENGTH_MS), instant(back), 1))
    final = spark.createDataFrame(rows, final_columns)
    raised = with_episodes(broken_rules(final, rules), rules)
    listed = episode_rows(
        with_next_record(raised.withColumn("arrival_unit", F.lit(day_of[0])), final),
        spec,
        rules,
        ("window_start", "window_end"),
        ("record_count",),
        F.lit(True),
        closed_days(closes),
    )
    shown = {
        (row.key, day_of.index(row.arrival_unit)): (
            row.until_ms,
            row.open_until is None,
            row.severity,
        )
        for row in milliseconds(listed, "until").collect()
    }
    still = {0: (20, True, 20.0), 1: (most - 1, True, most - 1.0), 2: (most, True, float(most))}
    assert shown == {
        # Windows that end at the close time are open, so that the third day has not seen it yet.
        **{("just", day): row for day, row in still.items()},
        ("just", 3): (most, False, float(most)),
        # The end is listed, however late it comes.
        **{("later", day): row for day, row in still.items()},
        ("later", 4): (most + 1, False, float(most + 1)),
        **{("never", day): row for day, row in still.items()},
    }


def closed_in(last_ms: Column, closes: Sequence[int]) -> Column:
    """The first arrival unit whose close time is later than an instant; null if none is."""
    arrival_unit = F.lit(None).cast("date")
    for number, close in reversed(list(enumerate(closes))):
        arrival_unit = F.when(last_ms < close, F.lit(arrival_unit_day(number))).otherwise(
            arrival_unit
        )
    return arrival_unit


def key_of_case() -> Column:
    """The key with its case, as a key's windows are those of one case."""
    return F.struct("key", "case")


def silent_before(case: Case, event: tuple[object, ...]) -> bool:
    """Whether an episode lasted until a window that is none of its alerts."""
    until = event[-2]
    return any(row.end == until and row.record_count == 3 for row in case if row.key == event[2])


def arrival_unit_day(arrival_unit: int) -> date:
    return date(2026, 11, 1) + timedelta(days=arrival_unit)


def test_each_rule_raises_its_own_alerts(spark: SparkSession) -> None:
    """Rule E5: null is not broken, one window may break two rules, a severity is a double."""
    windows = spark.createDataFrame(
        [("a", 2, None), ("b", 9, 70.0), ("c", 2, 61.5)],
        "key string, record_count bigint, mean double",
    ).selectExpr("*", "timestamp_millis(0) window_start", "timestamp_millis(5) window_end")
    rules = {
        "quiet": RuleSql("record_count < 4", "4 - record_count"),
        "storm": RuleSql("mean > 60", "mean"),
    }
    found = {(row.rule, row.key, row.severity) for row in broken_rules(windows, rules).collect()}
    assert found == {
        ("quiet", "a", 2.0),
        ("quiet", "c", 2.0),
        ("storm", "b", 70.0),
        ("storm", "c", 61.5),
    }
