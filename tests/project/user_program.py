"""A user's program that calls each verb once: type checkers read it, nothing runs it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, assert_type

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import windows_pipeline as wp
from windows_pipeline import flip11
from windows_pipeline.dataframe.groups import GroupWindowed
from windows_pipeline.dataframe.rows import RowWindowed
from windows_pipeline.dataframe.windowed import Cogrouped, Final, Windowed

Transform = Callable[[DataFrame], DataFrame]


def warn(
    key: str, window: object, content: dict[str, Any], context: wp.FiringContext
) -> Iterator[tuple[str, str]]:
    """A row for each firing of few records."""
    del window
    if content["record_count"] < 4:
        yield key, context.reason


def by_event_time(flights: DataFrame, orders: DataFrame) -> DataFrame:
    """Windows that close: sliding, hopping, sessions."""
    hour = wp.SlidingWindows.of_time_difference_and_grace("1 hour", "6 hours")
    keyed = wp.windowed(flights, hour).by("origin", "carrier").event_time("departed_at")
    assert_type(keyed, Windowed[DataFrame])
    w = keyed.arrival("offset", partition="p", idle_after="1 day")
    mean_delay = wp.avg("dep_delay").where("dep_delay > 0").alias("avg_delay")
    assert_type(mean_delay, wp.Aggregation)
    assert_type(w.agg(wp.count(), mean_delay, pre_aggregate=False), DataFrame)
    assert_type(w.final(), Final[DataFrame])
    assert_type(w.final().agg(wp.sum_(F.col("dep_delay") * 2).alias("twice")), DataFrame)
    assert_type(w.late(), DataFrame)
    trigger = wp.Trigger.at_window_end().early_every("15 minutes").discarding()
    assert_type(w.firings(trigger, wp.count(), input_ends=True), DataFrame)
    function = wp.WindowFunction(warn, "origin string, reason string")
    assert_type(w.process(trigger, function, wp.count()), DataFrame)
    other = wp.windowed(orders, hour).by("buyer").event_time("paid_at").arrival("offset")
    both = w.cogroup(other, wp.sum_("amount")).cogroup(other, wp.max_("amount"))
    assert_type(both, Cogrouped[DataFrame])
    assert_type(both.agg(wp.count()), DataFrame)
    assert_type(both.final().agg(wp.count()), DataFrame)
    sessions = wp.SessionWindows.of_inactivity_gap_with_no_grace("30 minutes")
    chain = wp.windows(sessions, by="origin", event_time="departed_at")
    assert_type(chain, Windowed[Transform])
    assert_type(chain.agg(wp.count()), Transform)
    assert_type(chain.arrival("offset").late(), Transform)
    hops = wp.TimeWindows.of_size_and_grace("1 hour", "0 ms").advance_by("1 minute")
    assert_type(wp.windows(hops).event_time("t").final().agg(), Transform)
    return flights.transform(chain.final().agg(wp.count()))


def of_flip_11(flights: DataFrame, spark: SparkSession) -> DataFrame:
    """Group windows, row windows, and windows in SQL."""
    tumbling = flip11.Tumble.over("10 minutes").alias("w")
    grouped = wp.windowed(flights, tumbling).by("origin").event_time("departed_at")
    assert_type(grouped, GroupWindowed[DataFrame])
    assert_type(grouped.agg(wp.count()).select("w.start"), DataFrame)
    hundreds = flip11.Slide.over(flip11.rows(100)).every(flip11.rows(10)).alias("w")
    counted = wp.windows(hundreds, by=["origin"]).arrival("offset")
    assert_type(counted.agg(wp.median("dep_delay")), Transform)
    frame = flip11.SlideRows.preceding("10 minutes").following(flip11.CURRENT_RANGE).alias("near")
    around = wp.windowed(flights, frame).by("origin").event_time("departed_at")
    assert_type(around.arrival("offset"), RowWindowed[DataFrame])
    visit = flip11.SessionRows.with_gap("30 minutes").on("departed_at").alias("visit")
    assert_type(around.and_over(visit, wp.count()).agg(wp.count()), DataFrame)
    assert_type(wp.windows(frame).agg(), Transform)
    longest = wp.UserAggregate(
        create=lambda: "",
        update=lambda so_far, value: max(so_far, value, key=len),
        merge=lambda earlier, later: max(earlier, later, key=len),
        result=lambda so_far: so_far,
        result_type="string",
    )
    assert_type(around.agg(wp.user_aggregate("carrier", longest)), DataFrame)
    return wp.sql(spark, "SELECT 1")
