"""Splits numbers into integer limbs, for exact sums (rule G2).

Spark's own expressions split the numbers of slices, NumPy those of single records.

Limbs are bigints, which Spark adds and multiplies exactly. Integers and unscaled decimals are
split into limbs as they are. Doubles of about one magnitude are integer multiples of one power of
two; so a slice has a row for each such power, which is one row or few. NaN and the infinities
have powers of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from itertools import combinations_with_replacement

import numpy as np
from pyspark.sql import Column
from pyspark.sql import functions as F

NAN, ABOVE, BELOW = 2000, 2001, 2002
"""The power of NaN, of the positive and of the negative infinity."""
LIMB_BITS = 31
LIMB, SQUARE_LIMB = "limb_", "square_"
"""The prefixes of the limbs of a whole number and of its square; `limb_0` is the lowest limb.

The number is limb_0 + limb_1 * 2**31 + limb_2 * 2**62 and so on, and all limbs have its sign. So
twice the product of two limbs fits a bigint, and so does the sum of a limb over 2**32 records.
"""

LOWEST_POWER = -1074
"""Every finite double is an integer multiple of 2 to this power."""
_BINADES = 38
"""How many powers of two a magnitude spans; either end has room for one more power."""
_CENTRE = -13
"""Most values are of the magnitude from 2**-13 to 2**25."""
_POINT_BITS = 53
"""How many bits after the point scaled values have; they have 40 before it."""
_CENTRAL_POWER = _CENTRE - _POINT_BITS
_LIMB_MASK = (1 << LIMB_BITS) - 1
_MANTISSA_BITS = 53


def power_of(value: Column) -> Column:
    """A power of two (int) of which a double is a whole multiple; any power for zero and null."""
    size = F.abs(value)
    # The logarithm may be rounded up to the next magnitude, which has room for the value.
    magnitude = F.floor((F.log2(size) - F.lit(_CENTRE)) / F.lit(_BINADES))
    power = F.greatest(F.lit(LOWEST_POWER), magnitude * _BINADES + F.lit(_CENTRAL_POWER))
    is_central = (size >= F.lit(2.0**_CENTRE)) & (size < F.lit(2.0 ** (_CENTRE + _BINADES)))
    return (
        F.when(is_central | value.isNull() | (value == F.lit(0.0)), F.lit(_CENTRAL_POWER))
        .when(_is_finite(value), power)
        .when(F.isnan(value), F.lit(NAN))
        .when(value > F.lit(0.0), F.lit(ABOVE))
        .otherwise(F.lit(BELOW))
        .cast("int")
    )


def scaled(value: Column, power: Column) -> Column:
    """The multiple of the power, divided by 2**53; 0 where the value is not finite."""
    factor = F.when(power == F.lit(_CENTRAL_POWER), F.lit(2.0**-_CENTRE)).otherwise(
        F.pow(F.lit(2.0), -F.lit(_POINT_BITS) - power)
    )
    return F.when(power >= F.lit(NAN), F.lit(0.0)).otherwise(value * factor)


def limbs_of_scaled(multiple: Column) -> list[Column]:
    """The result of `scaled` in limbs (bigint), the lowest first."""
    limb = F.lit(2.0**LIMB_BITS)
    above = multiple / F.lit(2.0 ** (2 * LIMB_BITS - _POINT_BITS))
    high = above.cast("bigint")  # truncates, so that all limbs have the sign of the whole
    rest = (above - high.cast("double")) * limb
    middle = rest.cast("bigint")
    low = ((rest - middle.cast("double")) * limb).cast("bigint")
    return [low, middle, high]


def limbs_of_integer(whole: Column) -> list[Column]:
    """A bigint in limbs (bigint), the lowest first."""
    limb = F.lit(1 << LIMB_BITS)
    above = F.call_function("div", whole, limb)
    return [whole % limb, above % limb, F.call_function("div", above, limb)]


def wholes_of_decimal(value: Column, scale: int) -> list[Column]:
    """An unscaled decimal in three bigints of two limbs, one and two, the lowest first."""
    above, rest = divided(value, 1 << 3 * LIMB_BITS, scale)
    middle, rest = divided(rest, 1 << 2 * LIMB_BITS, scale)
    below, _ = divided(rest, 1, scale)
    return [below, middle, above]


def limbs_of_wholes(wholes: Sequence[Column]) -> list[Column]:
    """The result of `wholes_of_decimal` in limbs (bigint), the lowest first."""
    limb = F.lit(1 << LIMB_BITS)
    below, middle, above = wholes
    low, high = ([two % limb, F.call_function("div", two, limb)] for two in (below, above))
    return [*low, middle, *high]


def divided(value: Column, divisor: int, scale: int) -> tuple[Column, Column]:
    """Divides an unscaled decimal: the quotient (bigint, truncated) and the remainder."""
    by = F.lit(Decimal(f"{divisor}e-{scale}"))
    return F.call_function("div", value, by), value % by


def square_of(limbs: Sequence[Column]) -> list[Column]:
    """The square of a number in up to five limbs: twice as many limbs below 2**34, not carried."""
    square = [F.lit(0).cast("bigint") for _ in range(2 * len(limbs))]
    for i, j in combinations_with_replacement(range(len(limbs)), 2):
        product = limbs[i] * limbs[j]
        if i != j:
            product *= F.lit(2)  # before it is split, as sums have no room for more limbs
        square[i + j] += product.bitwiseAND(F.lit((1 << LIMB_BITS) - 1))
        square[i + j + 1] += F.shiftright(product, LIMB_BITS)
    return square


def _is_finite(value: Column) -> Column:
    return F.abs(value) < F.lit(float("inf"))  # NaN is the largest number


def doubles_as_multiples(numbers: np.ndarray, valid: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Doubles as a power of two and a multiple of it; `NAN` and so on with the multiple 0."""
    finite = np.isfinite(numbers)
    fractions, exponents = np.frexp(np.where(finite, numbers, 0.0))
    multiples = np.ldexp(fractions, _MANTISSA_BITS).astype(np.int64)
    power = exponents.astype(np.int64) - _MANTISSA_BITS
    # The multiples of smaller powers end with as many zeros: no double is between.
    multiples >>= np.minimum(np.maximum(LOWEST_POWER - power, 0), 63)
    power = np.where(multiples == 0, 0, np.maximum(power, LOWEST_POWER))
    special = np.where(np.isnan(numbers), NAN, np.where(numbers > 0, ABOVE, BELOW))
    return np.where(valid & ~finite, special, power), multiples


