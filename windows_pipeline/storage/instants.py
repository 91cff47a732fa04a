"""Converts between the engine's milliseconds and day numbers and the tables' timestamps and days.

Elsewhere a time is milliseconds since 1970 in UTC, in a column whose name ends in `_ms`. Times from
outside are converted to milliseconds in two modules: `dataframe.inputs` and `sources.validation`.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

_TIMES = ("window_start", "window_end", "first_event_time", "last_event_time")


def ms_to_timestamp(milliseconds: Column | str) -> Column:
    """The timestamp of a column of milliseconds since 1970."""
    return F.timestamp_millis(milliseconds)


def timestamp_to_ms(timestamp: Column | str) -> Column:
    """The milliseconds since 1970 of a timestamp; parts of a millisecond are cut off."""
    return F.unix_millis(timestamp)


def with_timestamps(frame: DataFrame, *names: str) -> DataFrame:
    """Replaces each column `_NAME_ms` (bigint, ms) by the timestamp `NAME`."""
    times = {name: ms_to_timestamp(f"_{name}_ms") for name in names}
    return frame.withColumns(times).drop(*[f"_{name}_ms" for name in names])


def with_instants(windows: DataFrame) -> DataFrame:
    """Adds the tables' `arrival_unit` and timestamps to the engine's windows."""
    times = {name: ms_to_timestamp(f"_{name}_ms") for name in _TIMES}
    return windows.withColumns({"arrival_unit": F.date_from_unix_date("_computed_day"), **times})


def with_milliseconds(windows: DataFrame) -> DataFrame:
    """Adds the engine's `_computed_day` and milliseconds to a table's windows."""
    times = {f"_{name}_ms": timestamp_to_ms(name) for name in _TIMES}
    return windows.withColumns({"_computed_day": F.unix_date("arrival_unit"), **times})
