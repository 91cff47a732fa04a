"""Firings and early warnings, each beside what tells whether it is right."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from operator import and_

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from windows_pipeline.incremental.alerts import RuleSql, broken_rules
from windows_pipeline.incremental.early_warnings import PLACE as WARNING

_WINDOW = ("key", "window_start", "window_end")


def beside_others(
    firings: DataFrame, final: DataFrame, units: DataFrame, values: Sequence[str]
) -> DataFrame:
    """Firings, the one before of the same window, and what the window's final result is.

    Args:
        firings: Rows of the table firings.
        final: The final windows of the same units.
        units: What `arrivals.stretches_frame` gives.
        values: The columns of the result.

    Returns:
        With the columns of `units`, `_window_start_ms`; `previous_arrival_unit`, `previous_since`,
        `previous_id` and `previous_reason`; of final ones `final_is_there` and `is_as_final`.
    """
    in_order = Window.partitionBy(*_WINDOW).orderBy("firing_id", "arrival_unit")
    previous = {
        "arrival_unit": "arrival_unit",
        "since": "since",
        "id": "firing_id",
        "reason": "reason",
    }
    placed = firings.join(units, "arrival_unit", "left").withColumns(
        {
            "_window_start_ms": F.unix_millis("window_start"),
            **{f"previous_{new}": F.lag(name).over(in_order) for new, name in previous.items()},
        }
    )
    result = F.struct(*values).alias("result")
    finals = final.select("arrival_unit", *_WINDOW, F.lit(True).alias("final_is_there"), result)
    final_there = F.coalesce("final_is_there", F.lit(False))
    return (
        placed.join(finals, ["arrival_unit", *_WINDOW], "left")
        .withColumns({"final_is_there": final_there, "is_as_final": _alike(values)})
        .drop("result")
    )


def beside_closed(
    firings: DataFrame, final: DataFrame, units: DataFrame, values: Sequence[str]
) -> DataFrame:
    """Final windows, and what their firings in these units say.

    Returns:
        The final windows with the columns of `units`, `_window_start_ms`, `on_time` (how many
        firings on time), `last_since` (that of the last firing's unit, null without one) and
        `is_as_final` (whether it shows what is final).
    """
    by_number = F.struct("firing_id", "since")
    told = (
        firings.join(units, "arrival_unit", "left")
        .groupBy(*_WINDOW)
        .agg(
            F.count_if(F.col("reason") == "ON_TIME").alias("on_time"),
            F.max(by_number).getField("since").alias("last_since"),
            F.max_by(F.struct(*values), "firing_id").alias("result"),
        )
    )
    return (
        final.join(units, "arrival_unit", "left")
        .join(told, list(_WINDOW), "left")
        .withColumns(
            {
                "_window_start_ms": F.unix_millis("window_start"),
                "on_time": F.coalesce("on_time", F.lit(0)),
                "is_as_final": _alike(values),
            }
        )
        .drop("result")
    )


def beside_results(
    warnings: DataFrame, firings: DataFrame, final: DataFrame, rules: Mapping[str, RuleSql]
) -> DataFrame:
    """Early warnings, their firings, and their windows' final results in these units.

    Returns:
        With `is_firing` (an open one: whether it is one of these that is not final),
        `final_is_there`, `final_breaks` (whether the final window breaks the rule), and how
        often the warning is open and settled here: `open_rows`, `settled_rows`.
    """
    own = firings.where("NOT is_final").select(
        "arrival_unit", *_WINDOW, "firing_id", F.lit(True).alias("is_firing")
    )
    finals = final.select("arrival_unit", *_WINDOW, F.lit(True).alias("final_is_there"))
    window = ["arrival_unit", *_WINDOW]
    told = warnings.join(own, [*window, "firing_id"], "left").join(finals, window, "left")
    breaks = F.lit(False)
    if rules:
        broken = broken_rules(final, rules).select("rule", *window, F.lit(True).alias("broken"))
        told = told.join(broken, ["rule", *window], "left")
        breaks = F.coalesce("broken", F.lit(False))
    of_warning = Window.partitionBy(*WARNING)
    is_open = F.col("state") == "open"
    return told.withColumns(
        {
            "is_firing": F.coalesce("is_firing", F.lit(False)),
            "final_is_there": F.coalesce("final_is_there", F.lit(False)),
            "final_breaks": breaks,
            "open_rows": F.count_if(is_open).over(of_warning),
            "settled_rows": F.count_if(~is_open).over(of_warning),
        }
    )


def _alike(values: Sequence[str]) -> Column:
    """Whether a row has the values of its `result`."""
    return reduce(and_, [F.col(name).eqNullSafe(F.col("result")[name]) for name in values])
