"""Rules over firings: warnings that come before the final result, which confirms them or not."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from windows_pipeline.incremental.alerts import RuleSql, broken_rules

PLACE = ("rule", "key", "window_start", "window_end")
"""The columns that name a warning."""


def early_warnings(
    fired: DataFrame, final_windows: DataFrame, rules: Mapping[str, RuleSql]
) -> DataFrame:
    """Warns of each window and rule once, at the first firing before it closes that breaks it.

    Args:
        fired: All firings so far of the windows that some targets found open, and brought new
            ones or closed: `_computed_day`, `_is_new` (whether it came with the target) and the
            columns of firings. Not of sessions.
        final_windows: The windows that these targets closed, with `_computed_day`.
        rules: The rules by name; at least one.

    Returns:
        The columns of `fired` with `rule`, `severity` and `state`: `open` in the unit in which
        it fired; `confirmed` or `withdrawn` in the one that closed the window, by whether the
        final window breaks the rule.
    """
    breaking = broken_rules(fired.where("NOT is_final"), rules)
    in_order = Window.partitionBy("_computed_day", *PLACE).orderBy("firing_id")
    first = breaking.withColumn("place", F.row_number().over(in_order)).where("place = 1")
    first = first.drop("place")
    raised = first.where("_is_new").withColumn("state", F.lit("open"))
    window = ["_computed_day", "key", "window_start", "window_end"]
    broken = broken_rules(final_windows, rules).select("rule", *window, F.lit(True).alias("holds"))
    closed = first.drop("arrival_unit").join(final_windows.select("arrival_unit", *window), window)
    state = F.when(F.col("holds"), "confirmed").otherwise("withdrawn")
    settled = closed.join(broken, ["rule", *window], "left").withColumn("state", state)
    return raised.unionByName(settled.drop("holds"))


def as_they_stand(warnings: DataFrame) -> DataFrame:
    """Each warning once, in the state that it came to last.

    Args:
        warnings: Rows of the table early_warnings.

    Returns:
        The same columns; `arrival_unit` is the arrival day that raised it, if its row is among
        them.
    """
    by_warning = Window.partitionBy(*PLACE)
    settled_last = by_warning.orderBy((F.col("state") == "open").desc())
    return (
        warnings.withColumn("raised_in", F.min("arrival_unit").over(by_warning))
        .withColumn("place", F.row_number().over(settled_last))
        .withColumn("rows_of_it", F.count("*").over(by_warning))
        .where("place = rows_of_it")
        .withColumn("arrival_unit", F.col("raised_in"))
        .drop("raised_in", "place", "rows_of_it")
    )
