"""Which of a micro-batch's units was the first of which something holds, as a column."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

from pyspark.sql import Column
from pyspark.sql import functions as F


def first_unit(units: Sequence[tuple[date, Column]], last: date) -> Column:
    """The first unit whose condition holds.

    A tree of choices, not a chain: Spark goes through an expression by recursion, and one for
    each day of a year was deeper than its stack.

    Args:
        units: Units in order, each with its condition, which holds for those after it, too.
        last: The unit if none holds.
    """
    if not units:
        return F.lit(last)
    middle = len(units) // 2
    unit, holds = units[middle]
    before = first_unit(units[:middle], unit)
    return F.when(holds, before).otherwise(first_unit(units[middle + 1 :], last))
