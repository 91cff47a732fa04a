"""Which days are computed to the end, and which hang on raw days that came out differently.

A day of a definition is noted once all its tables follow from what was ingested. The note goes
before a raw day changes that its windows are made of. So a day that is new, that a run left
half-way, that waits for a missing day or that hangs on a changed one is known by what lacks.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from datetime import date

from pyspark.sql import DataFrame, SparkSession

from windows_pipeline.arrival.log import ArrivalLog
from windows_pipeline.config import Pipeline
from windows_pipeline.incremental.units import Arrivals, arrivals_of
from windows_pipeline.settings import Settings
from windows_pipeline.storage.catalog import computed_days
from windows_pipeline.storage.table import Table


def notes_of(pipeline: Pipeline, windows_name: str, warehouse: str) -> list[Table]:
    """The notes of a definition: of its windows and alerts, and of its firings if it has any."""
    fires = pipeline.windows[windows_name].trigger is not None
    return [
        computed_days(pipeline, windows_name, warehouse, fired=fired)
        for fired in ([False, True] if fires else [False])
    ]


def noted_days(spark: SparkSession, notes: Table) -> set[date]:
    """The days that are computed."""
    return (
        set(notes.rows(spark, ["arrival_unit"])["arrival_unit"].to_pylist())
        if notes.exists(spark)
        else set()
    )


def withdraw_notes(
    spark: SparkSession, pipeline: Pipeline, settings: Settings, days: Collection[date]
) -> None:
    """Says that days of every definition are not computed any more."""
    for name in pipeline.windows:
        for notes in notes_of(pipeline, name, settings.warehouse):
            if days and notes.exists(spark):
                notes.withdraw(spark, sorted(days))


def days_that_hang_on(
    spark: SparkSession,
    pipeline: Pipeline,
    settings: Settings,
    changed: Collection[date],
    raw_events: DataFrame,
    logs: Iterable[ArrivalLog],
) -> set[date]:
    """The computed days whose windows, of any definition, may come out otherwise.

    Those after changed days that read records of one, and those that close at other times now.

    Args:
        spark: The session.
        pipeline: The pipeline.
        settings: Where its tables lie.
        changed: The raw days that come out differently.
        raw_events: The records before and after, both.
        logs: The arrival log before and after.
    """
    found: set[date] = set()
    for name, windows in pipeline.windows.items():
        known: set[date] = set()
        for notes in notes_of(pipeline, name, settings.warehouse):
            known |= noted_days(spark, notes)
        later = sorted(day for day in known if day > min(changed) and day not in changed)
        sides = [arrivals_of(pipeline, log, windows.spec) for log in logs]
        found |= {day for day in later if len({str(one.timeline.unit(day)) for one in sides}) > 1}
        for side in sides:
            found |= _readers(side, raw_events, later, changed)
    return found


def _readers(
    arrivals: Arrivals, raw_events: DataFrame, days: Sequence[date], changed: Collection[date]
) -> set[date]:
    """Those of some days that read records of changed ones."""
    if not arrivals.units(days):
        return set()
    reads = arrivals.reads(raw_events, days)
    return {read.target for read in reads if read.arrival_unit in changed}
