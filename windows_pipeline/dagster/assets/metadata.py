"""The metadata of assets and materializations that Dagster's UI shows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime

import dagster as dg
from pyspark.sql import SparkSession
from pyspark.sql import types as T

from windows_pipeline.dagster.assets.checks import day_numbers
from windows_pipeline.jobs import JobResult
from windows_pipeline.jobs.correction.run import CorrectionResult
from windows_pipeline.storage.table import Table
from windows_pipeline.streaming import BatchResult

Metadata = dict[str, dg.MetadataValue]
ExtraMetadata = Callable[[SparkSession, Sequence[date]], Mapping[date, Metadata]]
"""Computes further metadata of some of a run's days, once they are published."""


def run_metadata(table: Table, result: JobResult) -> Metadata:
    """The metadata common to all days of a run: the table's version, its rows, and the job's pace.

    Dagster plots the numbers over the days at which runs ended.
    """
    rows = sum(result.rows[table.name].values())
    return {
        "delta_version": dg.MetadataValue.int(result.versions[table.name]),
        "rows_of_run": dg.MetadataValue.int(rows),
        "seconds_of_run": dg.MetadataValue.float(round(result.seconds, 3)),
        "rows_per_second": dg.MetadataValue.float(round(rows / max(result.seconds, 0.001), 1)),
    }


def day_metadata(table: Table, result: JobResult, day: date) -> Metadata:
    """The metadata of one day: rows, late and rejected records, and the close time."""
    rows = result.rows[table.name].get(day, 0)
    metadata: Metadata = {"dagster/partition_row_count": dg.MetadataValue.int(rows)}
    for name, value in result.facts[day].items():
        if name.endswith("_ms") and isinstance(value, int):
            instant = datetime.fromtimestamp(value / 1000, UTC).timestamp()
            metadata[name.removesuffix("_ms")] = dg.MetadataValue.timestamp(instant)
        elif isinstance(value, int):
            metadata[name] = dg.MetadataValue.int(value)
        else:
            metadata[name] = dg.MetadataValue.text(value)
    return metadata


def main_metadata(table: Table, result: JobResult, day: date) -> Metadata:
    """What the day of a job's first table has of its other tables and of its rules.

    These are the rows of each other table, as it has no materialization of a day without rows, and
    the numbers that rules compare, such as the ingested and counted records.
    """
    others = {
        name.rpartition("/")[2]: rows.get(day, 0)
        for name, rows in result.rows.items()
        if name != table.name
    }
    counts = {
        name: dg.MetadataValue.int(rows)
        for name, rows in others.items()
        if not name.startswith("_")  # of bookkeeping
    }
    return counts | day_numbers(result.checks, day)


def batch_metadata(batches: Sequence[BatchResult]) -> Metadata:
    """The numbers of records and files of a stream's micro-batches."""
    metadata: Metadata = {
        "micro_batches": dg.MetadataValue.int(len(batches)),
        "accepted": dg.MetadataValue.int(sum(batch.accepted for batch in batches)),
        "rejected": dg.MetadataValue.int(sum(batch.rejected for batch in batches)),
        "files_passed_over": dg.MetadataValue.int(sum(batch.passed_over for batch in batches)),
    }
    if batches:
        seconds = batches[-1].stream_time_ms / 1000
        metadata["stream_time"] = dg.MetadataValue.timestamp(seconds)
    return metadata


def correction_metadata(result: CorrectionResult, cause: str) -> dict[date, Metadata]:
    """The correction's number, its cause and what changed, by each day that it changed."""
    of_all: Metadata = {
        "correction": dg.MetadataValue.int(result.number or 0),
        "cause": dg.MetadataValue.text(cause),
    }
    found = {}
    for day, corrected in result.by_day.items():
        counts = {f"windows_{kind}": number for kind, number in corrected.windows.items()}
        counts["alerts_retracted"] = corrected.alerts_retracted
        counts["alerts_raised"] = corrected.alerts_raised
        found[day] = of_all | {name: dg.MetadataValue.int(of) for name, of in counts.items()}
    return found


def column_schema(schema: T.StructType, made_of: Mapping[str, Sequence[str]]) -> dg.MetadataValue:
    """The columns of a table, with their comments.

    Args:
        schema: The columns.
        made_of: The columns of raw_events of which some are made: Dagster draws the lineage of
            columns in its paid version only.
    """
    columns = [
        dg.TableColumn(
            field.name,
            field.dataType.simpleString(),
            description=_described(field.metadata.get("comment"), made_of.get(field.name, ())),
        )
        for field in schema
    ]
    return dg.MetadataValue.table_schema(dg.TableSchema(columns))


def _described(comment: str | None, made_of: Sequence[str]) -> str | None:
    if not made_of:
        return comment
    return f"{comment or ''} (from raw_events: {', '.join(made_of)})".lstrip()
