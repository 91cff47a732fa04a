"""Rules over final results, and the episodes that overlapping alerts make (rule E5)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from typing import NamedTuple

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F


class RuleSql(NamedTuple):
    """A rule as SQL over the columns of final_windows, made by `rules.compile_expression`."""

    when: str
    severity: str


def broken_rules(final_windows: DataFrame, rules: Mapping[str, RuleSql]) -> DataFrame:
    """Raises an alert for each rule that a final window breaks.

    Args:
        final_windows: The final windows.
        rules: The rules by name; at least one.

    Returns:
        The windows' columns with `rule` and `severity` (double), a row a window and rule.
    """
    raised = (
        final_windows.where(F.expr(rule.when))
        .withColumn("rule", F.lit(name))
        .withColumn("severity", F.expr(rule.severity).cast("double"))
        for name, rule in rules.items()
    )
    return reduce(DataFrame.unionByName, raised)


def with_episodes(alerts: DataFrame) -> DataFrame:
    """Adds `episode_start`: the start of the first window of an alert's episode.

    An alert that has one keeps it: it was raised before, and so was what its episode holds.

    Alerts of one key and rule whose windows overlap, bounds included, are one episode, also
    where each overlaps only the next: in the order of their ends, in which they close, an alert
    begins an episode when it starts after the last one's end. Of hopping and tumbling windows
    one that starts as the last one ends goes on with it.
    """
    # Rows may have windows of one end: the longest begins an episode.
    so_far = Window.partitionBy("rule", "key").orderBy("window_end", "window_start")
    previous_end = F.lag("window_end").over(so_far)
    begins = previous_end.isNull() | (F.col("window_start") > previous_end)
    began = F.when(begins, F.col("window_start"))
    if "episode_start" in alerts.columns:
        began = F.coalesce("episode_start", began)
    return (
        alerts.withColumn("_begins", began)
        .withColumn("episode_start", F.last("_begins", ignorenulls=True).over(so_far))
        .drop("_begins")
    )


def standing(alerts: DataFrame) -> DataFrame:
    """Keeps the alerts that no correction took back (rule E1)."""
    return alerts.where(F.col("retracted_by").isNull())


def episodes(alerts: DataFrame) -> DataFrame:
    """Sums alerts up by episode.

    Args:
        alerts: Rows of the table alerts; `standing` leaves out those that were taken back.

    Returns:
        `rule`, `key`, `episode_start`, `episode_end` (the end of its last window), `alerts`
        (bigint), `severity` (double: the worst), and `worst`: a struct of the window with
        the largest severity, the earliest of them, with all its columns.
    """
    columns = [name for name in alerts.columns if name not in ("rule", "key", "episode_start")]
    # Struct order: the largest severity, null the least, then the earliest end.
    rank = F.struct("severity", -F.unix_millis("window_end"))
    return alerts.groupBy("rule", "key", "episode_start").agg(
        F.max("window_end").alias("episode_end"),
        F.count("*").alias("alerts"),
        F.max("severity").alias("severity"),
        F.max_by(F.struct(*columns), rank).alias("worst"),
    )
