"""The plots of each day that a run computed, as metadata; a failed plot never fails a run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date
from logging import getLogger

import dagster as dg
from pyspark.sql import SparkSession

from windows_pipeline.config import Pipeline
from windows_pipeline.dagster.assets.metadata import ExtraMetadata, Metadata
from windows_pipeline.query.tables.local import LocalTable, NoTableError, UnreadableTableError
from windows_pipeline.query.tables.readable import OpenTable
from windows_pipeline.query.tables.spark import SparkTables
from windows_pipeline.report.day_plots import SourcePlots, WindowPlots
from windows_pipeline.settings import Settings

_Drawn = Callable[[date], str]
_LOG = getLogger(__name__)


def lateness_plots(pipeline: Pipeline, settings: Settings) -> ExtraMetadata:
    """A function that draws how late each day's records came."""
    return _plots(
        "lateness", lambda opened: SourcePlots(pipeline, settings.warehouse, opened).lateness
    )


def size_plots(pipeline: Pipeline, windows_name: str, settings: Settings) -> ExtraMetadata:
    """A function that draws the windows that each day closed by their number of records."""
    of = (pipeline, windows_name, settings.warehouse)
    return _plots("records_a_window", lambda opened: WindowPlots(*of, opened).sizes)


def alert_plots(pipeline: Pipeline, windows_name: str, settings: Settings) -> ExtraMetadata:
    """A function that draws, for keys with alerts, the windows that each day closed."""
    of = (pipeline, windows_name, settings.warehouse)
    return _plots("plot", lambda opened: WindowPlots(*of, opened).alerts)


def _plots(name: str, opened: Callable[[OpenTable], _Drawn]) -> ExtraMetadata:
    """Draws each day; only the last day if Spark must open the table, as that takes Spark jobs."""

    def made(spark: SparkSession, days: Sequence[date]) -> dict[date, Metadata]:
        last = sorted(days)[-1:]
        try:
            local = opened(LocalTable)
            return {day: {name: _value(local, day)} for day in days}
        except UnreadableTableError as error:
            if isinstance(error, NoTableError):
                return {day: {name: _not_drawn(error)} for day in last}
        try:
            by_spark = opened(SparkTables(spark))
            return {day: {name: _value(by_spark, day)} for day in last}
        except UnreadableTableError as error:
            return {day: {name: _not_drawn(error)} for day in last}

    return made


def _value(drawn: _Drawn, day: date) -> dg.MetadataValue:
    """A day's plot, or why there is none.

    Raises:
        UnreadableTableError: A table is not for this reader.
    """
    try:
        return dg.MetadataValue.md(drawn(day))
    except UnreadableTableError:
        raise
    except Exception as error:  # noqa: BLE001  the tables hold the results, without a plot too
        return _not_drawn(error)


def _not_drawn(error: Exception) -> dg.MetadataValue:
    _LOG.warning("a plot is not drawn", exc_info=error)
    cause = (str(error).strip().splitlines() or [type(error).__name__])[0]
    return dg.MetadataValue.text(f"not drawn: {cause}")
