"""Requires that raw_events holds the rows that the arrival log counts (rule A2)."""

from __future__ import annotations

from collections.abc import Collection
from datetime import date

from pyspark.sql import SparkSession

from windows_pipeline.arrival.log import ArrivalLog
from windows_pipeline.config import Pipeline
from windows_pipeline.storage.table import Table
from windows_pipeline.text.counts import counted
from windows_pipeline.text.problems import RefusedError


class RawRowsMissingError(RefusedError):
    """raw_events lacks rows that the arrival log counts; the message names day and fix."""


def require_raw_rows(
    spark: SparkSession,
    pipeline: Pipeline,
    raw_events: Table,
    log: ArrivalLog,
    days: Collection[date],
) -> None:
    """Requires that raw_events has all rows of some days.

    Args:
        spark: The session.
        pipeline: The pipeline.
        raw_events: The pipeline's table.
        log: The pipeline's arrival log.
        days: The days whose records will be read.

    Raises:
        RawRowsMissingError: A day has fewer rows than the log says; the first such day is named.
    """
    wanted = dict.fromkeys(sorted(days), 0)
    for row in log:
        if row.arrival_unit in wanted:
            wanted[row.arrival_unit] += row.rows
    found = raw_events.rows_by_arrival_unit(spark, wanted)
    for day, rows in wanted.items():
        if found[day] < rows:
            start_over = (
                f"from the landed files: windows-pipeline rebuild {pipeline.name} --from raw_events"
                if pipeline.source.is_landed
                else "without the pipeline's folder of tables: "
                f"windows-pipeline stream {pipeline.name}"
            )
            raise RawRowsMissingError(
                f"{raw_events.name} must hold the {counted(rows, 'row')} of {day} that "
                f"arrival_log names, and holds {found[day]:,}; no result was computed. Put the "
                f"table back as it was, or start over {start_over}"
            )
