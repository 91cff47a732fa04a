"""The results of a builder: a DataFrame, or a function for `DataFrame.transform`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from pyspark.sql import DataFrame

Transform = Callable[[DataFrame], DataFrame]
"""A function for `DataFrame.transform`."""
Result = TypeVar("Result")
"""A DataFrame if the builder has its records, else a Transform."""
ResultOf = Callable[[Transform], Result]
"""Returns a builder's result for the function that computes it from records."""


def applied_to(events: DataFrame) -> ResultOf[DataFrame]:
    """For a builder with records: applies the function, so that the result is a DataFrame."""
    return lambda transform: transform(events)


def not_applied(transform: Transform) -> Transform:
    """For a builder without records: the function itself is the result."""
    return transform
