"""Exact variances in Python's integers, rounded once (rule G2).

Each value is an integer multiple of its group's unit. The variance of n values is
(n * squares - sum**2) / (n * (n - 1)) squared units, where `sum` and `squares` are the sums of the
values and of their squares. These are integers, so records enter and leave exactly, and only the
division rounds.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from windows_pipeline.kernels.values import numbers_of, unscaled_integers
from windows_pipeline.kernels.windows.arrays import WindowArrays

_MANTISSA_BITS = 53


class Multiples(NamedTuple):
    """Values as integer multiples of a unit.

    Attributes:
        whole: By record, its multiple; by slice, the sum of its values' multiples.
        squares: By record, its multiple squared; by slice, the sum of these squares.
        square_units: By group, the unit's square as numerator and denominator.
    """

    whole: list[int]
    squares: list[int]
    square_units: list[tuple[int, int]]


def multiples_of(column: pa.Array, counted: np.ndarray, starts: np.ndarray) -> Multiples:
    """Numbers of any type as exact multiples, and 0 for values that do not count.

    Args:
        column: The values.
        counted: A mask of the values that count: not null, not NaN and not infinite.
        starts: Where each group's records begin; one more entry for the end of the last.
    """
    groups = len(starts) - 1
    if pa.types.is_decimal(column.type):
        return _multiples(unscaled_integers(column), [(1, 100**column.type.scale)] * groups)
    numbers = np.where(counted, numbers_of(column), 0)
    if numbers.dtype != np.float64:
        return _multiples(numbers.tolist(), [(1, 1)] * groups)
    fractions, exponents = np.frexp(numbers)
    mantissas = np.ldexp(fractions, _MANTISSA_BITS).astype(np.int64)
    exponents = exponents.astype(np.int64) - _MANTISSA_BITS
    units = lowest_by_group(exponents, starts)
    shifts = exponents - np.repeat(units, np.diff(starts))
    whole = [each << shift for each, shift in zip(mantissas.tolist(), shifts.tolist(), strict=True)]
    return _multiples(whole, [square_of_unit(unit) for unit in units.tolist()])


def _multiples(whole: list[int], square_units: list[tuple[int, int]]) -> Multiples:
    return Multiples(whole, [each * each for each in whole], square_units)


def lowest_by_group(exponents: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """The lowest power of two of each group, of which all its values are multiples: its unit."""
    return np.minimum.reduceat(exponents, starts[:-1]) if len(exponents) else exponents


def square_of_unit(exponent: int, scale: int = 0) -> tuple[int, int]:
    """The square of 2**exponent / 10**scale as numerator and denominator."""
    if exponent >= 0:
        return 4**exponent, 100**scale
    return 1, 4**-exponent * 100**scale


def running_variance(
    windows: WindowArrays, values: Multiples, counts: np.ndarray, less: int
) -> np.ndarray:
    """The variance of each window's values.

    Args:
        windows: The windows.
        values: The values.
        counts: How many values count in each window; the result is 0 where `counts` <= `less`.
        less: 1 for the variance of a sample, 0 for the variance of a population: the sum of
            squares is divided by the number of values less this.
    """
    variances = np.zeros(len(counts), np.float64)
    whole, squared, order = values.whole, values.squares, windows.enter_order.tolist()
    total = squares = p = q = 0
    rows = zip(
        windows.group.tolist(),
        windows.entered.tolist(),
        windows.left.tolist(),
        counts.tolist(),
        strict=True,
    )
    for window, (group, entered, left, count) in enumerate(rows):
        for record in order[p:entered]:
            total += whole[record]
            squares += squared[record]
        total -= sum(whole[q:left])
        squares -= sum(squared[q:left])
        p, q = entered, left
        if count > less:
            above, below = values.square_units[group]
            exact = (count * squares - total * total) * above, count * (count - less) * below
            variances[window] = _rounded(*exact)
    return variances


def _rounded(numerator: int, denominator: int) -> float:
    """The quotient; Python rounds the quotient of integers once."""
    try:
        return numerator / denominator
    except OverflowError:  # beyond the largest double, which IEEE 754 rounds to infinity
        return math.inf
