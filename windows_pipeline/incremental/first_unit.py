"""A column of the first of some units for which a condition holds."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

from pyspark.sql import Column
from pyspark.sql import functions as F


def first_unit(units: Sequence[tuple[date, Column]], last: date) -> Column:
    """The first unit whose condition holds.

    The expression is a tree, not a chain: Spark analyzes expressions recursively, and a chain of
    a year's days overflows its stack.

    Args:
        units: Units in order, each with its condition. If a unit's condition holds, those of all
            later units hold, too.
        last: The unit to return if no condition holds.
    """
    if not units:
        return F.lit(last)
    middle = len(units) // 2
    unit, holds = units[middle]
    before = first_unit(units[:middle], unit)
    return F.when(holds, before).otherwise(first_unit(units[middle + 1 :], last))
