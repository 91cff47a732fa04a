"""The events of episodes: opened, worsened, ended, retracted, one row for each (rule E6).

An event belongs to a window, not to a run: the first window of an episode, each window that is
worse than all before it, and the window after which the episode ended. So the rows are the same
wherever days or micro-batches were cut (rule H1).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from windows_pipeline.incremental.alerts import EPISODE, RuleSql, with_severity_until
from windows_pipeline.incremental.closed_days import ClosedDays
from windows_pipeline.incremental.silences import NEXT_RECORD
from windows_pipeline.storage.diff import differences
from windows_pipeline.storage.instants import timestamp_to_ms
from windows_pipeline.storage.joins import join_on
from windows_pipeline.windows import EpisodeEnd, PipelineWindows

OPENED, WORSENED, ENDED, RETRACTED = "opened", "worsened", "ended", "retracted"
_WITH_NULLS = {"ignoreNullFields": "false"}
_HISTORY = ("notification_id", "correction", "retracted_by")


def episode_events(
    alerts: DataFrame,
    spec: PipelineWindows,
    window: Sequence[str],
    aggregates: Sequence[str],
    rules: Mapping[str, RuleSql],
    is_new: Column,
    closed_days: ClosedDays,
) -> DataFrame:
    """Returns the events of episodes, one row for each event.

    Args:
        alerts: All alerts so far of the episodes of some arrival units, and of those that these
            arrival units may end: the columns of the table alerts and, of windows that may be
            silences, those of `with_next_record`.
        spec: The windows.
        window: The columns that identify a window of a key.
        aggregates: The columns of the window's aggregates.
        rules: The rules by name.
        is_new: Whether an alert is of these arrival units.
        closed_days: The close times of these arrival units.

    Returns:
        The columns of the table notifications but `notification_id`, `correction` and
        `retracted_by`.
    """
    in_order = Window.partitionBy(*EPISODE).orderBy("window_end", "window_start", *window)
    so_far = in_order.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    earlier = in_order.rowsBetween(Window.unboundedPreceding, -1)
    worst_before = F.max("severity").over(earlier)
    is_worse = F.col("severity").isNotNull() & (
        worst_before.isNull() | (F.col("severity") > worst_before)
    )
    values = F.to_json(F.struct(*aggregates), _WITH_NULLS) if aggregates else F.lit("{}")
    numbered = alerts.withColumns(
        {"_first": F.row_number().over(in_order) == 1, "_worse": is_worse}
    ).withColumn("_aggregates", values)
    shown = _shown(window, F.col("severity"))
    is_high = F.col("_first") | F.col("_worse")
    judged = numbered.withColumns(
        {
            "_worst": F.last(F.when(is_high, shown), ignorenulls=True).over(so_far),
            "_last": F.lead("window_end").over(in_order).isNull(),
        }
    )
    ended, until = _end(spec, is_new, closed_days)
    worst, worst_at_end = F.col("_worst"), F.col("_worst")
    if spec.has_silences:
        judged = with_severity_until(judged, rules, NEXT_RECORD, "_severity_at_end")
        worst_at_end = _worst_at_end(window)
    event = F.when(F.col("_first"), OPENED).when(F.col("_worse"), WORSENED)
    happened = F.array(
        F.struct(
            F.when(is_new & event.isNotNull(), F.col("arrival_unit")).alias("arrival_unit"),
            event.alias("event"),
            F.col("window_end").alias("until"),
            worst.alias("worst"),
        ),
        F.struct(
            ended.alias("arrival_unit"),
            F.lit(ENDED).alias("event"),
            until.alias("until"),
            worst_at_end.alias("worst"),
        ),
    )
    events = judged.withColumn("_event", F.explode(happened))
    return events.where(F.col("_event.arrival_unit").isNotNull()).select(
        "_event.arrival_unit",
        "rule",
        "key",
        "episode_start",
        "_event.event",
        "_event.worst.*",
        F.col("episode_start").alias("since"),
        "_event.until",
    )


def _shown(window: Sequence[str], severity: Column) -> Column:
    """What a notification shows of an alert's window."""
    aggregates = F.col("_aggregates").alias("aggregates")
    return F.struct(*window, "record_count", aggregates, severity.alias("severity"))


