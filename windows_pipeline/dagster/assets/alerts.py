"""The metadata of alerts: a plot of each day, and the early warnings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date

import dagster as dg
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from windows_pipeline.dagster.assets.metadata import ExtraMetadata, Metadata
from windows_pipeline.dagster.assets.plots import alert_plots
from windows_pipeline.incremental.early_warnings import as_they_stand
from windows_pipeline.storage.table import Table
from windows_pipeline.storage.tables import PipelineTables

_WARNINGS_SHOWN = 50
_WARNING = (
    *("state", "rule", "key", "window_start", "window_end"),
    *("firing_id", "reason", "stream_time", "record_count", "severity"),
)


def plot_and_warnings(tables: PipelineTables, windows_name: str) -> ExtraMetadata:
    """A function that plots each day's alerts and, with a trigger, lists the days' early warnings.

    The warnings of all days stand with the last one.
    """
    plots = alert_plots(tables, windows_name)
    warnings = tables.of(windows_name).early_warnings

    def made(spark: SparkSession, days: Sequence[date]) -> Mapping[date, Metadata]:
        found = dict(plots(spark, days))
        if warnings.is_written and warnings.exists(spark):
            last = max(days)
            found[last] = {**found.get(last, {}), **_early_warnings(spark, warnings, days)}
        return found

    return made


def _early_warnings(
    spark: SparkSession, table: Table, days: Sequence[date]
) -> Mapping[str, dg.MetadataValue]:
    """The number of the days' warnings by state, and a table of the newest warnings."""
    found = as_they_stand(table.of_arrival_units(spark, days)).cache()
    try:
        count_of_state = {
            row.state: row["count"] for row in found.groupBy("state").count().collect()
        }
        newest = found.orderBy(F.desc("stream_time"), *_WARNING).limit(_WARNINGS_SHOWN)
        columns = [F.col(name).cast("string") for name in _WARNING]
        rows = [dg.TableRecord(row.asDict()) for row in newest.select(*columns).collect()]
    finally:
        found.unpersist()
    counts = {
        f"early_warnings_{state}": dg.MetadataValue.int(count_of_state.get(state, 0))
        for state in ("open", "confirmed", "withdrawn")
    }
    schema = dg.TableSchema([dg.TableColumn(name) for name in _WARNING])
    return {**counts, "early_warnings": dg.MetadataValue.table(rows, schema)}
