"""A key's time cut into slices gives the windows of the whole key."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from windows_pipeline.aggregates import Aggregate, parse_aggregate
from windows_pipeline.checks.recount_windows import window_evidence
from windows_pipeline.engine import time_shards as slices
from windows_pipeline.engine.windows import evaluate, late
from windows_pipeline.kernels.windows.chunk import Target
from windows_pipeline.windows import (
    ForwardSlidingWindows,
    SessionWindows,
    SlidingWindows,
    TimeWindows,
    WindowSpec,
)

SLICED: dict[str, WindowSpec] = {
    "sliding": SlidingWindows(7, 5),
    "sliding, silences told": SlidingWindows(7, 5, emit_empty=True),
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
    # Late for its left window, in that which an earlier record made, wherever a slice begins.
    for place in range(16):
        for time_ms, close_ms in ((place, None), (place + 2, place + 3)):
            rows.append((0, f"k{place}", time_ms, close_ms, 1))
    schema = (
        "_computed_day int, key string, _event_time_ms bigint, _close_time_ms bigint, value bigint"
    )
    return spark.createDataFrame(rows, schema)


@pytest.mark.parametrize("kind", SLICED)
def test_slices_give_the_windows_of_the_whole_key(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """Rules A5, B2 to B8 and C1: each window once, wherever slices are cut."""
    monkeypatch.setattr(slices, "REACHES_A_SLICE", 1)
    windows = SLICED[kind]
    targets = {0: Target(windows, close_after_ms=500)}
    length_ms = slices.slice_length_ms(windows)
    assert length_ms is not None

    events = records(spark).persist()
    whole = evaluate(events, targets, ["key"], AGGREGATES)
    sliced = slices.in_slices(events, windows, length_ms)
    assert sliced.select(slices.SLICE).distinct().count() > 20
    cut = evaluate(events, targets, ["key"], AGGREGATES, slice_ms=length_ms)
    assert cut.columns == whole.columns
    expected = sorted(map(repr, whole.collect()))
    assert len(expected) > 60
    assert sorted(map(repr, cut.collect())) == expected
    events.unpersist()


@pytest.mark.parametrize("kind", SLICED)
def test_slices_list_the_records_that_no_window_of_the_whole_key_counts(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """Rule A5: each late, uncovered or uncounted record once, wherever slices are cut."""
    monkeypatch.setattr(slices, "REACHES_A_SLICE", 2)
    windows = SLICED[kind]
    targets = {0: Target(windows, close_after_ms=500)}
    length_ms = slices.slice_length_ms(windows)
    assert length_ms is not None

    events = records(spark).persist()
    found = late(events, targets, ["key"], slice_ms=length_ms)
    expected = sorted(map(repr, late(events, targets, ["key"]).collect()))
    assert len(expected) > 20
    assert sorted(map(repr, found.collect())) == expected
    events.unpersist()


@pytest.mark.parametrize("kind", [kind for kind in SLICED if kind != "forward"])
def test_the_evidence_of_slices_is_that_of_the_whole_key(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """Rules A5 and B4 to B6: of right windows, doubled ones and moved ones, and of new records."""
    spec = SLICED[kind]
    assert isinstance(spec, (SlidingWindows, TimeWindows))
    events = records(spark).withColumn("_is_new", F.col("value") % 2 == 0).persist()
    windows = evaluate(events, {0: Target(spec, close_after_ms=500)}, ["key"], [])
    # So some records are held by none.
    windows = windows.where("record_count % 5 != 1")
    moved = windows.where("record_count % 2 = 0").withColumn(
        "_window_end_ms", F.col("_window_end_ms") + F.lit(1)
    )
    doubled = windows.where("record_count % 3 = 0")
    told = windows.unionByName(moved).unionByName(doubled).persist()

    def evidence() -> tuple[list[str], dict[str, int]]:
        rows = window_evidence(events, told, spec).collect()
        counted: Counter[str] = Counter()
        for row in rows:
            if row.counted is not None:
                counted[str(row.key)] += row.counted
        return sorted(str(row) for row in rows if row.counted is None), counted

    with monkeypatch.context() as patched:
        patched.setattr(slices, "MAX_SLICE_MS", 0)
        whole, counted = evidence()
    assert len(whole) > 50
    for told_of in (
        "same_records=2",
        "departed_on_bound=True",
        "near_partly_late=1",
        "is_window=False",
    ):
        assert any(told_of in row for row in whole), told_of
    monkeypatch.setattr(slices, "REACHES_A_SLICE", 4)
    monkeypatch.setattr(slices, "FEWEST_REACHES", 4)
    assert evidence() == (whole, counted)
    events.unpersist()
    told.unpersist()


@given(st.integers(1, 10**10))
def test_a_slice_of_a_day_is_so_many_whole_reaches(reach_ms: int) -> None:
    """So no tumbling window is cut."""
    length_ms = slices.within_a_day(slices.length_for_reach(reach_ms))
    assert length_ms is not None
    assert length_ms % reach_ms == 0
    assert 16 <= length_ms // reach_ms <= 64
    assert length_ms <= max(slices.DAYS_SLICE_MS, 16 * reach_ms)


def test_slices_of_a_day_are_many_unless_windows_are_long() -> None:
    """From 64 reaches to 16, and of these 90 minutes at most."""
    minute_ms = 60_000
    lengths_ms = [
        slices.within_a_day(slices.slice_length_ms(TimeWindows(size_ms, size_ms, 0)))
        for size_ms in (1000, minute_ms, 3 * minute_ms, 60 * minute_ms)
    ]
    assert lengths_ms == [64_000, 64 * minute_ms, 90 * minute_ms, 16 * 60 * minute_ms]
    assert slices.within_a_day(None) is None


def test_what_a_slice_cannot_know_is_not_sliced() -> None:
    """Sessions have any length (rule D1); silences of hopping windows begin with the key (C1)."""
    assert slices.slice_length_ms(SessionWindows(10, 0)) is None
    assert slices.slice_length_ms(TimeWindows(10, 5, 0, emit_empty=True)) is None
    assert slices.slice_length_ms(SlidingWindows(2**48, 0)) is None
