"""How long silences among a day's episodes lasted: until the key's next record (rule B8)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from windows_pipeline.alerts.rule_sql import EPISODE_MS
from windows_pipeline.compat.local_frame import small_frame
from windows_pipeline.incremental.alerts import RuleSql
from windows_pipeline.storage.instants import ms_to_timestamp, timestamp_to_ms
from windows_pipeline.storage.joins import join_on


def with_silences(
    found: DataFrame,
    final: DataFrame,
    closed_ms: Mapping[date, int],
    rules: Mapping[str, RuleSql],
) -> DataFrame:
    """Adds when each key was back, and how long each episode lasted.

    Args:
        found: Episodes, each of an `arrival_unit`.
        final: The final windows of the days.
        closed_ms: The close time of each day, where it is known, in ms since 1970.
        rules: The rules by name.

    Returns:
        The columns of `found`, `back` (the key's next record, as of the last day: the end of the
        first window of the key that ends later and holds a record; null if there is none) and
        `until` (that, or the day's close time where the key is still silent, or the episode's end).
        A severity that reads how long the episode has lasted is that of the whole silence.
    """
    found = found.localCheckpoint()
    held = final.where(F.col("record_count") > 0)
    ends = held.select("key", F.col("window_end").alias("_end"))
    silent = found.where("ends_empty").select("key", "episode_end").distinct()
    later = join_on(silent, ends, ["key"], "inner").where(F.col("_end") > F.col("episode_end"))
    back = later.groupBy("key", "episode_end").agg(F.min("_end").alias("back"))
    schema = "arrival_unit date, _closed_ms bigint"
    closes = small_frame(found.sparkSession, closed_ms.items(), schema)
    joined = join_on(found, back, ["key", "episode_end"], "left")
    joined = join_on(joined, closes, ["arrival_unit"], "left")
    so_far = F.greatest("episode_end", ms_to_timestamp("_closed_ms"))  # of null and a value: this
    until = F.coalesce("back", F.when(F.col("ends_empty"), so_far), "episode_end")
    lasted = joined.withColumn("until", until).drop("_closed_ms")
    return _with_severity(lasted, rules)


def _with_severity(lasted: DataFrame, rules: Mapping[str, RuleSql]) -> DataFrame:
    """Computes the severity of silences again, where the last window is the worst."""
    lasting = {name: rule for name, rule in rules.items() if rule.reads_episode}
    if not lasting:
        return lasted
    columns = lasted.columns
    schema = lasted.select("worst.*").columns
    of_worst = {name: F.col("worst")[name] for name in schema if name not in columns}
    ms = timestamp_to_ms("until") - timestamp_to_ms("episode_start")
    silent = F.col("ends_empty") & (F.col("worst.window_end") == F.col("episode_end"))
    severity = F.col("severity")
    for name, rule in lasting.items():
        whole = F.expr(rule.severity).cast("double")
        severity = F.when(silent & (F.col("rule") == name), whole).otherwise(severity)
    return (
        lasted.withColumns({**of_worst, EPISODE_MS: ms})
        .withColumn("severity", severity)
        .select(*columns)
    )
