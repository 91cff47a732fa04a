"""Exact percentiles of numbers."""

from __future__ import annotations

import re

from windows_pipeline.aggregates.aggregation import Aggregation, ColumnOrName, aggregation_of
from windows_pipeline.aggregates.function import Function, Takes, double

PERCENTILE = Function(
    "percentile",
    double,
    takes=Takes.NUMBERS,
    second="percentage",
    other_names=(
        *("quantile", "percentilecont", "percentiledisc", "approxpercentile"),
        *("percentileapprox", "approxquantile", "quantilecont", "quantiledisc"),
    ),
)
MEDIAN = Function("median", double, takes=Takes.NUMBERS, other_names=("med", "medianapprox"))

_NUMBERED = re.compile(r"(?:p|pct|perc|percentile|quantile)([0-9]{1,4})")


def numbered_percentile(name: str, column: str) -> str | None:
    """The call for a percentile with its number in the name, as p95, p999 or quantile05 have it.

    Args:
        name: The name in lower case, without underscores.
        column: The column to name in the call.
    """
    numbered = _NUMBERED.fullmatch(name)
    if numbered is None:
        return None
    digits = numbered[1].zfill(2)
    fraction = 1 if digits == "100" else float(f"0.{digits}")
    return f"percentile({column}, {fraction:g})"


def percentile(column: ColumnOrName, percentage: float) -> Aggregation:
    """The exact percentile of numbers, interpolated between neighbours as Spark does: double.

    Args:
        column: A column of numbers.
        percentage: The fraction of values below the result, from 0 to 1; 0.5 is the median.
    """
    return aggregation_of(PERCENTILE, column, percentage)


def median(column: ColumnOrName) -> Aggregation:
    """The exact median of numbers: double; of an even number, the mean of the middle two."""
    return aggregation_of(MEDIAN, column)
