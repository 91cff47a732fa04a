"""A column of the first of some arrival units for which a condition holds."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

from pyspark.sql import Column
from pyspark.sql import functions as F


def first_arrival_unit(arrival_units: Sequence[tuple[date, Column]], last: date) -> Column:
    """The first arrival unit whose condition holds.

    The expression is a tree, not a chain: Spark analyzes expressions recursively, and a chain of
    a year's days overflows its stack.

    Args:
        arrival_units: Arrival units in order, each with its condition. If an arrival unit's
            condition holds, those of all later arrival units hold, too.
        last: The arrival unit to return if no condition holds.
    """
    if not arrival_units:
        return F.lit(last)
    middle = len(arrival_units) // 2
    arrival_unit, holds = arrival_units[middle]
    before = first_arrival_unit(arrival_units[:middle], arrival_unit)
    return F.when(holds, before).otherwise(first_arrival_unit(arrival_units[middle + 1 :], last))
