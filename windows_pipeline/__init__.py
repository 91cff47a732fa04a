"""Exact event-time windows on Spark and Delta; knows nothing of Dagster.

On a DataFrame::

    windows = SlidingWindows.with_time_difference_and_grace("10 minutes", "5 minutes")
    events.transform(aggregate(windows, by="user", event_time="ts", of=[count(), sum_("amount")]))
"""

from importlib import import_module
from typing import TYPE_CHECKING

from windows_pipeline.aggregates import (
    Aggregation,
    UserAggregate,
    avg,
    collect_list,
    count,
    count_distinct,
    first,
    last,
    max_,
    median,
    min_,
    percentile,
    stddev,
    stddev_pop,
    sum_,
    user_aggregate,
    var_pop,
    variance,
)
from windows_pipeline.windows import (
    CURRENT_RANGE,
    CURRENT_ROW,
    UNBOUNDED_RANGE,
    UNBOUNDED_ROW,
    ForwardSlidingWindows,
    Session,
    SessionRows,
    SessionWindows,
    Slide,
    SlideRows,
    SlidingWindows,
    TimeWindows,
    Tumble,
    TumbleRows,
    rows,
)
from windows_pipeline.windows.triggers import Trigger
from windows_pipeline.windows.window_function import FiringContext, WindowFunction

if TYPE_CHECKING:
    from windows_pipeline.dataframe.firings import firings, process_firings
    from windows_pipeline.dataframe.groups import group_windows
    from windows_pipeline.dataframe.inputs import Arrival
    from windows_pipeline.dataframe.rows import row_windows
    from windows_pipeline.dataframe.sql import windows_sql
    from windows_pipeline.dataframe.windows import Stream, aggregate, cogroup, late_records
    from windows_pipeline.engine.suppression import until_window_closes

_ON_SPARK = {
    "Arrival": "windows_pipeline.dataframe.inputs",
    "Stream": "windows_pipeline.dataframe.windows",
    "aggregate": "windows_pipeline.dataframe.windows",
    "cogroup": "windows_pipeline.dataframe.windows",
    "firings": "windows_pipeline.dataframe.firings",
    "group_windows": "windows_pipeline.dataframe.groups",
    "late_records": "windows_pipeline.dataframe.windows",
    "process_firings": "windows_pipeline.dataframe.firings",
    "row_windows": "windows_pipeline.dataframe.rows",
    "until_window_closes": "windows_pipeline.engine.suppression",
    "windows_sql": "windows_pipeline.dataframe.sql",
}


def __getattr__(name: str) -> object:
    """Imports what needs Spark when it is asked for: specifications are of use without it."""
    if name in _ON_SPARK:
        return getattr(import_module(_ON_SPARK[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "CURRENT_RANGE",
    "CURRENT_ROW",
    "UNBOUNDED_RANGE",
    "UNBOUNDED_ROW",
    "Aggregation",
    "Arrival",
    "FiringContext",
    "ForwardSlidingWindows",
    "Session",
    "SessionRows",
    "SessionWindows",
    "Slide",
    "SlideRows",
    "SlidingWindows",
    "Stream",
    "TimeWindows",
    "Trigger",
    "Tumble",
    "TumbleRows",
    "UserAggregate",
    "WindowFunction",
    "aggregate",
    "avg",
    "cogroup",
    "collect_list",
    "count",
    "count_distinct",
    "firings",
    "first",
    "group_windows",
    "last",
    "late_records",
    "max_",
    "median",
    "min_",
    "percentile",
    "process_firings",
    "row_windows",
    "rows",
    "stddev",
    "stddev_pop",
    "sum_",
    "until_window_closes",
    "user_aggregate",
    "var_pop",
    "variance",
    "windows_sql",
]
