"""Variances rounded once from the exact ones (rule G2), in Python's integers.

Each value is a whole multiple of its group's unit. With n values, their sum and the sum of
their squares the variance is (n * squares - sum**2) / (n * (n - 1)) square units: all whole
numbers, so that records enter and leave without a trace, and one division that rounds.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from windows_pipeline.engine.sweep import Windows
from windows_pipeline.engine.values import numbers_of, unscaled_integers

_MANTISSA_BITS = 53


class Multiples(NamedTuple):
    """Values as whole multiples of a unit.

    Attributes:
        whole: By record, the multiple.
        square_units: By group, the unit's square as numerator and denominator.
    """

    whole: list[int]
    square_units: list[tuple[int, int]]


def multiples_of(column: pa.Array, counted: np.ndarray, starts: np.ndarray) -> Multiples:
    """Numbers of any type as exact multiples, 0 where they do not count.

    Args:
        column: The values.
        counted: Which count: neither null nor, of doubles, NaN or infinite.
        starts: Where each group's records begin; one more entry for the end of the last.
    """
    groups = len(starts) - 1
    if pa.types.is_decimal(column.type):
        return Multiples(unscaled_integers(column), [(1, 100**column.type.scale)] * groups)
    numbers = np.where(counted, numbers_of(column), 0)
    if numbers.dtype != np.float64:
        return Multiples(numbers.tolist(), [(1, 1)] * groups)
    fractions, exponents = np.frexp(numbers)
    mantissas = np.ldexp(fractions, _MANTISSA_BITS).astype(np.int64)
    # A group's unit is a power of two that no last bit is below.
    units = np.minimum.reduceat(exponents, starts[:-1]) if len(exponents) else exponents
    shifts = exponents - np.repeat(units, np.diff(starts))
    whole = [each << shift for each, shift in zip(mantissas.tolist(), shifts.tolist(), strict=True)]
    return Multiples(whole, [_square(unit - _MANTISSA_BITS) for unit in units.tolist()])


def _square(exponent: int) -> tuple[int, int]:
    return (4**exponent, 1) if exponent >= 0 else (1, 4**-exponent)


def running_variance(
    windows: Windows, values: Multiples, counts: np.ndarray, less: int
) -> np.ndarray:
    """The variance of each window's values, divided by their number less 0 or 1.

    Args:
        windows: The windows.
        values: The values.
        counts: How many count in each window; the result is 0 where none is left to divide by.
        less: 1 for the variance of a sample, 0 for that of a population.
    """
    variances = np.zeros(len(counts), np.float64)
    whole, order = values.whole, windows.enter_order.tolist()
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
            value = whole[record]
            total += value
            squares += value * value
        for value in whole[q:left]:
            total -= value
            squares -= value * value
        p, q = entered, left
        if count > less:
            above, below = values.square_units[group]
            exact = (count * squares - total * total) * above, count * (count - less) * below
            variances[window] = _rounded(*exact)
    return variances


def _rounded(numerator: int, denominator: int) -> float:
    """Python rounds the quotient of whole numbers once."""
    try:
        return numerator / denominator
    except OverflowError:  # beyond the largest double, as IEEE rounds it
        return math.inf
