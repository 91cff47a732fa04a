"""The plots of each day that a run computed, as metadata; a failed plot never fails a run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date
from functools import partial
from logging import getLogger

import dagster as dg
from pyspark.sql import SparkSession

from windows_pipeline.dagster.assets.metadata import ExtraMetadata, Metadata
from windows_pipeline.query.tables.local import UnreadableTableError
from windows_pipeline.report.day_plots import Drawn, alert_plot, lateness_plot, size_plot
from windows_pipeline.storage.catalog import PipelineSpecs, TableSpec, WindowTables

_LOG = getLogger(__name__)


def lateness_plots(tables: PipelineSpecs) -> ExtraMetadata:
    """A function that draws how late each day's records came."""
    return _plots("lateness", partial(lateness_plot, tables))


def size_plots(tables: WindowTables[TableSpec]) -> ExtraMetadata:
    """A function that draws the windows that each day closed by their number of records."""
    return _plots("records_a_window", partial(size_plot, tables))


def alert_plots(tables: PipelineSpecs, windows_name: str) -> ExtraMetadata:
    """A function that draws, for keys with alerts, the windows that each day closed."""
    return _plots("plot", partial(alert_plot, tables, windows_name))


def _plots(name: str, opened: Callable[[], Drawn]) -> ExtraMetadata:
    """Draws each day; where a table can't be read, the last day says why."""

    def made(_spark: SparkSession, days: Sequence[date]) -> dict[date, Metadata]:
        try:
            drawn = opened()
            return {day: {name: _value(drawn, day)} for day in days}
        except Exception as error:  # noqa: BLE001  the tables hold the results, without a plot too
            return {max(days): {name: _not_drawn(error)}}

    return made


def _value(drawn: Drawn, day: date) -> dg.MetadataValue:
    """A day's plot, or why there is none.

    Raises:
        UnreadableTableError: A table is not for this reader.
    """
    try:
        return dg.MetadataValue.md(drawn(day))
    except UnreadableTableError:
        raise
    except Exception as error:  # noqa: BLE001  one day's damage leaves the other days' plots
        return _not_drawn(error)


def _not_drawn(error: Exception) -> dg.MetadataValue:
    _LOG.warning("a plot is not drawn", exc_info=error)
    cause = (str(error).strip().splitlines() or [type(error).__name__])[0]
    return dg.MetadataValue.text(f"not drawn: {cause}")
