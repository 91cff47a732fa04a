"""`episodes` and `trace`: from alerts to the records that caused them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

import typer
from pyspark.sql import functions as F

from windows_pipeline.cli.arguments import (
    PipelineName,
    WindowsName,
    chosen_windows,
    declared,
    session,
)
from windows_pipeline.cli.printed import print_rows
from windows_pipeline.incremental.alerts import episodes as episodes_of
from windows_pipeline.incremental.alerts import standing
from windows_pipeline.query.trace import records_of_alert
from windows_pipeline.storage.tables import window_tables


def episodes(
    context: typer.Context,
    pipeline: PipelineName,
    windows: WindowsName = None,
    rule: Annotated[str | None, typer.Option(help="Only this rule.")] = None,
    key: Annotated[str | None, typer.Option(help="Only this key.")] = None,
    limit: Annotated[int, typer.Option(min=1, help="How many, the worst first.")] = 20,
) -> None:
    """Lists episodes: alerts of one key and rule whose windows overlap, the worst first."""
    settings, found = declared(pipeline)
    alerts = window_tables(found, chosen_windows(found, windows), settings.warehouse).alerts
    spark = session(context, settings)
    alerts.require(spark)
    rows = standing(alerts.read(spark))
    for column, wanted in (("rule", rule), ("key", key)):
        if wanted is not None:
            rows = rows.where(F.col(column).cast("string") == F.lit(wanted))
    worst = episodes_of(rows).orderBy(F.desc("severity"), "episode_start", "rule", "key")
    print_rows(
        worst.select(
            "rule", "key", "episode_start", "episode_end", "alerts", "severity", "worst.window_end"
        ),
        limit,
    )


def trace(
    context: typer.Context,
    pipeline: PipelineName,
    key: Annotated[str, typer.Argument(help="The alert's key.")],
    window_end: Annotated[
        str, typer.Argument(help="The alert's window_end, UTC, as `episodes` prints it.")
    ],
    windows: WindowsName = None,
    limit: Annotated[int, typer.Option(min=1, help="How many records to print.")] = 50,
) -> None:
    """Lists the records that count in an alert's window."""
    settings, found = declared(pipeline)
    name = chosen_windows(found, windows)
    try:
        instant = datetime.fromisoformat(window_end)
    except ValueError:
        raise typer.BadParameter(
            f"WINDOW_END: {window_end!r} is no time; write it as '2013-03-08 21:15:00'"
        ) from None
    if instant.tzinfo is None:
        instant = instant.replace(tzinfo=UTC)
    spark = session(context, settings)
    records = records_of_alert(spark, settings, found, name, key, instant)
    arrival = [found.source.arrival_column] if found.source.arrival_column else []
    print_rows(
        records.select("arrival_unit", "offset", "event_time", *arrival, *found.source.values),
        limit,
    )
