"""Doubles as whole numbers of a power of two, in Spark's own expressions (rule G2).

Doubles of about one magnitude are whole multiples of one power of two, which Spark adds without
a loss. So a pane is split by that power, which leaves it in one piece or few. What is no finite
number gets a power of its own.
"""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

NAN, ABOVE, BELOW = 2000, 2001, 2002
"""What stands for the power where the value is NaN or an infinity."""
LIMB_BITS = 32
LOW, MIDDLE, HIGH = "low", "middle", "high"
"""The limbs of a multiple: low + middle * 2**32 + high * 2**64, all with its sign."""

_LOWEST_POWER = -1074
_BINADES = 40
"""How many powers of two lie within one magnitude; one more at either end does not hurt."""
_CENTRE = -13
"""The magnitude that most values are of goes from 2**-13 to 2**27."""
_POINT_BITS = 53
"""Scaled by the power, values have so many bits after the point, and 41 before it."""
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


def limbs_of(multiple: Column) -> dict[str, Column]:
    """What `scaled` gives as limbs (bigint, below 2**32), by name."""
    limb = F.lit(2.0**LIMB_BITS)
    above = multiple / F.lit(2.0 ** (2 * LIMB_BITS - _POINT_BITS))
    high = above.cast("bigint")  # cuts off, so that all limbs have the sign of the whole
    rest = (above - high.cast("double")) * limb
    middle = rest.cast("bigint")
    low = ((rest - middle.cast("double")) * limb).cast("bigint")
    return {LOW: low, MIDDLE: middle, HIGH: high}


def _is_finite(value: Column) -> Column:
    return F.abs(value) < F.lit(float("inf"))  # NaN is the largest number
