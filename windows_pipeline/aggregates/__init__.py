"""Aggregates: what is computed in a window, as values without Spark."""

from windows_pipeline.aggregates.aggregate import Aggregate, Function
from windows_pipeline.aggregates.functions import (
    Aggregation,
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
from windows_pipeline.aggregates.parse import parse_aggregate, split_arguments
from windows_pipeline.aggregates.user_aggregate import UserAggregate
from windows_pipeline.aggregates.user_modules import ProjectAggregate, UserFunction, UserModules

__all__ = [
    "Aggregate",
    "Aggregation",
    "Function",
    "ProjectAggregate",
    "UserAggregate",
    "UserFunction",
    "UserModules",
    "avg",
    "collect_list",
    "count",
    "count_distinct",
    "first",
    "last",
    "max_",
    "median",
    "min_",
    "parse_aggregate",
    "percentile",
    "split_arguments",
    "stddev",
    "stddev_pop",
    "sum_",
    "user_aggregate",
    "var_pop",
    "variance",
]
