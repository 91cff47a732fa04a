"""Writes numbers that change from plan to plan so that Spark compiles one code for all plans.

Spark writes a literal number into the Java code that it generates for a plan. The plans of a
stream's micro-batches differ only in such numbers, so Spark, and then the JVM, would compile each
of them again. Spark passes an array to the generated code by reference, so a number that the code
looks up in an array is no part of it.
"""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F


def bigint(number: int) -> Column:
    """A number as a bigint. Small literals are ints, which not every engine widens."""
    return F.lit(number).cast("bigint")


def literal(number: int, anchor: Column) -> Column:
    """A number as a column of bigint that is not part of the generated code.

    Spark pushes no comparison with it into a scan; compare with `coarse_from_ms` for that.

    Args:
        number: The number.
        anchor: A column of int or bigint of the same rows; the result is null where it is null.
            No condition may hold the column to a single value: Spark would then compute the
            array's index while it plans, and write a literal after all.
    """
    zero = anchor.bitwiseAND(F.lit(0))
    # Spark declares that the array's element is never null. For a null index it is null, and rows
    # with such a null cannot be collected; so the null is explicit.
    return F.when(anchor.isNotNull(), F.array(bigint(number))[zero])


def coarse_from_ms(from_ms: int, until_ms: int) -> int:
    """Rounds a time down, so that the result stays the same while the time moves on a little.

    A scan can skip files and rows before the result. It reads at most twice as much as it would
    from the time itself.

    Args:
        from_ms: The time.
        until_ms: About where the records end.
    """
    span_ms = max(until_ms - from_ms, 1)
    step_ms = 1 << (span_ms.bit_length() - 1)
    return from_ms - from_ms % step_ms
