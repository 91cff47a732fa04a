"""Exact sums of doubles in a wide fixed-point accumulator.

Every finite double is an integer multiple of 2**-1074, and so is a sum of doubles. The accumulator
has that integer in 32-bit digits, each in a 64-bit slot. So adding and subtracting are exact in any
order, and the result is the true sum, rounded once (rule G2). A slot overflows only after 2**31
records of one window.
"""

from __future__ import annotations

import math

import numpy as np

from windows_pipeline.compat.numba_jit import compiled

DIGITS = 70
"""32 * 70 = 2240 bits: 2098 from the smallest to the largest double, 32 for the sums that
`add_whole` adds at once, the rest for carries."""

LOWEST_EXPONENT = -1074
_DIGIT_BITS = 32
_DIGIT_MASK = (1 << 32) - 1
_MANTISSA_BITS = 53


@compiled
def add(digits: np.ndarray, value: float, sign: int) -> tuple[int, int]:
    """Adds (sign 1) or subtracts (sign -1) a finite double; returns the digits set."""
    fraction, exponent = math.frexp(value)
    whole = np.int64(math.ldexp(fraction, _MANTISSA_BITS))
    position = exponent - _MANTISSA_BITS - LOWEST_EXPONENT
    if position < 0:  # a subnormal: its last bits are zeros
        whole >>= -position
        position = 0
    return add_whole(digits, whole, position, sign)


@compiled
def add_whole(digits: np.ndarray, whole: np.int64, position: int, sign: int) -> tuple[int, int]:
    """Adds or subtracts whole * 2**(position - 1074); returns the first and last digit set.

    `whole` has up to 63 bits and a sign, `position` is not negative.
    """
    if whole < 0:
        whole = -whole
        sign = -sign
    digit = position // _DIGIT_BITS
    shift = position % _DIGIT_BITS
    low = (whole & _DIGIT_MASK) << shift
    high = ((whole >> _DIGIT_BITS) << shift) + ((low >> _DIGIT_BITS) & _DIGIT_MASK)
    digits[digit] += sign * (low & _DIGIT_MASK)
    digits[digit + 1] += sign * (high & _DIGIT_MASK)
    digits[digit + 2] += sign * (high >> _DIGIT_BITS)
    return digit, digit + 2


@compiled
def rounded(
    digits: np.ndarray, first: int, last: int, scratch: np.ndarray, count: int = 1
) -> float:
    """The sum in digits[first..last], rounded to the nearest double, divided by a count.

    Ties go to even. A mean is finite even where the sum is beyond the largest double.
    """
    top = last + 2  # two more digits for the carries
    carry = np.int64(0)
    for i in range(first, top + 1):
        slot = digits[i] + carry if i <= last else carry
        scratch[i] = slot & _DIGIT_MASK
        carry = slot >> _DIGIT_BITS
    negative = carry < 0
    if negative:  # two's complement: negate
        carry = np.int64(1)
        for i in range(first, top + 1):
            slot = (scratch[i] ^ _DIGIT_MASK) + carry
            scratch[i] = slot & _DIGIT_MASK
            carry = slot >> _DIGIT_BITS
    while top >= first and scratch[top] == 0:
        top -= 1
    if top < first:
        return 0.0
    magnitude = _round_digits(scratch, first, top, count)
    return -magnitude if negative else magnitude


@compiled
def _round_digits(scratch: np.ndarray, first: int, top: int, count: int) -> float:
    """Rounds the positive number in scratch[first..top], whose top digit is not zero."""
    top_bits = 0
    while scratch[top] >> top_bits:
        top_bits += 1
    length = top * _DIGIT_BITS + top_bits
    dropped = max(length - _MANTISSA_BITS, first * _DIGIT_BITS)
    mantissa = np.int64(0)
    low_digit = dropped // _DIGIT_BITS
    for i in range(top, low_digit, -1):
        mantissa = (mantissa << _DIGIT_BITS) | scratch[i]
    below = dropped % _DIGIT_BITS
    mantissa = (mantissa << (_DIGIT_BITS - below)) | (scratch[low_digit] >> below)
    if dropped > first * _DIGIT_BITS and _rounds_up(scratch, first, dropped, mantissa):
        mantissa += 1
    exponent = dropped + LOWEST_EXPONENT
    if mantissa == 1 << _MANTISSA_BITS:
        mantissa >>= 1
        exponent += 1
    if exponent > 1023 - _MANTISSA_BITS + 1:
        # A mean is never beyond the largest double, even where the sum was rounded.
        return math.inf if count == 1 else math.ldexp(float(mantissa) / count, exponent)
    return math.ldexp(float(mantissa), exponent) / count


@compiled
def _rounds_up(scratch: np.ndarray, first: int, dropped: int, mantissa: int) -> bool:
    """Whether the bits below position `dropped` round the mantissa up (ties to even)."""
    half = dropped - 1
    digit = half // _DIGIT_BITS
    bit = half % _DIGIT_BITS
    if not (scratch[digit] >> bit) & 1:
        return False
    if mantissa & 1 or scratch[digit] & ((1 << bit) - 1):
        return True
    for i in range(first, digit):  # noqa: SIM110  numba has no any()
        if scratch[i]:
            return True
    return False
