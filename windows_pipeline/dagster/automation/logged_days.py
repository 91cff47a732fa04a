"""Which days of a pipeline are published, as its tables say."""

from __future__ import annotations

from datetime import date

import dagster as dg

from windows_pipeline.config import Pipeline
from windows_pipeline.dagster.keys import asset_key
from windows_pipeline.query.tables.arrival_days import log_parts
from windows_pipeline.query.tables.local import UnreadableTableError
from windows_pipeline.settings import Settings
from windows_pipeline.storage.tables import source_tables


def logged_days(instance: dg.DagsterInstance, pipeline: Pipeline, settings: Settings) -> set[date]:
    """The days that the arrival log has: anybody who reaches the UI can report events of others.

    Where only Spark reads the log, as in an object store, Dagster's events say which days.

    Raises:
        TableDamagedError: A file of the log is damaged.
    """
    source = source_tables(pipeline, settings.warehouse)
    try:
        return {part.arrival_unit for part in log_parts(source.arrival_log)}
    except UnreadableTableError:
        keys = instance.get_materialized_partitions(asset_key(source.raw_events))
        return {date.fromisoformat(key) for key in keys}
