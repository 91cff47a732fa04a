"""A column of the first of some arrival units for which a condition holds."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

from pyspark.sql import Column
from pyspark.sql import functions as F


def first_unit(units: Sequence[tuple[date, Column]], last: date) -> Column:
    """The first arrival unit whose condition holds.

    The expression is a tree, not a chain: Spark analyzes expressions recursively, and a chain of
    a year's days overflows its stack.

    Args:
        units: Arrival units in order, each with its condition. If an arrival unit's condition
            holds, those of all later arrival units hold, too.
        last: The arrival unit to return if no condition holds.
    """
    if not units:
        return F.lit(last)
    middle = len(units) // 2
    unit, holds = units[middle]
    before = first_unit(units[:middle], unit)
    return F.when(holds, before).otherwise(first_unit(units[middle + 1 :], last))
