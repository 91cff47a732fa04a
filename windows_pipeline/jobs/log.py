"""The rows of the arrival log: what has arrived, read once a job (rule A2)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import date
from typing import NamedTuple

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from windows_pipeline.engine.timeline import Arrival
from windows_pipeline.tables.delta import Table


class LogRow(NamedTuple):
    """A row of the arrival log: a source partition's part of a unit."""

    unit: date
    source_partition: str | None
    max_event_time_ms: int | None
    rows: int
    unit_rejected: int
    last_offset: int | None = None
    in_force_ms: int | None = None
    batch: int | None = None
    stream: str | None = None
    first_offset: int | None = None


ArrivalLog = tuple[LogRow, ...]


def arrivals_in(log: Iterable[LogRow]) -> Iterator[Arrival]:
    """The log as the engine takes it."""
    return (
        Arrival(row.unit, row.source_partition, row.max_event_time_ms, row.in_force_ms, row.batch)
        for row in log
    )


def read_log(spark: SparkSession, arrival_log: Table) -> ArrivalLog:
    """Scans a pipeline's arrival log."""
    rows = arrival_log.read(spark).select(
        "unit",
        "source_partition",
        F.unix_millis("max_event_time"),
        "rows",
        "unit_rejected",
        "last_offset",
        F.unix_millis("in_force"),
        "batch",
        "stream",
        "first_offset",
    )
    return tuple(LogRow(*row) for row in rows.collect())
