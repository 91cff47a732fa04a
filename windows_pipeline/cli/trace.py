"""Leads from alerts to the records that caused them: `episodes` and `trace`."""

from __future__ import annotations

from datetime import datetime

import typer
from pyspark.sql import functions as F

from windows_pipeline.cli.printed import print_rows
from windows_pipeline.cli.session import session
from windows_pipeline.config import Pipeline
from windows_pipeline.incremental.alerts import episodes, standing
from windows_pipeline.query.trace import records_of_alert
from windows_pipeline.settings import Settings
from windows_pipeline.storage.tables import window_tables


def list_episodes(
    context: typer.Context,
    settings: Settings,
    pipeline: Pipeline,
    windows_name: str,
    rule: str | None,
    key: str | None,
    limit: int,
) -> None:
    """Prints the worst episodes, of one rule or key if they are given."""
    alerts = window_tables(pipeline, windows_name, settings.warehouse).alerts
    spark = session(context, settings)
    alerts.require(spark)
    rows = standing(alerts.read(spark))
    for column, wanted in (("rule", rule), ("key", key)):
        if wanted is not None:
            rows = rows.where(F.col(column).cast("string") == F.lit(wanted))
    worst = episodes(rows).orderBy(F.desc("severity"), "episode_start", "rule", "key")
    print_rows(
        worst.select(
            "rule", "key", "episode_start", "episode_end", "alerts", "severity", "worst.window_end"
        ),
        limit,
    )


def list_records(
    context: typer.Context,
    settings: Settings,
    pipeline: Pipeline,
    windows_name: str,
    key: str,
    window_end: datetime,
    limit: int,
) -> None:
    """Prints the records of the window of a key that ends at a time."""
    spark = session(context, settings)
    records = records_of_alert(spark, settings, pipeline, windows_name, key, window_end)
    source = pipeline.windows[windows_name].keyed(pipeline.source)
    arrival = [source.arrival_column] if source.arrival_column else []
    print_rows(
        records.select("arrival_unit", "offset", "event_time", *arrival, *source.values), limit
    )
