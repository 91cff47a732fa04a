"""Exact sums and means of decimals, for many windows at once (rule G2).

A number is a sign and a list of 32-bit digits, the lowest first, each an array over the windows. So
no intermediate sum overflows.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from windows_pipeline.kernels.aggregates.running import running_total
from windows_pipeline.kernels.values import decimal_words
from windows_pipeline.kernels.windows.arrays import WindowArrays

_DIGIT_BITS = 32
_DIGIT_MASK = (1 << _DIGIT_BITS) - 1


class Wide(NamedTuple):
    """Integers of any length, one for each window: their signs and their digits."""

    negative: np.ndarray
    digits: list[np.ndarray]

    def fits(self, precision: int) -> np.ndarray:
        """A mask of the numbers that have at most `precision` decimal digits."""
        less = np.zeros(len(self.negative), np.bool_)
        bound = 10**precision
        for digit in self.digits:
            limit = bound & _DIGIT_MASK
            less = np.where(digit == limit, less, digit < limit)
            bound >>= _DIGIT_BITS
        return less

    def over(self, divisor: np.ndarray, factor: int) -> Wide:
        """The numbers times a factor, over divisors (both below 2**31), rounded half up."""
        product, carry = [], np.zeros_like(divisor)
        for digit in self.digits:
            carry = digit * factor + carry
            product.append(carry & _DIGIT_MASK)
            carry = carry >> _DIGIT_BITS
        product.append(carry)
        quotient, rest = [], np.zeros_like(divisor)
        for digit in reversed(product):
            whole, rest = np.divmod(rest << _DIGIT_BITS | digit, divisor)
            quotient.append(whole)
        return Wide(self.negative, _carried(quotient[::-1], 2 * rest >= divisor))

    def decimals(self, kind: pa.DataType, null: np.ndarray) -> pa.Array:
        """Decimals of a type, with the numbers (of at most 38 digits) as their unscaled values."""
        low = self.digits[0] | self.digits[1] << _DIGIT_BITS
        high = self.digits[2] | self.digits[3] << _DIGIT_BITS
        negated = np.where(low == 0, -high, ~high)
        words = np.stack(
            [np.where(self.negative, -low, low), np.where(self.negative, negated, high)], axis=1
        )
        valid = pa.array(~null).buffers()[1]
        return pa.Array.from_buffers(kind, len(null), [valid, pa.py_buffer(words)])


def running_sum_of_decimals(
    windows: WindowArrays, column: pa.Array, above: pa.Array | None = None
) -> Wide:
    """Each window's sum, unscaled.

    Args:
        windows: The windows.
        column: Decimals.
        above: Decimals whose unscaled values count 2**64 times; None for none.
    """
    low, high = decimal_words(column).T
    pieces = [low & _DIGIT_MASK, low >> _DIGIT_BITS & _DIGIT_MASK]
    pieces += [high & _DIGIT_MASK, high >> _DIGIT_BITS]  # with the sign
    if above is not None:
        low, high = decimal_words(above).T
        pieces[2] += low & _DIGIT_MASK
        pieces[3] += low >> _DIGIT_BITS & _DIGIT_MASK
        pieces += [high & _DIGIT_MASK, high >> _DIGIT_BITS]
    digits, carry = [], np.zeros(len(windows.entered), np.int64)
    for piece in pieces[:-1]:
        carry = running_total(windows, piece) + carry
        digits.append(carry & _DIGIT_MASK)
        carry = carry >> _DIGIT_BITS
    top = running_total(windows, pieces[-1]) + carry
    negative = top < 0
    digits += [top & _DIGIT_MASK, top >> _DIGIT_BITS & _DIGIT_MASK]
    # The magnitude of a negative number is its complement plus one.
    magnitude = [np.where(negative, digit ^ _DIGIT_MASK, digit) for digit in digits]
    return Wide(negative, _carried(magnitude, negative))


def _carried(digits: list[np.ndarray], carry: np.ndarray) -> list[np.ndarray]:
    """The digits of the numbers, increased by one where the carry is 1."""
    sums = []
    for digit in digits:
        larger = digit + carry
        sums.append(larger & _DIGIT_MASK)
        carry = larger >> _DIGIT_BITS
    return sums
