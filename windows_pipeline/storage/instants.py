"""The engine counts milliseconds and numbers units; the tables hold instants and days."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

_TIMES = ("window_start", "window_end", "first_event_time", "last_event_time")


def with_instants(windows: DataFrame) -> DataFrame:
    """The engine's windows with the tables' `arrival_unit` and timestamps added."""
    times = {name: F.timestamp_millis(f"_{name}_ms") for name in _TIMES}
    return windows.withColumns({"arrival_unit": F.date_from_unix_date("_computed_day"), **times})


def with_milliseconds(windows: DataFrame) -> DataFrame:
    """A table's windows with the engine's `_computed_day` and milliseconds added."""
    times = {f"_{name}_ms": F.unix_millis(name) for name in _TIMES}
    return windows.withColumns({"_computed_day": F.unix_date("arrival_unit"), **times})
