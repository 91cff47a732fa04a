"""Prints the records of a window where only Spark can read the tables."""

from __future__ import annotations

from datetime import datetime

import typer

from windows_pipeline.cli.session import session
from windows_pipeline.cli.terminal.printed import print_rows
from windows_pipeline.config import Pipeline, Source
from windows_pipeline.query.records.trace_by_spark import records_of_alert
from windows_pipeline.settings import Settings

_SEVERAL = 2


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
    source = pipeline.windows[windows_name].keyed(pipeline.source)
    values = key_values(key, source)
    records = records_of_alert(spark, settings, pipeline, windows_name, values, window_end)
    arrival = [source.arrival_column] if source.arrival_column else []
    shown = records.select("arrival_unit", "offset", "event_time", *arrival, *source.values)
    print_rows(shown.columns, shown.limit(limit + 1).collect(), limit)


def key_values(key: str, source: Source) -> str | list[str]:
    """The parts of a key as users write it: the values of its columns, with commas between."""
    if len(source.key_columns) < _SEVERAL:
        return key
    return [value.strip() for value in key.split(",")]
