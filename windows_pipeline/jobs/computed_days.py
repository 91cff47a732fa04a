"""Tables of computed days: which days are computed to the end, and which must be computed again.

A day of a definition gets a row once all tables of the definition are computed for it. The row is
deleted before raw records change that the day's windows read. So every day without a row must be
computed: a new day, a day whose run was stopped, a day after a missing day, and a day that depends
on a changed day.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from datetime import date

from pyspark.sql import DataFrame, SparkSession

from windows_pipeline.arrival.log import ArrivalLog
from windows_pipeline.incremental.arrival_units import Arrivals, arrivals_of
from windows_pipeline.incremental.definition import Definition
from windows_pipeline.storage.table import Table
from windows_pipeline.storage.tables import PipelineTables, WindowTables


def _tables_of_days(tables: WindowTables) -> list[Table]:
    """A definition's tables of computed days: of windows and alerts, and of firings if any."""
    return [tables.computed_days, *([tables.days_of_firings] if tables.firings.is_written else [])]


def computed_days_in(spark: SparkSession, table: Table) -> set[date]:
    """The days that one of these tables lists as computed."""
    return (
        set(table.rows(spark, ["arrival_unit"])["arrival_unit"].to_pylist())
        if table.exists(spark)
        else set()
    )


def wholly_computed_days(spark: SparkSession, tables: WindowTables) -> set[date]:
    """The days for which all tables of a definition are computed."""
    return set.intersection(*(computed_days_in(spark, each) for each in _tables_of_days(tables)))


def withdraw_computed_days(
    spark: SparkSession, tables: PipelineTables, days: Collection[date]
) -> None:
    """Marks days as not computed, for every definition, whether or not it has firings now."""
    for of in map(tables.of, tables.pipeline.windows):
        for table in (of.computed_days, of.fired_days, of.processed_days):
            if days and table.exists(spark):
                table.withdraw(spark, sorted(days))


def dependent_days(
    spark: SparkSession,
    tables: PipelineTables,
    changed: Collection[date],
    raw_events: DataFrame,
    logs: Iterable[ArrivalLog],
) -> set[date]:
    """The computed days whose windows may change with the records of earlier days.

    These are the later days that read records of a changed day, and the days whose close times
    change, for any definition.

    Args:
        spark: The session.
        tables: The tables of the pipeline.
        changed: The raw days whose records change.
        raw_events: The records before and after the change, both.
        logs: The arrival log before and after the change.
    """
    pipeline = tables.pipeline
    found: set[date] = set()
    for name, windows in pipeline.windows.items():
        known: set[date] = set()
        for table in _tables_of_days(tables.of(name)):
            known |= computed_days_in(spark, table)
        later = sorted(day for day in known if day > min(changed) and day not in changed)
        before_and_after = [arrivals_of(pipeline, log, windows.spec) for log in logs]
        for day in later:
            if len({str(arrivals.timeline.arrival_unit(day)) for arrivals in before_and_after}) > 1:
                found.add(day)
        records = Definition(tables.of(name)).records(raw_events)
        for arrivals in before_and_after:
            found |= _readers(arrivals, records, later, changed)
    return found


def _readers(
    arrivals: Arrivals, records: DataFrame, days: Sequence[date], changed: Collection[date]
) -> set[date]:
    """The days among `days` that read records of changed days."""
    if not arrivals.arrival_units(days):
        return set()
    reads = arrivals.reads(records, days)
    return {read.computed_day for read in reads if read.arrival_unit in changed}
