"""Prints the worst episodes: `episodes`; and reads the severities of silences for `report`."""

from __future__ import annotations

import typer
from pyspark.sql import functions as F

from windows_pipeline.cli.questions.trace_by_spark import key_values
from windows_pipeline.cli.session import session
from windows_pipeline.cli.terminal.printed import print_rows
from windows_pipeline.config import Pipeline
from windows_pipeline.jobs import AlertsJob
from windows_pipeline.query.alert_ids import alert_id
from windows_pipeline.query.records.trace_by_spark import is_key
from windows_pipeline.query.tables.arrow_values import python_rows
from windows_pipeline.report.silences import SilenceSeverities
from windows_pipeline.report.words import episode_state
from windows_pipeline.settings import Settings
from windows_pipeline.storage.instants import timestamp_to_ms
from windows_pipeline.storage.tables import window_tables
from windows_pipeline.text.values import key_text


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
    rows = alerts.read(spark)
    if rule is not None:
        rows = rows.where(F.col("rule") == F.lit(rule))
    if key is not None:
        source = pipeline.windows[windows_name].keyed(pipeline.source)
        rows = rows.where(is_key(key_values(key, source), rows.schema["key"].dataType))
    job = AlertsJob(pipeline, windows_name, settings)
    lasting = job.whole_episodes(spark, rows)
    length = timestamp_to_ms("until") - timestamp_to_ms("episode_start")
    windows = pipeline.windows[windows_name]
    ranks = [F.when(F.col("rule") == name, windows.urgency(name)) for name in windows.alerts]
    urgency = F.coalesce(*ranks, F.lit(windows.urgency("")))
    worst = lasting.orderBy(
        urgency, F.desc("severity"), length.desc(), "episode_start", "rule", "key"
    )
    row_key = windows.row_key
    names = ("rule", "key", "episode_start", "until", "alerts", "severity")
    found = [
        (
            *(row[name] for name in names[:-1]),
            row["severity"],
            episode_state(is_open=row["is_open"], ends_empty=row["ends_empty"]),
            row["worst"]["window_end"],
            alert_id(
                pipeline.name,
                windows_name,
                row_key,
                {**row["worst"].asDict(), "rule": row["rule"], "key": row["key"]},
            ),
        )
        for row in worst.limit(limit + 1).collect()
    ]
    print_rows((*names, "state", "window_end", "worst alert"), found, limit)


def silence_severities(
    context: typer.Context, settings: Settings, pipeline: Pipeline, windows_name: str
) -> SilenceSeverities:
    """The severities of the silences of a definition, for a report, which computes no rule."""
    job = AlertsJob(pipeline, windows_name, settings)
    alerts = job.window_tables.alerts
    spark = session(context, settings)
    if not alerts.exists(spark):
        return {}
    lasting = job.whole_episodes(spark, alerts.read(spark)).where("ends_empty")
    rows = lasting.select("rule", "key", "episode_start", "severity").toArrow()
    return {
        (row["rule"], key_text(row["key"]), row["episode_start"]): row["severity"]
        for row in python_rows(rows)
    }
