"""Computes and draws early warnings of 2013's flights: `python -m demo.early_warnings IMAGE`.

Runs the jobs of `by_hour` over the landed year, prints how many warnings there were and how early,
and draws the firings of a day's windows at an airport. Takes some minutes.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from zoneinfo import ZoneInfo

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.dates import DateFormatter
from matplotlib.figure import Figure
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from rich.console import Console

from demo.prepare_flights import prepare
from windows_pipeline.cli.terminal.console import PlainConsole
from windows_pipeline.compat.spark_session import start_session
from windows_pipeline.config import Pipeline, load_pipeline
from windows_pipeline.incremental.alerts import standing
from windows_pipeline.incremental.early_warnings import as_they_stand
from windows_pipeline.jobs import RawEventsJob, run_job
from windows_pipeline.jobs.days.chain import window_jobs
from windows_pipeline.settings import Settings, load_settings
from windows_pipeline.sources.landed_files import landed_days
from windows_pipeline.storage.tables import FiringTables, firing_tables, window_tables

_ROOT = Path(__file__).parent.parent
_WINDOWS = "by_hour"
_NEW_YORK = ZoneInfo("America/New_York")
_LIMIT = 60.0
_MARKS = {"EARLY": ("o", "early"), "ON_TIME": ("D", "on time"), "LATE": (".", "late")}
_WARNED = ("*", "the early warning")
_COLORS = {"confirmed": "tab:red", "withdrawn": "tab:blue"}


def main(image: Path) -> int:
    """Computes, prints and draws the warnings; returns the exit status."""
    console = PlainConsole()
    settings = load_settings(_ROOT)
    pipeline = load_pipeline(settings.pipelines / "flights.yaml")
    prepare(_ROOT / "data" / "flights")
    spark = start_session(settings)
    if not _compute(console, spark, pipeline, settings):
        return 1
    tables = firing_tables(pipeline, _WINDOWS, settings.warehouse)
    if tables is None or tables.early_warnings is None:
        console.print(f"{_WINDOWS}: windows must have a trigger to warn early; declare one")
        return 1
    stand = as_they_stand(tables.early_warnings.read(spark)).cache()
    alerts = window_tables(pipeline, _WINDOWS, settings.warehouse).alerts.read(spark)
    console.print(f"alerts: {standing(alerts).count():,}")
    grace_ms = pipeline.windows[_WINDOWS].grace
    console.print(_summary(stand, grace_ms).to_string(index=False))
    _draw(_of_one_day(spark, stand, tables)).savefig(image, format="png", dpi=80)
    console.print(f"drawn: {image}")
    return 0


def _compute(console: Console, spark: SparkSession, pipeline: Pipeline, settings: Settings) -> bool:
    """Runs all jobs of the window definition; returns whether all results were published."""
    raw = RawEventsJob(pipeline, settings)
    days = landed_days(str(raw.landing))
    for job in (raw, *window_jobs(pipeline, _WINDOWS, settings)):
        began = time.monotonic()
        result = run_job(job, spark, days)
        rows = ", ".join(f"{name} {sum(by.values()):,}" for name, by in result.rows.items())
        console.print(f"{rows} ({time.monotonic() - began:.0f} s)")
        failed = [found.check.name for found in result.checks if not found.passed]
        if not result.published:
            console.print(f"not published: {', '.join(failed)}")
            return False
    return True


def _summary(stand: DataFrame, grace_ms: int) -> pd.DataFrame:
    """Counts warnings by state and firing reason, with the minutes until the window closed."""
    close_ms = F.unix_millis("window_end") + F.lit(grace_ms)
    lead_minutes = (close_ms - F.unix_millis("stream_time")) / 60_000
    return (
        stand.groupBy("state", "reason")
        .agg(
            F.count("*").alias("warnings"),
            F.round(F.min(lead_minutes)).alias("least minutes before close"),
            F.round(F.median(lead_minutes)).alias("median"),
            F.round(F.max(lead_minutes)).alias("most"),
        )
        .orderBy("state", "reason")
        .toPandas()
    )


def _of_one_day(spark: SparkSession, stand: DataFrame, tables: FiringTables) -> pd.DataFrame:
    """The firings of the windows with a warning, of an airport and a day.

    The airport and day are those with the most warnings that were confirmed and withdrawn.
    """
    local_day = F.to_date(F.from_utc_timestamp("window_start", str(_NEW_YORK)))
    decided = stand.where("state <> 'open'").withColumn("day", local_day)
    is_confirmed = F.col("state") == "confirmed"
    outcomes = decided.groupBy("key", "day").agg(
        F.least(F.count_if(is_confirmed), F.count_if(~is_confirmed)).alias("both"),
        F.count("*").alias("warnings"),
    )
    chosen = outcomes.orderBy(F.desc("both"), F.desc("warnings"), "day", "key").limit(1)
    warned = decided.join(chosen.select("key", "day"), ["key", "day"], "semi").select(
        "key", "window_start", "state", F.col("firing_id").alias("warned_by")
    )
    firings = tables.firings.read(spark).join(F.broadcast(warned), ["key", "window_start"])
    return firings.orderBy("window_start", "firing_id").toPandas()


def _draw(firings: pd.DataFrame) -> Figure:
    figure = Figure(figsize=(10, 5.5), layout="constrained")
    axes = figure.subplots()
    for _, of_window in firings.groupby("window_start"):
        _draw_window(axes, of_window)
    for state, color in _COLORS.items():
        axes.plot([], [], color=color, label=f"an hour whose warning was {state}")
    for mark, label in (*_MARKS.values(), _WARNED):
        axes.plot([], [], mark, color="grey", label=label)
    axes.axhline(_LIMIT, color="black", linestyle=":", linewidth=1, label="the rule's limit")
    day = _local(firings["window_start"]).min()
    where_and_when = f"{firings['key'].iloc[0]}, {day:%d %B %Y}"
    axes.set_title(f"{where_and_when}: average departure delay by hour, from HH:MM")
    axes.set_xlabel("stream time when the window fired (New York)")
    axes.set_ylabel("minutes, of the flights so far", fontsize="small")
    hours = DateFormatter("%H:%M", tz=_NEW_YORK)  # type: ignore[no-untyped-call]  # its stub
    axes.xaxis.set_major_formatter(hours)
    axes.legend(loc="upper left", fontsize="small", ncols=2)
    axes.grid(alpha=0.3)
    return figure


def _draw_window(axes: Axes, firings: pd.DataFrame) -> None:
    at, delay = _local(firings["stream_time"]), firings["avg_dep_delay"]
    color = _COLORS[firings["state"].iloc[0]]
    axes.plot(at, delay, linewidth=1, color=color)
    shown = {mark: firings["reason"] == reason for reason, (mark, _) in _MARKS.items()}
    shown[_WARNED[0]] = firings["firing_id"] == firings["warned_by"]
    for mark, chosen in shown.items():
        size = 11 if mark == _WARNED[0] else None
        axes.plot(at[chosen], delay[chosen], mark, color=color, markersize=size)
    start = _local(firings["window_start"]).iloc[0]
    axes.annotate(
        f"{start:%H:%M}",
        (at.iloc[0], delay.iloc[0]),
        (-12, 8),
        textcoords="offset points",
        fontsize="small",
        color=color,
    )


def _local(times: pd.Series) -> pd.Series:
    """Naive UTC timestamps, as Spark collects them, in New York time."""
    local: pd.Series = times.dt.tz_localize("UTC").dt.tz_convert(_NEW_YORK)
    return local


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
