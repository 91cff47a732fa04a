"""Plots of alerts and window sizes over time."""

from __future__ import annotations

import io
from collections.abc import Sequence
from datetime import date

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from windows_pipeline.compat.local_frame import small_frame
from windows_pipeline.incremental.alerts import standing
from windows_pipeline.storage.arrival_units import in_units
from windows_pipeline.storage.tables import WindowTables

_HOURLY_UP_TO_DAYS = 14
_MOST_KEYS = 8


def alerts_over_time(spark: SparkSession, tables: WindowTables, days: Sequence[date]) -> bytes:
    """Draws the largest record count of keys and the alerts of each rule over time.

    At most eight keys are drawn: those with the worst alerts, then those with the largest windows.

    Args:
        spark: The session.
        tables: The tables of a window definition.
        days: The units to draw: up to two weeks by the hour, more by the day.

    Returns:
        A PNG image. Each rule has its own scale, as some rules raise far more alerts than others.
    """
    step = "hour" if len(days) <= _HOURLY_UP_TO_DAYS else "day"
    final = tables.final_windows.of_units(spark, days)
    raised = standing(tables.alerts.read(spark)).where(in_units(days))
    few, are_more = _keys_to_draw(final, raised)
    counts = _by_time(
        final.join(F.broadcast(few), _named("key") == F.col("_drawn")),
        step,
        "key",
        F.max("record_count"),
    )
    alerts = _by_time(raised, step, "rule", F.count("*")).fillna(0)
    of_rules = [alerts[[rule]] for rule in alerts.columns] or [alerts]
    figure = Figure(figsize=(10, 2 + 2 * len(of_rules)), layout="constrained")
    above, *below = figure.subplots(1 + len(of_rules), 1, sharex=True)
    of_keys = f" of {_MOST_KEYS} keys" if are_more else ""
    _draw(above, counts, f"largest window{of_keys}, by {step}")
    for axes, of_rule in zip(below, of_rules, strict=True):
        _draw(axes, of_rule, f"alerts, by {step}")
    above.set_title(tables.alerts.name)
    below[-1].set_xlabel("window end (UTC)")
    image = io.BytesIO()
    figure.savefig(image, format="png", dpi=80)
    return image.getvalue()


def _keys_to_draw(final: DataFrame, raised: DataFrame) -> tuple[DataFrame, bool]:
    """The keys to draw as `_drawn`, and whether there are more keys."""
    of_alerts = raised.groupBy(_named("key").alias("_drawn")).agg(F.max("severity").alias("worst"))
    of_windows = final.groupBy(_named("key").alias("_drawn")).agg(
        F.max("record_count").alias("largest")
    )
    in_order = (F.desc_nulls_last("worst"), F.desc("largest"), "_drawn")
    found = of_windows.join(of_alerts, "_drawn", "left").orderBy(*in_order).limit(_MOST_KEYS + 1)
    rows = [row["_drawn"] for row in found.collect()]
    drawn = [(key,) for key in rows[:_MOST_KEYS]]
    return small_frame(final.sparkSession, drawn, "_drawn string"), len(rows) > _MOST_KEYS


def _named(series: str) -> Column:
    return F.coalesce(F.col(series).cast("string"), F.lit("none"))


def _by_time(rows: DataFrame, step: str, series: str, value: Column) -> pd.DataFrame:
    """A table with a column per series and a row per step of time."""
    times = F.date_trunc(step, "window_end").alias("time")
    grouped = rows.groupBy(times, _named(series).alias(series)).agg(value.alias("value"))
    long = grouped.toPandas()
    table = long.pivot_table(index="time", columns=series, values="value").sort_index()
    # A step without rows becomes a gap; else the line would connect its neighbours.
    return table.asfreq("h" if step == "hour" else "D") if len(table) else table


def _draw(axes: Axes, table: pd.DataFrame, label: str) -> None:
    for name in table.columns:
        # Markers show a value between two gaps, which has no line.
        axes.plot(table.index, table[name], ".-", label=str(name), linewidth=1, markersize=2)
    if len(table.columns):
        axes.legend(loc="upper left", fontsize="small")
    else:
        axes.text(0.5, 0.5, "none", ha="center", transform=axes.transAxes)
    axes.set_ylabel(label, fontsize="small")
    axes.grid(alpha=0.3)
