"""The checks of notifications, as SQL over `notifications_to_check` (rule E6)."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from windows_pipeline.checks.run import Check
from windows_pipeline.incremental.alerts import EPISODE
from windows_pipeline.storage.instants import timestamp_to_ms
from windows_pipeline.storage.joins import join_on
from windows_pipeline.windows import EpisodeEnd, PipelineWindows


def notification_checks(spec: PipelineWindows) -> list[Check]:
    """Checks of notifications, over the rows of `notifications_to_check`."""
    ended, wrong_end = _ENDED[spec.episode_end]
    return [
        Check(
            "notification_once",
            "No two notifications have one notification_id (rule E6)",
            "_copies > 1",
        ),
        Check(
            "opened_once_and_first",
            "Among an episode's notifications that no correction retracted, at most one is "
            "`opened`, and it is the first (rule E6)",
            "_stands AND event = 'opened' AND (_opened > 1 OR _number > 1)",
        ),
        Check(
            "worsened_is_worse",
            "A `worsened` has a higher severity than all earlier notifications of its episode; "
            "retracted ones do not count (rule E6)",
            "_stands AND event = 'worsened' AND (severity IS NULL OR severity <= _worst_before)",
        ),
        Check(
            "ended_once_and_last",
            f"Among an episode's notifications that no correction retracted, {ended} (rule E6)",
            f"_stands AND event = 'ended' AND {wrong_end}",
        ),
        *_ends_with_a_window(spec),
        Check(
            "retractions_hold",
            "A correction retracts only notifications from before that correction; `retracted` "
            "follows an `opened` that the same correction retracted, and no older `opened` of the "
            "episode is left (rules E1, E6)",
            "retracted_by <= coalesce(correction, 0) "
            "OR event = 'retracted' AND (correction IS NULL OR retracted_by IS NOT NULL "
            "OR NOT _was_opened OR _stands_since < correction)",
        ),
        Check(
            "alert_is_opened",
            "The first alert of each episode has an `opened` in the same arrival unit; retracted "
            "ones do not count (rule E6). If the pipeline had no notify on that day, write the "
            "rows of earlier days by: windows-pipeline rebuild PIPELINE --from alerts",
            "event IS NULL",
        ),
    ]


def notifications_to_check(
    notifications: DataFrame,
    alerts: DataFrame,
    final: DataFrame,
    closings: DataFrame,
    spec: PipelineWindows,
    window: Sequence[str],
) -> DataFrame:
    """Joins notifications of some arrival units with what the checks compare.

    Args:
        notifications: The notifications of the arrival units.
        alerts: The alerts of the arrival units that stand.
        final: The final windows of the arrival units.
        closings: `arrival_unit` and `_close_before_ms` of the arrival units.
        spec: The windows.
        window: The columns that identify a window of a key.

    Returns:
        The notifications, with `_stands` (whether the row is no `retracted`, and no correction
        retracted it) and `_copies` (the number of rows with its id). Among the rows of its episode
        with an equal `_stands`: `_number` (its number in order), `_opened` and `_ended` (how many
        there are), `_worst_before` (the largest severity of a window before it), `_later` (the
        number of rows after it), `_last_arrival_unit` and `_opened_until`. Among all rows of its
        episode:
        `_was_opened` (whether the row's correction retracted an `opened`) and `_stands_since` (the
        least correction of an `opened` that stands). For an `ended` whose last window the arrival
        unit closed, `_ends_window`: whether that window is final and holds records; null for other
        rows. Also a row without event for each first alert that lacks its `opened`.
    """
    stands = F.col("retracted_by").isNull() & (F.col("event") != "retracted")
    marked = notifications.withColumn("_stands", stands)
    alike = Window.partitionBy(*EPISODE, "_stands")
    is_opened, is_ended = F.col("event") == "opened", F.col("event") == "ended"
    # `ended` shows the worst window, and comes after the window that ended the episode.
    in_order = alike.orderBy("until", is_ended, "window_start", *window)
    before = in_order.rowsBetween(Window.unboundedPreceding, -1)
    after = in_order.rowsBetween(1, Window.unboundedFollowing)
    episode = Window.partitionBy(*EPISODE)
    stands_since = F.when(is_opened & F.col("_stands"), F.coalesce("correction", F.lit(0)))
    judged = marked.withColumns(
        {
            "_copies": F.count("*").over(Window.partitionBy("notification_id")),
            "_number": F.row_number().over(in_order),
            "_opened": F.count_if(is_opened).over(alike),
            "_ended": F.count_if(is_ended).over(alike),
            "_worst_before": F.max(F.when(~is_ended, F.col("severity"))).over(before),
            "_later": F.count("*").over(after),
            "_last_arrival_unit": F.max("arrival_unit").over(alike),
            "_opened_until": F.min(F.when(is_opened, F.col("until"))).over(alike),
            "_undone": F.collect_set(F.when(is_opened, F.col("retracted_by"))).over(episode),
            "_stands_since": F.min(stands_since).over(episode),
        }
    )
    was_opened = F.array_contains("_undone", F.col("correction"))
    judged = judged.withColumn("_was_opened", was_opened).drop("_undone")
    judged = _with_last_window(judged, final, closings, spec)
    if spec.length_ms is None:  # an alert of a later day may start like the first one
        return judged
    lacking = _first_alerts_without_opened(marked, alerts)
    columns = ("arrival_unit", *EPISODE, *window, "record_count", "severity")
    return judged.unionByName(lacking.select(*columns), allowMissingColumns=True)


def _with_last_window(
    judged: DataFrame, final: DataFrame, closings: DataFrame, spec: PipelineWindows
) -> DataFrame:
    """Adds `_ends_window`; see `notifications_to_check`."""
    last = ["arrival_unit", "key", "until"]
    with_records = final.where(F.col("record_count") > 0)
    until = F.col("window_end").alias("until")
    held = with_records.select("arrival_unit", "key", until, F.lit(True).alias("_is_held"))
    held = held.distinct()
    known = join_on(judged, held, last, "left")
    known = join_on(known, closings, ["arrival_unit"], "left")
    closed_now = spec.last_instant(timestamp_to_ms("until")) >= F.col("_close_before_ms")
    ends_window = F.when(
        (F.col("event") == "ended") & closed_now, F.coalesce("_is_held", F.lit(False))
    )
    return known.withColumn("_ends_window", ends_window).drop("_is_held", "_close_before_ms")


def _first_alerts_without_opened(notifications: DataFrame, alerts: DataFrame) -> DataFrame:
    """The first alerts of episodes, on days since the first notification, that lack `opened`."""
    opened = notifications.where(F.col("_stands") & (F.col("event") == "opened"))
    columns = ("arrival_unit", *EPISODE)
    first = alerts.where(F.col("window_start") == F.col("episode_start"))
    lacking = join_on(first, opened.select(*columns), columns, "anti")
    since = notifications.agg(F.min("arrival_unit").alias("_since"))
    # A pipeline that got `notify` later has no rows of earlier days.
    known = lacking.crossJoin(F.broadcast(since)).where(F.col("arrival_unit") >= F.col("_since"))
    return known.drop("_since")


def _ends_with_a_window(spec: PipelineWindows) -> list[Check]:
    """The check of the last window of an episode that ended; episodes of row windows never do."""
    if spec.episode_end is EpisodeEnd.NEVER:
        return []
    return [
        Check(
            "ended_with_a_window",
            "If the arrival unit of an `ended` closed the window that ends at its `until`, the key "
            "has this window among its final ones, with records; for a silence, it is the window "
            "of the key's next record (rules B8, E6)",
            "_stands AND NOT _ends_window",
        )
    ]


_ENDED = {
    EpisodeEnd.AT_ONCE: (
        "at most one is `ended`, with the same `until` as `opened`",
        "(_ended > 1 OR until <> _opened_until)",
    ),
    EpisodeEnd.AFTER_A_LENGTH: (
        "at most one is `ended`, and it is the last",
        "(_ended > 1 OR _later > 0 OR _last_arrival_unit > arrival_unit)",
    ),
    EpisodeEnd.NEVER: ("none is `ended`", "TRUE"),
}
"""What must hold of an event `ended`, and SQL that is true where it does not."""