def _worst_at_end(window: Sequence[str]) -> Column:
    """The worst window of an episode at its end.

    If the last window is a silence, its severity depends on how long the silence lasted.
    """
    severity, worst = F.col("_severity_at_end"), F.col("_worst.severity")
    is_worse = F.col(NEXT_RECORD).isNotNull() & severity.isNotNull()
    is_worse &= worst.isNull() | (severity > worst)
    return F.when(is_worse, _shown(window, severity)).otherwise(F.col("_worst"))


def _end(spec: PipelineWindows, is_new: Column, closed_days: ClosedDays) -> tuple[Column, Column]:
    """The arrival unit that ended an alert's episode, null if none did, and when the episode ended.

    An episode whose last window is a silence lasts until its key has a record again.
    """
    until = F.col("window_end")
    if spec.episode_end is EpisodeEnd.AT_ONCE:
        return F.when(F.col("_first") & is_new, F.col("arrival_unit")), until
    if spec.episode_end is EpisodeEnd.NEVER:
        return F.lit(None).cast("date"), until
    ends_at_ms = spec.last_instant(timestamp_to_ms(until)) + F.lit(spec.length_ms)
    if spec.has_silences:
        is_silent = F.col("record_count") == 0
        until = F.when(is_silent, F.col(NEXT_RECORD)).otherwise(until)
        ends_at_ms = F.when(until.isNotNull(), F.greatest(ends_at_ms, timestamp_to_ms(until)))
    return F.when(F.col("_last"), closed_days.ended_in(ends_at_ms)), until


def corrected(
    stored: DataFrame,
    computed: DataFrame,
    number: int,
    pipeline: str,
    windows_name: str,
    window: Sequence[str],
) -> DataFrame:
    """Returns all rows that some days have once a correction is published.

    Wrong rows stay, marked as retracted. Rows that hold now are added with the correction's
    number, as is a row for each episode that has no alert left.

    Args:
        stored: The rows of the days; the correction may have changed some already.
        computed: The rows of the days as days compute them now.
        number: The correction's number.
        pipeline: The pipeline's name.
        windows_name: The definition's name.
        window: The columns that identify a window of a key.
    """
    key = ("arrival_unit", *EPISODE, "event", *window)
    this = F.lit(number).cast("bigint")
    undone = F.when(~F.col("retracted_by").eqNullSafe(this), F.col("retracted_by"))
    before = stored.where(~F.col("correction").eqNullSafe(this)).withColumn("retracted_by", undone)
    was_standing = F.col("retracted_by").isNull() & (F.col("event") != RETRACTED)
    stood, holds = before.where(was_standing).drop(*_HISTORY), computed.drop(*_HISTORY)
    found = differences(stood, holds, key)
    gone = found.where(F.col("old").isNotNull()).select(*key, F.lit(True).alias("_is_gone"))
    retracted = F.when(was_standing & F.col("_is_gone"), this)
    marked = (
        join_on(before, gone, key, "left")
        .withColumn("retracted_by", F.coalesce("retracted_by", retracted))
        .drop("_is_gone")
    )
    added = found.where(F.col("new").isNotNull()).select(*key, "new.*")
    new = added.unionByName(_retractions(stood, holds)).withColumns(
        {"correction": this, "retracted_by": F.lit(None).cast("bigint")}
    )
    return marked.unionByName(with_ids(new, pipeline, windows_name, window))


def _retractions(before: DataFrame, after: DataFrame) -> DataFrame:
    """A row for each episode that a correction left without an alert."""
    opened = before.where(F.col("event") == OPENED)
    still = after.where(F.col("event") == OPENED).select(*EPISODE).distinct()
    return join_on(opened, still, list(EPISODE), "anti").withColumn("event", F.lit(RETRACTED))


def with_ids(
    notifications: DataFrame, pipeline: str, windows_name: str, window: Sequence[str]
) -> DataFrame:
    """Adds `notification_id`: a digest of the columns that identify the event, without its values.

    Args:
        notifications: The rows, with `correction`.
        pipeline: The pipeline's name.
        windows_name: The definition's name.
        window: The columns that identify a window of a key.
    """
    named = F.struct(
        F.lit(pipeline).alias("pipeline"),
        F.lit(windows_name).alias("windows"),
        *EPISODE,
        "event",
        "arrival_unit",
        *window,
        "correction",
    )
    digest = F.sha2(F.to_json(named, _WITH_NULLS), 256)
    return notifications.withColumn("notification_id", digest)
