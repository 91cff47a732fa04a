"""Sums, means and variances of a column of numbers in each window (rules G1, G2)."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from windows_pipeline.aggregates import Aggregate
from windows_pipeline.aggregates.column_type import parse_type
from windows_pipeline.kernels.aggregates.decimals import Wide, running_sum_of_decimals
from windows_pipeline.kernels.aggregates.running import (
    running_count,
    running_sum_of_doubles,
    running_sum_of_integers,
)
from windows_pipeline.kernels.aggregates.variance import Multiples, multiples_of, running_variance
from windows_pipeline.kernels.values import is_valid, numbers_of
from windows_pipeline.kernels.windows.filled import WindowedRecords

VARIANCES = {"variance": 1, "stddev": 1, "var_pop": 0, "stddev_pop": 0}
"""By function, what is subtracted from the number of values in the divisor."""
_ROOTS = ("stddev", "stddev_pop")


def sum_or_mean_of(
    aggregate: Aggregate, column: pa.Array, records: WindowedRecords, *, mean: bool
) -> pa.Array:
    """Sums as bigint, double or decimal, means as double or decimal; null without a value.

    A result that does not fit its type fails (`WindowedRecords.fail`) with an ArithmeticError that
    names aggregate and window; if failures are noted, it is null.
    """
    windows, valid = records.windows, is_valid(column)
    count = running_count(windows, valid)
    if pa.types.is_decimal(column.type):
        sums = running_sum_of_decimals(windows, column)
        return decimal_result(aggregate, column.type, sums, count, records, mean=mean)
    numbers = numbers_of(column)
    if numbers.dtype == np.float64:
        by = divisors(count, mean=mean)
        return pa.array(running_sum_of_doubles(windows, numbers, valid, by), mask=count == 0)
    high, low = running_sum_of_integers(windows, numbers, valid)
    if mean:
        return integer_mean(high, low, count)
    return integer_sum(aggregate, high, low, count, records)


def integer_sum(
    aggregate: Aggregate,
    high: np.ndarray,
    low: np.ndarray,
    count: np.ndarray,
    records: WindowedRecords,
) -> pa.Array:
    """Sums of `count` integers as bigint, from their halves (`running_sum_of_integers`).

    A sum that does not fit fails as in `sum_or_mean_of`.
    """
    overflows = (high < -(2**31)) | (high >= 2**31)
    note_overflows(aggregate, "bigint", overflows, records)
    return pa.array((high << 32) | low, mask=overflows | (count == 0))


def divisors(count: np.ndarray, *, mean: bool) -> np.ndarray:
    """The divisors of sums of `count` doubles: the count for means, 1 for sums."""
    return np.maximum(count, 1) if mean else np.ones_like(count)


def integer_mean(high: np.ndarray, low: np.ndarray, count: np.ndarray) -> pa.Array:
    """Means of integers as double, from the halves of their sums."""
    quotients = (high * 2.0**32 + low) / np.maximum(count, 1)
    # From 2**53 on a double rounds the sum itself; Python rounds a quotient of integers once.
    for window in np.flatnonzero((high < -(2**21)) | (high >= 2**21)):
        quotients[window] = (int(high[window]) << 32 | int(low[window])) / int(count[window])
    return pa.array(quotients, mask=count == 0)


def decimal_result(
    aggregate: Aggregate,
    kind: pa.DataType,
    sums: Wide,
    count: np.ndarray,
    records: WindowedRecords,
    *,
    mean: bool,
) -> pa.Array:
    """The sums or means of `count` decimals of type `kind`.

    A result that does not fit its type fails as in `sum_or_mean_of`.
    """
    result = _result_type(aggregate, kind)
    if mean:
        sums = sums.over(np.maximum(count, 1), 10 ** (result.scale - kind.scale))
    overflows = ~sums.fits(result.precision)
    note_overflows(aggregate, f"decimal({result.precision},{result.scale})", overflows, records)
    return sums.decimals(result, overflows | (count == 0))


def variance_of(aggregate: Aggregate, column: pa.Array, records: WindowedRecords) -> pa.Array:
    """Variances or standard deviations; null for too few values, NaN if a value is not finite."""
    windows, valid = records.windows, is_valid(column)
    finite = valid
    if pa.types.is_floating(column.type):
        finite = valid & np.isfinite(numbers_of(column))
    count, finite_count = running_count(windows, valid), running_count(windows, finite)
    multiples = multiples_of(column, finite, records.starts)
    return variance_result(aggregate, multiples, finite_count, count, records)


def variance_result(
    aggregate: Aggregate,
    multiples: Multiples,
    finite_count: np.ndarray,
    count: np.ndarray,
    records: WindowedRecords,
) -> pa.Array:
    """Variances or standard deviations of `count` values; NaN where not all values are finite."""
    name = aggregate.function.name
    less = VARIANCES[name]
    variances = running_variance(records.windows, multiples, finite_count, less)
    variances[finite_count < count] = np.nan
    if name in _ROOTS:
        variances = np.sqrt(variances)
    return pa.array(variances, mask=count <= less)


def _result_type(aggregate: Aggregate, kind: pa.DataType) -> pa.DataType:
    result = parse_type(aggregate.result_type(f"decimal({kind.precision},{kind.scale})"))
    return pa.decimal128(result.precision, result.scale)


def note_overflows(
    aggregate: Aggregate, kind: str, overflows: np.ndarray, records: WindowedRecords
) -> None:
    """Lets the windows of a mask fail, as their results do not fit a type.

    Raises:
        ArithmeticError: Failures are not noted; names aggregate and window.
    """
    if overflows.any():
        records.fail(
            aggregate.name,
            np.flatnonzero(overflows),
            lambda window: ArithmeticError(aggregate.overflow(kind, records.describe(window))),
        )
