"""What is computed in a window. Nothing here knows Spark."""

from windows_pipeline.aggregates.aggregate import Aggregate, Function, parse_aggregate

__all__ = ["Aggregate", "Function", "parse_aggregate"]
