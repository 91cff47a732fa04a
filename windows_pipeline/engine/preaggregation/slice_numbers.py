"""Numbers as whole ones in limbs, in Spark's own expressions (rule G2).

Limbs are bigints, which Spark adds and multiplies without a loss. Integers have them, decimals
without their point, and doubles of about one magnitude: these are whole multiples of one power
of two. So a pane is split by that power, which leaves it in one piece or few. What is no finite
number gets a power of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from itertools import combinations_with_replacement

from pyspark.sql import Column
from pyspark.sql import functions as F

NAN, ABOVE, BELOW = 2000, 2001, 2002
"""What stands for the power where the value is NaN or an infinity."""
LIMB_BITS = 31
LIMB, SQUARE_LIMB = "limb_", "square_"
"""What the limbs of a whole number are named by, and those of its square: `limb_0` is the lowest.

All have the number's sign: it is limb_0 + limb_1 * 2**31 + limb_2 * 2**62 and so on. So twice the
product of two fits a bigint, as do sums of limbs over 2**32 records.
"""

_LOWEST_POWER = -1074
_BINADES = 38
"""How many powers of two lie within one magnitude; one more at either end does not hurt."""
_CENTRE = -13
"""The magnitude that most values are of goes from 2**-13 to 2**25."""
_POINT_BITS = 53
"""Scaled by the power, values have so many bits after the point, and 40 before it."""
_CENTRAL_POWER = _CENTRE - _POINT_BITS


def power_of(value: Column) -> Column:
    """The power of two that a double is a multiple of (int); of zero and null some such."""
    size = F.abs(value)
    # Rounding may take the logarithm of a value to the next magnitude, which has the room.
    magnitude = F.floor((F.log2(size) - F.lit(_CENTRE)) / F.lit(_BINADES))
    power = F.greatest(F.lit(_LOWEST_POWER), magnitude * _BINADES + F.lit(_CENTRAL_POWER))
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
    """The multiple over 2**53; 0 where the value is not finite."""
    factor = F.when(power == F.lit(_CENTRAL_POWER), F.lit(2.0**-_CENTRE)).otherwise(
        F.pow(F.lit(2.0), -F.lit(_POINT_BITS) - power)
    )
    return F.when(power >= F.lit(NAN), F.lit(0.0)).otherwise(value * factor)


def limbs_of_scaled(multiple: Column) -> list[Column]:
    """What `scaled` gives in limbs (bigint), the lowest first."""
    limb = F.lit(2.0**LIMB_BITS)
    above = multiple / F.lit(2.0 ** (2 * LIMB_BITS - _POINT_BITS))
    high = above.cast("bigint")  # cuts off, so that all limbs have the sign of the whole
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
    """A decimal without its point in bigints of two limbs, one and two, the lowest first."""
    above, rest = divided(value, 1 << 3 * LIMB_BITS, scale)
    middle, rest = divided(rest, 1 << 2 * LIMB_BITS, scale)
    below, _ = divided(rest, 1, scale)
    return [below, middle, above]


def limbs_of_wholes(wholes: Sequence[Column]) -> list[Column]:
    """What `wholes_of_decimal` gives in limbs (bigint), the lowest first."""
    limb = F.lit(1 << LIMB_BITS)
    below, middle, above = wholes
    low, high = ([two % limb, F.call_function("div", two, limb)] for two in (below, above))
    return [*low, middle, *high]


def divided(value: Column, places: int, scale: int) -> tuple[Column, Column]:
    """The quotient (bigint, cut off) and the rest by so many of a decimal's last place."""
    by = F.lit(Decimal(f"{places}e-{scale}"))
    return F.call_function("div", value, by), value % by


def square_of(limbs: Sequence[Column]) -> list[Column]:
    """The square of a number in up to five limbs, in twice as many, below 2**34: uncarried."""
    square = [F.lit(0).cast("bigint") for _ in range(2 * len(limbs))]
    for i, j in combinations_with_replacement(range(len(limbs)), 2):
        product = limbs[i] * limbs[j]
        if i != j:
            product *= F.lit(2)  # before it is cut: the sums have room for no more limbs
        square[i + j] += product.bitwiseAND(F.lit((1 << LIMB_BITS) - 1))
        square[i + j + 1] += F.shiftright(product, LIMB_BITS)
    return square


def _is_finite(value: Column) -> Column:
    return F.abs(value) < F.lit(float("inf"))  # NaN is the largest number