def integers_as_limbs(whole: np.ndarray) -> list[np.ndarray]:
    """Integers in limbs, the lowest first; the highest has the sign."""
    return [
        whole & _LIMB_MASK,
        (whole >> LIMB_BITS) & _LIMB_MASK,
        whole >> 2 * LIMB_BITS,
    ]


def words_as_limbs(low: np.ndarray, high: np.ndarray) -> list[np.ndarray]:
    """Integers of two words in limbs, the lowest first; the highest has the sign."""
    low_bits = 64 - 2 * LIMB_BITS
    middle = (low >> 2 * LIMB_BITS) & ((1 << low_bits) - 1)
    rest = high >> LIMB_BITS - low_bits
    return [
        low & _LIMB_MASK,
        (low >> LIMB_BITS) & _LIMB_MASK,
        middle | (high << low_bits) & _LIMB_MASK,
        rest & _LIMB_MASK,
        rest >> LIMB_BITS,
    ]


def squares_as_limbs(limbs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The squares of numbers in limbs, in twice as many limbs, not carried."""
    found = [np.zeros_like(limbs[0]) for _ in range(2 * len(limbs))]
    for i, j in combinations_with_replacement(range(len(limbs)), 2):
        product = limbs[i] * limbs[j] * (1 if i == j else 2)
        found[i + j] += product & _LIMB_MASK
        found[i + j + 1] += product >> LIMB_BITS
    return found
