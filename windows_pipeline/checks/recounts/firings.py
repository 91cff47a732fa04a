"""Joins firings and early warnings with the rows that show whether they are right."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from operator import and_

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from windows_pipeline.incremental.alerts import RuleSql, broken_rules
from windows_pipeline.incremental.early_warnings import WARNING_KEY
from windows_pipeline.storage.instants import timestamp_to_ms
from windows_pipeline.storage.joins import join_on


def with_previous_and_final(
    firings: DataFrame,
    final: DataFrame,
    arrival_units: DataFrame,
    window: Sequence[str],
    values: Sequence[str],
) -> DataFrame:
    """Joins each firing with the previous firing of its window and the window's final result.

    Args:
        firings: Rows of the table firings.
        final: The final windows of the same arrival units.
        arrival_units: The frame that `arrival_units.gapless_days_frame` returns.
        window: The columns that identify a window.
        values: The columns of a result.

    Returns:
        The firings with the columns of `arrival_units`; `_window_start_ms`;
        `_previous_arrival_unit`, `_previous_since`, `_previous_id` and `_previous_reason` of the
        previous firing; `_has_final`, whether the arrival unit closed the window; and
        `_is_as_final`, whether the firing has the values of the final result.
    """
    in_order = Window.partitionBy(*window).orderBy("firing_id", "arrival_unit")
    previous = {
        "arrival_unit": "arrival_unit",
        "since": "_since",
        "id": "firing_id",
        "reason": "reason",
    }
    numbered = firings.join(arrival_units, "arrival_unit", "left").withColumns(
        {
            "_window_start_ms": timestamp_to_ms("window_start"),
            **{f"_previous_{new}": F.lag(name).over(in_order) for new, name in previous.items()},
        }
    )
    result = F.struct(*values).alias("_result")
    finals = final.select("arrival_unit", *window, F.lit(True).alias("_has_final"), result)
    has_final = F.coalesce("_has_final", F.lit(False))
    return (
        join_on(numbered, finals, ["arrival_unit", *window], "left")
        .withColumns({"_has_final": has_final, "_is_as_final": _equals_result(values)})
        .drop("_result")
    )


def with_their_firings(
    final: DataFrame,
    firings: DataFrame,
    arrival_units: DataFrame,
    window: Sequence[str],
    values: Sequence[str],
) -> DataFrame:
    """Joins each final window with the firings that it had in the same arrival units.

    Args:
        final: The final windows.
        firings: Rows of the table firings of the same arrival units.
        arrival_units: The frame that `arrival_units.gapless_days_frame` returns.
        window: The columns that identify a window.
        values: The columns of a result.

    Returns:
        The final windows with the columns of `arrival_units`, `_window_start_ms`, `_on_time` and
        `_final` (the numbers of ON_TIME firings and of those with `is_final`), `_last_since`
        (`_since` of the last firing's arrival unit; null without a firing) and `_is_as_final`
        (whether the last firing has the values of the final result).
    """
    by_number = F.struct("firing_id", "_since")
    summed = (
        firings.join(arrival_units, "arrival_unit", "left")
        .groupBy(*window)
        .agg(
            F.count_if(F.col("reason") == "ON_TIME").alias("_on_time"),
            F.count_if("is_final").alias("_final"),
            F.max(by_number).getField("_since").alias("_last_since"),
            F.max_by(F.struct(*values), "firing_id").alias("_result"),
        )
    )
    return (
        join_on(final.join(arrival_units, "arrival_unit", "left"), summed, window, "left")
        .withColumns(
            {
                "_window_start_ms": timestamp_to_ms("window_start"),
                "_on_time": F.coalesce("_on_time", F.lit(0)),
                "_final": F.coalesce("_final", F.lit(0)),
                "_is_as_final": _equals_result(values),
            }
        )
        .drop("_result")
    )


def with_their_results(
    warnings: DataFrame, firings: DataFrame, final: DataFrame, rules: Mapping[str, RuleSql]
) -> DataFrame:
    """Joins each early warning with its firing and its window's final result.

    Args:
        warnings: Rows of the table early_warnings.
        firings: Rows of the table firings of the same arrival units.
        final: The final windows of the same arrival units.
        rules: The rules by name.

    Returns:
        The warnings with `_is_firing` (whether one of these firings, before the window closed,
        raised the warning), `_has_final`, `_final_breaks` (whether the final window breaks the
        rule), and `_open_rows` and `_closed_rows`: how many rows of the warning are open, and how
        many are confirmed or withdrawn.
    """
    window = ["arrival_unit", *WARNING_KEY[1:]]
    not_final = firings.where("NOT is_final").select(
        *window, "firing_id", F.lit(True).alias("_is_firing")
    )
    finals = final.select(*window, F.lit(True).alias("_has_final"))
    of_firing = join_on(warnings, not_final, [*window, "firing_id"], "left")
    joined = join_on(of_firing, finals, window, "left")
    breaks = F.lit(False)
    if rules:
        broken = broken_rules(final, rules).select("rule", *window, F.lit(True).alias("_broken"))
        joined = join_on(joined, broken, ["rule", *window], "left")
        breaks = F.coalesce("_broken", F.lit(False))
    of_warning = Window.partitionBy(*WARNING_KEY)
    is_open = F.col("state") == "open"
    return joined.withColumns(
        {
            "_is_firing": F.coalesce("_is_firing", F.lit(False)),
            "_has_final": F.coalesce("_has_final", F.lit(False)),
            "_final_breaks": breaks,
            "_open_rows": F.count_if(is_open).over(of_warning),
            "_closed_rows": F.count_if(~is_open).over(of_warning),
        }
    )


def with_their_firing(made: DataFrame, firings: DataFrame, window: Sequence[str]) -> DataFrame:
    """Joins each row that a function made of a firing with the firing.

    Args:
        made: Rows of the table processed.
        firings: Rows of the table firings of the same arrival units.
        window: The columns that identify a window.

    Returns:
        The rows with `_is_firing` (whether their firing is there) and `_in_order` (which number a
        row has among the rows of its firing).
    """
    firing = ["arrival_unit", *window, "firing_id", "reason"]
    known = firings.select(*firing, F.lit(True).alias("_is_firing"))
    of_firing = Window.partitionBy(*firing).orderBy("row_number")
    numbered = made.withColumn("_in_order", F.row_number().over(of_firing) - 1)
    joined = join_on(numbered, known, firing, "left")
    return joined.withColumn("_is_firing", F.coalesce("_is_firing", F.lit(False)))


def _equals_result(values: Sequence[str]) -> Column:
    """Whether a row's values equal those of its column `_result`."""
    return reduce(and_, [F.col(name).eqNullSafe(F.col("_result")[name]) for name in values])
