"""The materializations of days of a table that a job wrote."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import date

import dagster as dg

from windows_pipeline.config import Pipeline
from windows_pipeline.dagster.assets.catalogue import column_lineage
from windows_pipeline.dagster.assets.metadata import Metadata, day_metadata, run_metadata
from windows_pipeline.dagster.keys import asset_key
from windows_pipeline.jobs import JobResult
from windows_pipeline.storage.table import Table


def materializations(
    pipeline: Pipeline,
    warehouse: str,
    table: Table,
    result: JobResult,
    by_day: Mapping[date, Metadata],
) -> Iterator[dg.AssetMaterialization]:
    """A materialization of each day; the last one also has the whole table's metadata.

    Args:
        pipeline: The pipeline.
        warehouse: Where its tables lie.
        table: The table.
        result: The job's result.
        by_day: The days, with further metadata.
    """
    days = sorted(by_day)
    for day in days:
        metadata: Metadata = {}
        if day == days[-1]:
            metadata = run_metadata(table, result) | column_lineage(pipeline, table, warehouse)
        metadata |= day_metadata(table, result, day) | by_day[day]
        yield dg.AssetMaterialization(
            asset_key(table), metadata=metadata, partition=day.isoformat()
        )


def days_with_rows(
    instance: dg.DagsterInstance, table: Table, result: JobResult
) -> dict[date, Metadata]:
    """A job's days of which a table has rows, or of which Dagster shows that it once had some.

    The tables that a job writes beside its first one report these days only.
    """
    shown = instance.get_materialized_partitions(asset_key(table))
    rows = result.rows[table.name]
    return {day: {} for day in result.facts if rows.get(day) or day.isoformat() in shown}
