"""The results of a builder: a DataFrame, or a function for `DataFrame.transform`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from pyspark.sql import DataFrame

Transform = Callable[[DataFrame], DataFrame]
"""A function for `DataFrame.transform`."""
Result = TypeVar("Result")
"""A DataFrame if the builder has its records, else a Transform."""
Bind = Callable[[Transform], Result]
"""Makes a builder's result from the function that computes it from records."""


def bound_to(events: DataFrame) -> Bind[DataFrame]:
    """For a builder with records: applies the function, so that the result is a DataFrame."""
    return lambda transform: transform(events)


def unbound(transform: Transform) -> Transform:
    """For a builder without records: the function itself is the result."""
    return transform
