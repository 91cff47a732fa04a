"""Numbers that change from plan to plan, given so that the plans' code stays the same.

Spark writes a literal number into the Java code that it makes of a plan. A stream's plans differ
only in such numbers, so each micro-batch's would be compiled anew, by Spark and then by the JVM.
An array is handed to the code; a number that is looked up in one is no part of it.
"""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F


def given(number: int, beside: Column) -> Column:
    """A number, as a column of bigint.

    Spark pushes no comparison with it into a scan; `coarse_from_ms` does for that.

    Args:
        number: The number.
        beside: A column of int or bigint of the same rows; only where it is null, so is the
            number. Not one that a condition holds to one value: Spark would work out the place
            ahead, and write a literal.
    """
    first = beside.bitwiseAND(F.lit(0))
    # Spark declares the entry never null, and beside a null it is: such rows can't be fetched.
    return F.when(beside.isNotNull(), F.array(F.lit(number).cast("bigint"))[first])


def coarse_from_ms(from_ms: int, until_ms: int) -> int:
    """A time at or before another, which stays the same while that one moves on a little.

    Files and rows before it can be left unread; at most twice as much is read as from the time
    itself.

    Args:
        from_ms: The time.
        until_ms: How far records go, at least about.
    """
    span_ms = max(until_ms - from_ms, 1)
    step_ms = 1 << (span_ms.bit_length() - 1)
    return from_ms - from_ms % step_ms
