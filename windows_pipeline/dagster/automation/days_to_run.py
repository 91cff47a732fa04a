"""Which days of a pipeline a schedule or a sensor is to request."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from datetime import date, timedelta
from typing import NamedTuple

import dagster as dg

from windows_pipeline.config import Pipeline
from windows_pipeline.dagster.keys import asset_key
from windows_pipeline.dagster.partitions import arrival_days, range_tags
from windows_pipeline.query.state import computable_days
from windows_pipeline.query.tables.arrival_days import log_parts
from windows_pipeline.query.tables.local import UnreadableTableError
from windows_pipeline.settings import Settings
from windows_pipeline.sources.landing import LandingFolder, landing_of
from windows_pipeline.storage.arrival_units import days_from
from windows_pipeline.storage.catalog import PipelineSpecs, specs_of
from windows_pipeline.storage.waiting_days import days_to_ingest


class LandedDays(NamedTuple):
    """The landed days of a pipeline.

    Attributes:
        tables: The pipeline's tables.
        folder: The folder of their folders.
        days: The days that have a folder, and that Dagster has as partitions.
        published: The days that are published, which may have no folder any more.
        to_run: All days from the first unpublished one to the last before a missing day; some may
            be published.
        missing: The first day that has no folder and is not published, if later days have landed.
        ingesting: The unpublished days among `to_run` that a run in Dagster ingests now.
    """

    tables: PipelineSpecs
    folder: LandingFolder
    days: list[date]
    published: set[date]
    to_run: list[date]
    missing: date | None
    ingesting: list[date]

    @property
    def unpublished(self) -> list[date]:
        """The days to run that are not published."""
        return [day for day in self.to_run if day not in self.published]

    @property
    def gap(self) -> str:
        """A sentence on the missing day; empty if none is missing."""
        if self.missing is None:
            return ""
        return (
            f"{self.missing} has no folder, and all later days wait for it; land its files, or an "
            "empty folder for a day without events"
        )


def landed_days_of(
    instance: dg.DagsterInstance, pipeline: Pipeline, settings: Settings, most: int | None = None
) -> LandedDays:
    """The landed days of a pipeline, with at most a number of unpublished days to run.

    The arrival log says which days are published, as anybody who reaches the UI can report events
    of others. Where only Spark reads the log, as in an object store, Dagster's events say it.

    Raises:
        FileNotFoundError: There is no folder of landed days.
        TableDamagedError: A file of the log is damaged.
    """
    folder = landing_of(pipeline.source, settings.landing)
    partitions = arrival_days(pipeline)
    known = set(partitions.get_partition_keys())
    source = specs_of(pipeline, settings.warehouse)
    raw_events = asset_key(source.raw_events)
    try:
        published = {part.arrival_unit for part in log_parts(source.arrival_log)}
    except UnreadableTableError:
        published = set(map(date.fromisoformat, instance.get_materialized_partitions(raw_events)))
    landed = [day for day in folder.days if day.isoformat() in known]
    start = pipeline.partitions.start
    new, missing = days_to_ingest(start, landed, published, past_a_gap=False)
    end = missing if most is None else [*new, missing][min(most, len(new))]
    to_run = days_from(new[0], end - timedelta(days=1)) if new else []
    is_gap = end == missing < max(published.union(landed), default=start)
    unpublished = [day.isoformat() for day in to_run if day not in published]
    statuses = instance.get_status_by_partition(raw_events, unpublished, partitions) or {}
    ingesting = [
        date.fromisoformat(key)
        for key, status in statuses.items()
        if status == dg.AssetPartitionStatus.IN_PROGRESS
    ]
    gap = missing if is_gap else None
    return LandedDays(source, folder, landed, published, to_run, gap, sorted(ingesting))


def lacking_days(pipeline: Pipeline, settings: Settings) -> list[date]:
    """The ingested days that some definition lacks, as after a failed run; in order.

    None where only Spark reads the tables.
    """
    try:
        tables = specs_of(pipeline, settings.warehouse)
        of_windows: Iterable[Sequence[date]] = [
            computable_days(tables, name) for name in pipeline.windows
        ]
    except UnreadableTableError:
        return []
    return sorted(set().union(*of_windows))


def requested(days: Collection[date], key: str) -> dg.RunRequest:
    """Requests a run from the first to the last of some days; Dagster runs each key once."""
    first, last = min(days).isoformat(), max(days).isoformat()
    if first == last:
        return dg.RunRequest(run_key=f"{last} {key}", partition_key=last)
    return dg.RunRequest(run_key=f"{first}...{last} {key}", tags=range_tags(first, last))
