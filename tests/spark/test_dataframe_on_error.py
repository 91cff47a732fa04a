"""`on_error="null"`: an aggregate that can't be computed is null, and named (rule G3)."""

from __future__ import annotations

import pytest
from pyspark.errors import PythonException
from pyspark.sql import DataFrame, SparkSession

import windows_pipeline as wp
from windows_pipeline import (
    SessionWindows,
    SlidingWindows,
    TimeWindows,
    Trigger,
    count,
    sum_,
)
from windows_pipeline.flip11 import UNBOUNDED_RANGE, SlideRows, Tumble, rows

MOST = 2**63 - 1
TOTAL = sum_("n").alias("total")
EVENTS = [("a", 0, MOST), ("a", 3, 1), ("a", 20, 7), ("b", 3, 5), ("b", 4, 6)]


@pytest.fixture(scope="module")
def events(spark: SparkSession) -> DataFrame:
    listed = [(*event, number) for number, event in enumerate(EVENTS)]
    return spark.createDataFrame(listed, "key string, ms bigint, n bigint, at bigint").cache()


def answered(found: DataFrame, *columns: str) -> list[tuple[object, ...]]:
    return sorted(tuple(row) for row in found.select("key", *columns).collect())


WINDOW = ("window_start", "record_count", "total", "failed", "count")


@pytest.mark.parametrize("pre_aggregate", [True, False])
def test_hopping_windows(events: DataFrame, *, pre_aggregate: bool) -> None:
    """Rule G3: no slice overflows alone; the other aggregates of the window stand."""
    hops = TimeWindows.of_size_with_no_grace("10 ms").advance_by("5 ms")
    by_key = wp.windowed(events, hops).by("key").event_time("ms")
    found = by_key.agg(TOTAL, count(), on_error="null", pre_aggregate=pre_aggregate)
    assert answered(found, *WINDOW) == [
        ("a", -5, 2, None, ["total"], 2),
        ("a", 0, 2, None, ["total"], 2),
        ("a", 15, 1, 7, [], 1),
        ("a", 20, 1, 7, [], 1),
        ("b", -5, 2, 11, [], 2),
        ("b", 0, 2, 11, [], 2),
    ]
    final = by_key.final().agg(TOTAL, on_error="null", pre_aggregate=pre_aggregate)
    assert answered(final, "window_start", "failed") == [
        ("a", -5, ["total"]),
        ("a", 0, ["total"]),
        ("b", -5, []),
        ("b", 0, []),
    ]


def test_sliding_windows_sessions_and_several_streams(events: DataFrame) -> None:
    """Rule G3: of any kind."""
    sliding = SlidingWindows.of_time_difference_with_no_grace("3 ms")
    found = wp.windowed(events, sliding).by("key").event_time("ms").agg(TOTAL, on_error="null")
    assert ("a", 0, 3, None, ["total"]) in answered(
        found, "window_start", "window_end", "total", "failed"
    )
    sessions = SessionWindows.of_inactivity_gap_with_no_grace("5 ms")
    of_sessions = wp.windowed(events, sessions).by("key").event_time("ms")
    both = of_sessions.cogroup(of_sessions, sum_("n").alias("again"))
    together = both.agg(TOTAL, count(), on_error="null")
    assert answered(together, *WINDOW, "again") == [
        ("a", 0, 4, None, ["total", "again"], 2, None),
        ("a", 20, 2, 7, [], 1, 7),
        ("b", 3, 4, 11, [], 2, 11),
    ]


def test_group_windows(events: DataFrame) -> None:
    """Rules F1, G3: by time and by rows, with the names of the results."""
    by_time = wp.windowed(events, Tumble.over("10 ms").alias("w").on("ms")).by("key")
    by_rows = wp.windowed(events, Tumble.over(rows(2)).alias("w").on("at")).by("key")
    columns = ("w.start", "total", "n", "failed")
    asked = (TOTAL, count().alias("n"))
    assert answered(by_time.agg(*asked, on_error="null"), *columns) == [
        ("a", 0, None, 2, ["total"]),
        ("a", 20, 7, 1, []),
        ("b", 0, 11, 2, []),
    ]
    assert answered(by_rows.agg(*asked, on_error="null"), *columns) == [
        ("a", 0, None, 2, ["total"]),
        ("b", 3, 11, 2, []),
    ]


@pytest.mark.parametrize("back", [UNBOUNDED_RANGE, "100 ms"])
def test_row_windows(events: DataFrame, back: str) -> None:
    """Rules F2, G3: in Spark's frames and the engine's; `failed` names those of all windows."""
    grown = SlideRows.preceding(back).on("ms").alias("grown")
    near = SlideRows.preceding("5 ms").on("ms").alias("near")
    by_key = wp.windowed(events, grown).by("key").and_over(near, sum_("n").alias("here"))
    found = by_key.agg(TOTAL, count(), on_error="null")
    assert found.columns == [*events.columns, "grown", "total", "count", "near", "here", "failed"]
    assert answered(found, "ms", "total", "count", "here", "failed") == [
        ("a", 0, MOST, 1, MOST, []),
        ("a", 3, None, 2, None, ["total", "here"]),
        ("a", 20, None, 3, 7, ["total"]),
        ("b", 3, 5, 1, 5, []),
        ("b", 4, 11, 2, 11, []),
    ]


@pytest.mark.parametrize(
    "trigger", [Trigger.until_window_closes(), Trigger.at_window_end().early_every_update()]
)
def test_firings(events: DataFrame, trigger: Trigger) -> None:
    """Rules E2, G3: each firing by its own pane."""
    tumbling = TimeWindows.of_size_with_no_grace("10 ms")
    timed = (
        wp.windowed(events.where("key = 'a'"), tumbling).by("key").event_time("ms").arrival("at")
    )
    found = timed.firings(trigger, TOTAL, input_ends=True, on_error="null")
    answers = answered(found.where("is_final"), "window_start", "total", "failed", "record_count")
    assert answers == [("a", 0, None, ["total"], 2), ("a", 20, 7, [], 1)]
    with pytest.raises(PythonException, match="overflows bigint"):
        timed.firings(trigger, TOTAL, input_ends=True).collect()


def test_what_on_error_takes(events: DataFrame) -> None:
    """Rule G3: one of two texts, and no result that has the column's name."""
    tumbling = TimeWindows.of_size_with_no_grace("10 ms")
    by_key = wp.windowed(events, tumbling).by("key").event_time("ms")
    with pytest.raises(ValueError, match="on_error: must be 'raise' or 'null', not 'skip'"):
        by_key.agg(TOTAL, on_error="skip")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="'failed' would be the name of two columns"):
        by_key.agg(TOTAL.alias("failed"), on_error="null")
    assert "failed" in by_key.agg(TOTAL.alias("failed")).columns
