"""Exact event-time windows on Spark and Delta; knows nothing of Dagster.

On a DataFrame::

    import windows_pipeline as wp

    hour = wp.SlidingWindows.of_time_difference_and_grace("1 hour", "6 hours")
    w = wp.windowed(events, hour).by("user").event_time("ts").arrival("offset", partition="p")
    w.agg(wp.count(), wp.sum_("amount"))     # every window, `closed` says whether it is final
    w.final().agg(wp.count())                # the closed ones
    w.late()                                 # records that no window counts
    w.firings(wp.Trigger.at_window_end())    # early, on-time and late results

For chains: `events.transform(wp.windows(hour, by="user", event_time="ts").agg(wp.count()))`.
FLIP-11's windows are in `windows_pipeline.flip11`; windows in SQL are `wp.sql(spark, query)`.

Aggregates have the names of `pyspark.sql.functions`; `sum_`, `min_` and `max_` end in an
underscore, so that `from windows_pipeline import *` hides none of Python's own.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from windows_pipeline import flip11
from windows_pipeline.aggregates import Aggregation, UserAggregate
from windows_pipeline.aggregates.aggregation import user_aggregate
from windows_pipeline.aggregates.counts import count, count_distinct
from windows_pipeline.aggregates.extremes import first, last, max_, max_by, min_, min_by
from windows_pipeline.aggregates.lists import collect_list
from windows_pipeline.aggregates.percentiles import median, percentile
from windows_pipeline.aggregates.sums import avg, sum_
from windows_pipeline.aggregates.variances import stddev, stddev_pop, var_pop, variance
from windows_pipeline.windows import (
    ForwardSlidingWindows,
    SessionWindows,
    SlidingWindows,
    TimeWindows,
)
from windows_pipeline.windows.firing.triggers import Trigger
from windows_pipeline.windows.firing.window_function import FiringContext, WindowFunction

_ON_SPARK = {
    "sql": "windows_pipeline.dataframe.sql",
    "windowed": "windows_pipeline.dataframe.builder",
    "windows": "windows_pipeline.dataframe.builder",
}

if TYPE_CHECKING:
    from windows_pipeline.dataframe.builder import windowed, windows
    from windows_pipeline.dataframe.sql import sql
else:
    # The import system has put the package of this name here, and it would be found before
    # __getattr__ is asked.
    del windows

    # Hidden from type checkers, for which any name would else be there.
    def __getattr__(name: str) -> object:
        """Imports what needs Spark only on use, as specifications are useful without Spark."""
        if name in _ON_SPARK:
            return getattr(import_module(_ON_SPARK[name]), name)
        fix = f"; did you mean '{name}_'?" if f"{name}_" in __all__ else ""
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}{fix}")


def __dir__() -> list[str]:
    """The public names: without those of packages, and with those that are not yet imported."""
    return __all__


__all__ = [
    "Aggregation",
    "FiringContext",
    "ForwardSlidingWindows",
    "SessionWindows",
    "SlidingWindows",
    "TimeWindows",
    "Trigger",
    "UserAggregate",
    "WindowFunction",
    "avg",
    "collect_list",
    "count",
    "count_distinct",
    "first",
    "flip11",
    "last",
    "max_",
    "max_by",
    "median",
    "min_",
    "min_by",
    "percentile",
    "sql",
    "stddev",
    "stddev_pop",
    "sum_",
    "user_aggregate",
    "var_pop",
    "variance",
    "windowed",
    "windows",
]
