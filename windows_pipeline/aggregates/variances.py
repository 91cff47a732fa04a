"""Variances and standard deviations of numbers."""

from __future__ import annotations

from windows_pipeline.aggregates.aggregation import Aggregation, ColumnOrName, aggregation_of
from windows_pipeline.aggregates.function import Function, Takes, double

VARIANCE = Function(
    "variance",
    double,
    takes=Takes.NUMBERS,
    synonyms=("var_samp",),
    other_names=("var", "vars", "varsample", "variancesamp"),
)
VAR_POP = Function(
    "var_pop", double, takes=Takes.NUMBERS, other_names=("varp", "variancep", "variancepop")
)
STDDEV = Function(
    "stddev",
    double,
    takes=Takes.NUMBERS,
    synonyms=("stddev_samp",),
    other_names=(
        *("std", "stdev", "stddevsampled", "stdevs", "sd", "standarddeviation", "stdsamp"),
    ),
)
STDDEV_POP = Function(
    "stddev_pop", double, takes=Takes.NUMBERS, other_names=("stdevp", "stdpop", "stddevp", "stdp")
)


def variance(column: ColumnOrName) -> Aggregation:
    """The variance of a sample (divisor n - 1): double, rounded from the exact value (rule G2)."""
    return aggregation_of(VARIANCE, column)


def var_pop(column: ColumnOrName) -> Aggregation:
    """The variance of a population (divisor n): double, rounded from the exact value (rule G2)."""
    return aggregation_of(VAR_POP, column)


def stddev(column: ColumnOrName) -> Aggregation:
    """The standard deviation of a sample: double, the square root of `variance`."""
    return aggregation_of(STDDEV, column)


def stddev_pop(column: ColumnOrName) -> Aggregation:
    """The standard deviation of a population: double, the square root of `var_pop`."""
    return aggregation_of(STDDEV_POP, column)
