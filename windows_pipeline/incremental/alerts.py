"""Raises alerts on final results, and joins overlapping alerts into episodes (rule E5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from functools import reduce
from operator import or_
from typing import NamedTuple

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from windows_pipeline.alerts.rule_sql import EPISODE_MS
from windows_pipeline.incremental.closed_days import ClosedDays
from windows_pipeline.storage.instants import timestamp_to_ms

EPISODE = ("rule", "key", "episode_start")
"""The columns that identify an episode."""


class RuleSql(NamedTuple):
    """A rule as SQL over the columns of final_windows, made by `rule_sql.compile_rule`.

    Attributes:
        when: The condition of windows that break the rule.
        severity: The number that says how bad a window is, over the same columns and `episode_ms`.
    """

    when: str
    severity: str

    @property
    def reads_episode(self) -> bool:
        """Whether the severity depends on how long the episode has lasted."""
        return f"`{EPISODE_MS}`" in self.severity


class JoinedAlerts(NamedTuple):
    """The alerts of the episodes of consecutive arrival days, or of the days of a micro-batch.

    Attributes:
        new: The alerts of the windows that closed, with `episode_start`.
        whole: All alerts so far of the episodes that the days have or may end, with
            `episode_start` and, where silences are windows, `NEXT_RECORD`.
        is_new: Whether an alert of `whole` is new.
        closed: The close times before and after the windows closed.
        days: The days.
        closed_by_days: Their close times, from before the first of them.
    """

    new: DataFrame
    whole: DataFrame
    is_new: Column
    closed: ClosedDays
    days: Sequence[date]
    closed_by_days: ClosedDays


def broken_rules(final_windows: DataFrame, rules: Mapping[str, RuleSql]) -> DataFrame:
    """Raises an alert for each rule that a final window breaks.

    Args:
        final_windows: The final windows.
        rules: The rules by name; at least one.

    Returns:
        A row for each window and broken rule: the windows' columns, `rule` and `severity`
        (double). The severity is computed as if each window began an episode; `with_episodes`
        recomputes it for the later windows of an episode.
    """
    columns = final_windows.columns
    lasted = timestamp_to_ms("window_end") - timestamp_to_ms("window_start")
    breaks = [F.expr(rule.when) for rule in rules.values()]
    raised = [
        F.when(broken, F.struct(_severity(rule).alias("severity"), F.lit(name).alias("rule")))
        for broken, (name, rule) in zip(breaks, rules.items(), strict=True)
    ]
    # Few windows break a rule, so the array is made of these alone.
    breaking = final_windows.where(reduce(or_, breaks)).withColumn(EPISODE_MS, lasted)
    return breaking.select(*columns, F.inline(F.array_compact(F.array(*raised))))


def _severity(rule: RuleSql) -> Column:
    return F.expr(rule.severity).cast("double")


def with_episodes(alerts: DataFrame, rules: Mapping[str, RuleSql]) -> DataFrame:
    """Adds `episode_start`: the start of the first window of an alert's episode.

    A severity that depends on how long the episode has lasted is computed again.

    Alerts of one key and rule are ordered by window end, the order in which windows close. An
    alert begins an episode if its window starts after the previous one ended; otherwise it
    continues the previous alert's episode. Bounds count as overlap, so a tumbling window that
    starts when the previous one ends continues the episode.

    An alert of an earlier run keeps its `episode_start`.

    Args:
        alerts: The alerts: the columns of `broken_rules`.
        rules: The rules by name.
    """
    # Windows of rows may share an end; the longest comes first and begins the episode.
    so_far = Window.partitionBy("rule", "key").orderBy("window_end", "window_start")
    previous_end = F.lag("window_end").over(so_far)
    begins = previous_end.isNull() | (F.col("window_start") > previous_end)
    began = F.when(begins, F.col("window_start"))
    if "episode_start" in alerts.columns:
        began = F.coalesce("episode_start", began)
    joined = (
        alerts.withColumn("_begins", began)
        .withColumn("episode_start", F.last("_begins", ignorenulls=True).over(so_far))
        .drop("_begins")
    )
    return with_severity_until(joined, rules, "window_end", "severity")


def with_severity_until(
    alerts: DataFrame, rules: Mapping[str, RuleSql], until: str, name: str
) -> DataFrame:
    """Adds, or replaces, a severity that reads how long an alert's episode has lasted.

    Args:
        alerts: The alerts, with `severity` and `episode_start`.
        rules: The rules by name.
        until: The column with the time until which the episode has lasted.
        name: The column to add; for rules that do not read `episode_ms` it equals `severity`.
    """
    severity = F.col("severity")
    lasting = {rule_name: rule for rule_name, rule in rules.items() if rule.reads_episode}
    if not lasting:
        return alerts.withColumn(name, severity)
    for rule_name, rule in lasting.items():
        severity = F.when(F.col("rule") == rule_name, _severity(rule)).otherwise(severity)
    lasted = timestamp_to_ms(until) - timestamp_to_ms("episode_start")
    return alerts.withColumn(EPISODE_MS, lasted).withColumn(name, severity).drop(EPISODE_MS)


def never_corrected(rows: DataFrame) -> DataFrame:
    """Adds `correction` and `retracted_by` to alerts or notifications, both null (rule E1)."""
    null = F.lit(None).cast("bigint")
    return rows.withColumns({"correction": null, "retracted_by": null})


def standing(alerts: DataFrame) -> DataFrame:
    """Filters out the alerts that a correction retracted (rule E1)."""
    return alerts.where(F.col("retracted_by").isNull())
