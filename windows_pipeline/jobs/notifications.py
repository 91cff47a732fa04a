"""The episodes and notifications of arrival days, and what a correction changes in the latter."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from windows_pipeline.arrival.watermark import ArrivalUnit, close_ms
from windows_pipeline.engine.literals import literal
from windows_pipeline.incremental.alerts import EPISODE
from windows_pipeline.incremental.episodes import episode_rows
from windows_pipeline.incremental.first_arrival_unit import first_arrival_unit
from windows_pipeline.incremental.notifications import (
    episode_events,
    retractions,
    standing_events,
    with_ids,
)
from windows_pipeline.jobs.windows_job import WindowsJob
from windows_pipeline.storage.arrival_units import in_arrival_units
from windows_pipeline.storage.diff import differences
from windows_pipeline.storage.joins import join_on

_HISTORY = ("notification_id", "correction", "retracted_by")


def notification_rows(
    job: WindowsJob, alerts: DataFrame, is_new: Column, ended_in: Callable[[Column], Column]
) -> DataFrame:
    """Returns what happened to episodes in some days, as rows of notifications.

    Args:
        job: The definition.
        alerts: See `episode_events`, as `is_new` and `ended_in`.
        is_new: Whether an alert is of these days.
        ended_in: The day whose close time passed an instant.
    """
    windows = job.windows
    aggregates = [aggregate.name for aggregate in windows.aggregate_list]
    window = _window(job)
    events = episode_events(alerts, windows.spec, window, aggregates, job.rules, is_new, ended_in)
    null = F.lit(None).cast("bigint")
    rows = events.withColumns({"correction": null, "retracted_by": null})
    return with_ids(rows, job.pipeline.name, job.windows_name, window)


def ended_in_days(
    job: WindowsJob, arrival_units: Sequence[ArrivalUnit]
) -> Callable[[Column], Column]:
    """From an instant in milliseconds, the day of these whose close time passed it.

    Args:
        job: The definition.
        arrival_units: Consecutive days; none if a missing day blocks them.
    """
    if not arrival_units:
        return lambda _: F.lit(None).cast("date")
    delay_ms = job.windows.spec.close_delay_ms
    before_ms = close_ms(arrival_units[0].watermark_before_ms, delay_ms)
    after_ms = close_ms(arrival_units[-1].watermark_after_ms, delay_ms)

    def ended_in(last_ms: Column) -> Column:
        passed = [
            (
                arrival_unit.day,
                last_ms < literal(close_ms(arrival_unit.watermark_after_ms, delay_ms), last_ms),
            )
            for arrival_unit in arrival_units[:-1]
        ]
        is_passed = (last_ms >= literal(before_ms, last_ms)) & (
            last_ms < literal(after_ms, last_ms)
        )
        return F.when(is_passed, first_arrival_unit(passed, arrival_units[-1].day))

    return ended_in


def episodes_of_days(
    job: WindowsJob, alerts: DataFrame, days: Sequence[date], arrival_units: Sequence[ArrivalUnit]
) -> DataFrame:
    """Returns consecutive days' rows of the table episodes.

    Args:
        job: The definition.
        alerts: See `episode_rows`.
        days: The days.
        arrival_units: The days as the timeline has them; none if a missing day blocks them.
    """
    delay_ms = job.windows.spec.close_delay_ms
    final = job.window_tables.final_windows.schema.names
    closes_ms = {unit.day: close_ms(unit.watermark_after_ms, delay_ms) for unit in arrival_units}

    return episode_rows(
        alerts,
        job.windows.spec,
        job.rules,
        _window(job),
        [name for name in final if name not in ("arrival_unit", *job.windows.window_key)],
        in_arrival_units(days),
        ended_in_days(job, arrival_units),
        closes_ms,
    )


def with_correction(
    job: WindowsJob, stored: DataFrame, computed: DataFrame, number: int
) -> DataFrame:
    """Returns all rows that some days have once a correction is published.

    Wrong rows stay, marked as retracted. Rows that hold now are added with the correction's
    number, as is a row for each episode that has no alert left.

    Args:
        job: The definition.
        stored: The rows of the days; the correction may have changed some already.
        computed: The rows of the days as days compute them now.
        number: The correction's number.
    """
    window = _window(job)
    key = ("arrival_unit", *EPISODE, "event", *window)
    this = F.lit(number).cast("bigint")
    undone = F.when(~F.col("retracted_by").eqNullSafe(this), F.col("retracted_by"))
    before = stored.where(~F.col("correction").eqNullSafe(this)).withColumn("retracted_by", undone)
    stood, holds = standing_events(before).drop(*_HISTORY), computed.drop(*_HISTORY)
    found = differences(stood, holds, key)
    gone = found.where(F.col("old").isNotNull()).select(*key, F.lit(True).alias("_is_gone"))
    was_standing = F.col("retracted_by").isNull() & (F.col("event") != "retracted")
    retracted = F.when(was_standing & F.col("_is_gone"), this)
    marked = (
        join_on(before, gone, key, "left")
        .withColumn("retracted_by", F.coalesce("retracted_by", retracted))
        .drop("_is_gone")
    )
    added = found.where(F.col("new").isNotNull()).select(*key, "new.*")
    new = added.unionByName(retractions(stood, holds)).withColumns(
        {"correction": this, "retracted_by": F.lit(None).cast("bigint")}
    )
    named = with_ids(new, job.pipeline.name, job.windows_name, window)
    return marked.unionByName(named)


def _window(job: WindowsJob) -> tuple[str, ...]:
    """The columns that identify a window of a key."""
    return job.windows.window_key[1:]
