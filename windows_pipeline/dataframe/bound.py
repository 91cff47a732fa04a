"""What a builder ends in: a DataFrame, or a function for `DataFrame.transform`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from pyspark.sql import DataFrame

Transform = Callable[[DataFrame], DataFrame]
"""What `DataFrame.transform` takes."""
Result = TypeVar("Result")
"""A DataFrame where a builder has its records, else a Transform."""
Bind = Callable[[Transform], Result]
"""Makes the result of what is to be done with records."""


def bound_to(events: DataFrame) -> Bind[DataFrame]:
    """The records are there: what is to be done with them gives a DataFrame."""
    return lambda transform: transform(events)


def unbound(transform: Transform) -> Transform:
    """The records come later: what is to be done with them is the result."""
    return transform
