"""A key's time cut into time shards gives the windows of the whole key."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tests.support.spark_cases import SHORT_SHARDS
from windows_pipeline.aggregates import Aggregate, parse_aggregate
from windows_pipeline.checks.window_rules import recount_windows
from windows_pipeline.engine.time_shards import (
    PREFERRED_SHARD_MS,
    TIME_SHARD,
    in_time_shards,
    length_for_look_back,
    shard_length_ms,
    within_a_day,
)
from windows_pipeline.engine.windows import evaluate_windows, late
from windows_pipeline.incremental.late import late_records
from windows_pipeline.kernels.windows.chunk import ComputedDay
from windows_pipeline.tuning import Tuning
from windows_pipeline.windows import (
    ForwardSlidingWindows,
    SessionWindows,
    SlidingWindows,
    TimeWindows,
    WindowSpec,
)

SHARDED: dict[str, WindowSpec] = {
    "sliding": SlidingWindows(7, 5),
    "sliding, with empty windows": SlidingWindows(7, 5, emit_empty=True),
    "sliding, clamped": SlidingWindows(7, 5, first_window_start_ms=-20),
    "forward": ForwardSlidingWindows(9, 4),
    "hopping": TimeWindows(10, 3, 6),
    "hopping with gaps": TimeWindows(4, 11, 6),
    "tumbling": TimeWindows(8, 8, 0),
}
AGGREGATES: list[Aggregate] = [
    parse_aggregate("total", "sum(value)"),
    parse_aggregate("least", "min(value)"),
    parse_aggregate("latest", "last(value)"),
    parse_aggregate("different", "count_distinct(value)"),
]


def records(spark: SparkSession) -> DataFrame:
    """Dense and lonely records on both sides of zero, some of them late, partly or wholly."""
    random = Random(450)
    rows = [
        (
            0,
            random.choice(["a", "b", None]),
            time_ms := random.choice([random.randint(-60, 60), random.randint(-900, 900)]),
            random.choice([None, time_ms + random.randint(-12, 12)]),
            random.randint(0, 9),
        )
        for _ in range(400)
    ]
    # Late for its left window, in a window that an earlier record made, wherever a shard begins.
    for first_ms in range(16):
        for time_ms, close_ms in ((first_ms, None), (first_ms + 2, first_ms + 3)):
            rows.append((0, f"k{first_ms}", time_ms, close_ms, 1))
    schema = (
        "_computed_day int, key string, _event_time_ms bigint, _close_time_ms bigint, value bigint"
    )
    return spark.createDataFrame(rows, schema)


@pytest.mark.parametrize("kind", SHARDED)
def test_time_shards_give_the_windows_of_the_whole_key(spark: SparkSession, kind: str) -> None:
    """Rules A5, B2 to B8 and C1: each window once, wherever time is cut."""
    windows = SHARDED[kind]
    days = {0: ComputedDay(windows, close_after_ms=500)}
    length_ms = shard_length_ms(windows, Tuning(shard_look_backs=1))
    assert length_ms is not None

    events = records(spark).persist()
    whole = evaluate_windows(events, days, ["key"], AGGREGATES)
    sharded = in_time_shards(events, windows, length_ms)
    assert sharded.select(TIME_SHARD).distinct().count() > 20
    cut = evaluate_windows(events, days, ["key"], AGGREGATES, shard_ms=length_ms)
    assert cut.columns == whole.columns
    expected = sorted(map(repr, whole.collect()))
    assert len(expected) > 60
    assert sorted(map(repr, cut.collect())) == expected
    events.unpersist()


@pytest.mark.parametrize("kind", SHARDED)
def test_time_shards_list_the_records_that_no_window_of_the_whole_key_counts(
    spark: SparkSession, kind: str
) -> None:
    """Rule A5: each record that no window counts once, for any reason, wherever time is cut."""
    windows = SHARDED[kind]
    days = {0: ComputedDay(windows, close_after_ms=500)}
    length_ms = shard_length_ms(windows, Tuning(shard_look_backs=2))
    assert length_ms is not None

    events = records(spark).persist()
    found = late(events, days, ["key"], shard_ms=length_ms)
    expected = sorted(map(repr, late(events, days, ["key"]).collect()))
    assert len(expected) > 20
    assert sorted(map(repr, found.collect())) == expected
    events.unpersist()


def test_late_records_of_windows_need_the_windows(spark: SparkSession) -> None:
    """Rule A5: whether a partly late record is counted follows from them."""
    events = records(spark).withColumn("_is_new", F.lit(True))
    with pytest.raises(ValueError, match="pass what arrival_unit_windows returned"):
        late_records(events, None, SlidingWindows(10, 5), ["value"], [0])


@pytest.mark.parametrize("kind", [kind for kind in SHARDED if kind != "forward"])
def test_the_recount_of_time_shards_is_that_of_the_whole_key(
    spark: SparkSession, kind: str
) -> None:
    """Rules A5 and B4 to B6: of right, doubled and moved windows, and of new records."""
    spec = SHARDED[kind]
    assert isinstance(spec, (SlidingWindows, TimeWindows))
    events = records(spark).withColumn("_is_new", F.col("value") % 2 == 0).persist()
    windows = evaluate_windows(events, {0: ComputedDay(spec, close_after_ms=500)}, ["key"], [])
    # So no window contains some records.
    windows = windows.where("record_count % 5 != 1")
    moved = windows.where("record_count % 2 = 0").withColumn(
        "_window_end_ms", F.col("_window_end_ms") + F.lit(1)
    )
    doubled = windows.where("record_count % 3 = 0")
    judged = windows.unionByName(moved).unionByName(doubled).persist()

    def recount(tuning: Tuning) -> tuple[list[str], dict[str, int]]:
        rows = recount_windows(events, judged, spec, {}, tuning).collect()
        counted: Counter[str] = Counter()
        for row in rows:
            if row.counted is not None:
                counted[str(row.key)] += row.counted
        return sorted(str(row) for row in rows if row.counted is None), counted

    whole, counted = recount(Tuning(max_shard_ms=0))
    assert len(whole) > 50
    for finding in (
        "same_records=2",
        "departed_on_bound=True",
        "near_partly_late=1",
        "is_window=False",
    ):
        assert any(finding in row for row in whole), finding
    assert recount(SHORT_SHARDS) == (whole, counted)
    events.unpersist()
    judged.unpersist()


@given(st.integers(1, 10**10))
def test_a_time_shard_of_a_day_is_a_whole_number_of_look_backs(look_back_ms: int) -> None:
    """So no tumbling window is cut."""
    length_ms = within_a_day(length_for_look_back(look_back_ms))
    assert length_ms is not None
    assert length_ms % look_back_ms == 0
    assert 16 <= length_ms // look_back_ms <= 64
    assert length_ms <= max(PREFERRED_SHARD_MS, 16 * look_back_ms)


def test_a_day_is_many_time_shards_unless_windows_are_long() -> None:
    """A shard is 64 look-backs, or 90 minutes where that is shorter, but at least 16 look-backs."""
    minute_ms = 60_000
    lengths_ms = [
        within_a_day(shard_length_ms(TimeWindows(size_ms, size_ms, 0)))
        for size_ms in (1000, minute_ms, 3 * minute_ms, 60 * minute_ms)
    ]
    assert lengths_ms == [64_000, 64 * minute_ms, 90 * minute_ms, 16 * 60 * minute_ms]
    assert within_a_day(None) is None


def test_windows_that_depend_on_a_whole_key_have_no_time_shards() -> None:
    """Sessions have any length (rule D1); empty hopping windows begin with the key (C1)."""
    assert shard_length_ms(SessionWindows(10, 0)) is None
    assert shard_length_ms(TimeWindows(10, 5, 0, emit_empty=True)) is None
    assert shard_length_ms(SlidingWindows(2**48, 0)) is None
