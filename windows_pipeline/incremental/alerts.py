"""Raises alerts on final results, and joins overlapping alerts into episodes (rule E5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import NamedTuple

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from windows_pipeline.storage.instants import timestamp_to_ms


class RuleSql(NamedTuple):
    """A rule as SQL over the columns of final_windows; `rule_sql.compile_expression` makes both.

    Attributes:
        when: The condition that breaks the rule.
        severity: The number that says how bad it is.
    """

    when: str
    severity: str


def broken_rules(final_windows: DataFrame, rules: Mapping[str, RuleSql]) -> DataFrame:
    """Raises an alert for each rule that a final window breaks.

    Args:
        final_windows: The final windows.
        rules: The rules by name; at least one.

    Returns:
        A row for each window and broken rule: the windows' columns, `rule` and `severity`
        (double).
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

    Alerts of one key and rule are ordered by window end, the order in which windows close. An
    alert begins an episode if its window starts after the previous one ended; otherwise it
    continues the previous alert's episode. Bounds count as overlap, so a tumbling window that
    starts when the previous one ends continues the episode.

    An alert of an earlier run keeps its `episode_start`.
    """
    # Windows of rows may share an end; the longest comes first and begins the episode.
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
    """Filters out the alerts that a correction retracted (rule E1)."""
    return alerts.where(F.col("retracted_by").isNull())


def episodes(alerts: DataFrame, by: Sequence[str] = ()) -> DataFrame:
    """Sums up alerts by episode.

    Args:
        alerts: Rows of the table alerts; `standing` filters out retracted alerts.
        by: Further columns to group by, such as `arrival_unit`: an episode of several days is then
            a row for each of them.

    Returns:
        The columns of `by`, `rule`, `key`, `episode_start`, `episode_end` (the end of the last
        window), `alerts` (bigint: their number), `severity` (double: the largest), and `worst`
        (struct: all columns of the window with the largest severity; the earliest of several).
    """
    grouped = (*by, "rule", "key", "episode_start")
    columns = [name for name in alerts.columns if name not in grouped]
    # Structs compare field by field: severity first (null is the smallest), then earlier ends.
    rank = F.struct("severity", -timestamp_to_ms("window_end"))
    return alerts.groupBy(*grouped).agg(
        F.max("window_end").alias("episode_end"),
        F.count("*").alias("alerts"),
        F.max("severity").alias("severity"),
        F.max_by(F.struct(*columns), rank).alias("worst"),
    )
