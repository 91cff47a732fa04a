"""Aggregates: what is computed in a window, as values without Spark."""

from windows_pipeline.aggregates.aggregate import Aggregate
from windows_pipeline.aggregates.aggregation import Aggregation
from windows_pipeline.aggregates.function import Function
from windows_pipeline.aggregates.parse import parse_aggregate, split_arguments
from windows_pipeline.aggregates.registry import FUNCTIONS
from windows_pipeline.aggregates.user_aggregate import UserAggregate
from windows_pipeline.aggregates.user_modules import ProjectAggregate, UserFunction, UserModules

__all__ = [
    "FUNCTIONS",
    "Aggregate",
    "Aggregation",
    "Function",
    "ProjectAggregate",
    "UserAggregate",
    "UserFunction",
    "UserModules",
    "parse_aggregate",
    "split_arguments",
]
