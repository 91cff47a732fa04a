"""Early warnings: rules that a firing breaks before its window closes (rule E5)."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from windows_pipeline.incremental.alerts import RuleSql, broken_rules
from windows_pipeline.storage.joins import join_on

WARNING_KEY = ("rule", "key", "window_start", "window_end")
"""The columns that identify a warning."""


def early_warnings(
    fired: DataFrame, final_windows: DataFrame, rules: Mapping[str, RuleSql]
) -> DataFrame:
    """Raises a warning at a window's first firing that breaks a rule, and ends it at the close.

    Args:
        fired: All firings so far of the windows that were open before some computed days and that
            these days made fire or closed: `_computed_day`, `_is_new` (whether the firing came
            with the computed day) and the columns of firings. Not of sessions.
        final_windows: The windows that these days closed, with `_computed_day`.
        rules: The rules by name; at least one.

    Returns:
        The columns of `fired` with `rule`, `severity` and `state`. The state is `open` in the row
        of the arrival unit that raised the warning. In the row of the arrival unit that closed the
        window it is `confirmed` if the final window breaks the rule, else `withdrawn`.
    """
    breaking = broken_rules(fired.where("NOT is_final"), rules)
    in_order = Window.partitionBy("_computed_day", *WARNING_KEY).orderBy("firing_id")
    first = breaking.withColumn("_number", F.row_number().over(in_order)).where("_number = 1")
    first = first.drop("_number")
    raised = first.where("_is_new").withColumn("state", F.lit("open"))
    window = ["_computed_day", "key", "window_start", "window_end"]
    broken = broken_rules(final_windows, rules).select("rule", *window, F.lit(True).alias("_holds"))
    of_final = final_windows.select("arrival_unit", *window)
    closed = join_on(first.drop("arrival_unit"), of_final, window, "inner")
    state = F.when(F.col("_holds"), "confirmed").otherwise("withdrawn")
    ended = join_on(closed, broken, ["rule", *window], "left").withColumn("state", state)
    return raised.unionByName(ended.drop("_holds"))


def as_they_stand(warnings: DataFrame) -> DataFrame:
    """Returns each warning once, in its latest state.

    Args:
        warnings: Rows of the table early_warnings.

    Returns:
        The same columns. `arrival_unit` is the arrival day that raised the warning, if that row
        is among `warnings`.
    """
    by_warning = Window.partitionBy(*WARNING_KEY)
    open_first = by_warning.orderBy((F.col("state") == "open").desc())
    return (
        warnings.withColumn("_raised_in", F.min("arrival_unit").over(by_warning))
        .withColumn("_number", F.row_number().over(open_first))
        .withColumn("_last_number", F.count("*").over(by_warning))
        .where("_number = _last_number")
        .withColumn("arrival_unit", F.col("_raised_in"))
        .drop("_raised_in", "_number", "_last_number")
    )
