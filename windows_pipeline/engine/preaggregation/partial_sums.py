"""The partial results of sums, means and variances."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import TypeGuard

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from windows_pipeline.aggregates import Aggregate
from windows_pipeline.engine.preaggregation import slice_numbers as numbers
from windows_pipeline.engine.preaggregation.partial_result import (
    ShortResult,
    field_of,
    structs_of,
)
from windows_pipeline.engine.preaggregation.slice_numbers import LIMB, LIMB_BITS, NAN, SQUARE_LIMB
from windows_pipeline.kernels.aggregates.decimals import running_sum_of_decimals
from windows_pipeline.kernels.aggregates.running import running_sum_of_multiples, running_total
from windows_pipeline.kernels.aggregates.sums import (
    decimal_result,
    divisors,
    integer_mean,
    integer_sum,
    variance_result,
)
from windows_pipeline.kernels.aggregates.variance import Multiples, lowest_by_group, square_of_unit
from windows_pipeline.kernels.values import decimal_words, is_valid, numbers_of
from windows_pipeline.kernels.windows.filled import WindowedRecords

DOUBLES = (T.FloatType, T.DoubleType)
_HIGH, _LOW, _VALUES, _TOTAL = "high", "low", "values", "total"
_POWER, _SCALE, _MULTIPLES, _KIND = "power", "scale", "multiples", "kind"
_MOST_DIGITS = 28
"""Spark's sum of decimals has ten digits more than they have, but at most 38."""
_MOST_BIGINT_DIGITS = 18
"""The most digits of a decimal whose unscaled value always fits a bigint."""
_LOW_HALF = (1 << 32) - 1


def partial_sum(*, mean: bool, same_in_spark: tuple[type[T.DataType], ...] = ()) -> ShortResult:
    """The partial result of a sum or a mean."""

    def combine(aggregate: Aggregate, states: pa.Array, records: WindowedRecords) -> pa.Array:
        return _sum_or_mean(aggregate, states, records, mean=mean)

    return ShortResult(
        _sum_state, _sums_of_records, combine, same_in_spark=same_in_spark, adds_numbers=True
    )


def partial_variance() -> ShortResult:
    """The partial result of a variance or a standard deviation."""
    return ShortResult(
        _squares_state, _squares_of_records, _variance, adds_numbers=True, adds_squares=True
    )


def with_multiples(records: DataFrame, doubles: Sequence[str]) -> DataFrame:
    """Doubles as multiples (`slice_numbers.scaled`), with the powers."""
    if not doubles:  # Spark Connect refuses a call without columns
        return records
    values = {name: F.col(name).cast("double") for name in doubles}
    split = records.withColumns(
        {power_column(name): numbers.power_of(each) for name, each in values.items()}
    )
    return split.withColumns(
        {name: numbers.scaled(value, F.col(power_column(name))) for name, value in values.items()}
    )


def with_wholes(records: DataFrame, squared: Sequence[str]) -> DataFrame:
    """Splits decimals too long for a bigint once; Spark would else divide again for each limb."""
    wholes: dict[str, Column] = {}
    for name in squared:
        kind = records.schema[name].dataType
        if _is_long(kind):
            parts = numbers.wholes_of_decimal(F.col(name), kind.scale)
            wholes |= zip(_wholes_columns(name), parts, strict=True)
    return records.withColumns(wholes) if wholes else records


def power_column(name: str) -> str:
    """The column with the powers of a column of doubles."""
    return f"_power_of_{name}"


def _wholes_columns(name: str) -> list[str]:
    return [f"_whole_{index}_of_{name}" for index in range(3)]


def _is_long(kind: T.DataType) -> TypeGuard[T.DecimalType]:
    return isinstance(kind, T.DecimalType) and kind.precision > _MOST_BIGINT_DIGITS


def _sum_state(column: str, kind: T.DataType) -> Column:
    value = F.col(column)
    count = F.count(value).alias(_VALUES)
    if isinstance(kind, DOUBLES):
        return F.struct(*_unit(column, kind), *_sums_of_limbs(_limbs(column, kind), LIMB), count)
    if isinstance(kind, T.DecimalType):
        return F.struct(*_sums_of_decimals(value, kind), count)
    # High and low halves, so that neither sum overflows.
    high = F.sum(F.shiftright(value.cast("bigint"), 32))
    low = F.sum(value.cast("bigint").bitwiseAND(F.lit(_LOW_HALF)))
    return F.struct(high.alias(_HIGH), low.alias(_LOW), count)


def _squares_state(column: str, kind: T.DataType) -> Column:
    limbs = _limbs(column, kind)
    sums = [*_sums_of_limbs(limbs, LIMB), *_sums_of_limbs(numbers.square_of(limbs), SQUARE_LIMB)]
    return F.struct(*_unit(column, kind), *sums, F.count(column).alias(_VALUES))


def _sums_of_decimals(value: Column, kind: T.DecimalType) -> list[Column]:
    """The sum; or where Spark's could overflow, the sums of the low 64 bits and of the rest."""
    of_kind = F.lit(None).cast(kind).alias(_KIND)
    if kind.precision <= _MOST_DIGITS:
        return [F.sum(value).alias(_TOTAL), of_kind]
    above, rest = numbers.divided(value, 1 << 64, kind.scale)
    multiples = F.sum(above.cast("decimal(19,0)"))
    return [F.sum(rest).alias(_TOTAL), multiples.alias(_MULTIPLES), of_kind]


def _unit(column: str, kind: T.DataType) -> list[Column]:
    """The unit that the whole numbers count: a power of two over a power of ten."""
    power = F.col(power_column(column)) if isinstance(kind, DOUBLES) else F.lit(0)
    scale = kind.scale if isinstance(kind, T.DecimalType) else 0
    return [power.alias(_POWER), F.lit(scale).alias(_SCALE)]


def _limbs(column: str, kind: T.DataType) -> list[Column]:
    """Whole numbers in limbs."""
    value = F.col(column)
    if isinstance(kind, DOUBLES):
        return numbers.limbs_of_scaled(value)
    if _is_long(kind):
        return numbers.limbs_of_wholes([F.col(name) for name in _wholes_columns(column)])
    if isinstance(kind, T.DecimalType):
        return numbers.limbs_of_integer((value * F.lit(Decimal(10**kind.scale))).cast("bigint"))
    return numbers.limbs_of_integer(value.cast("bigint"))


def _sums_of_limbs(limbs: Sequence[Column], prefix: str) -> list[Column]:
    return [F.sum(limb).alias(f"{prefix}{index}") for index, limb in enumerate(limbs)]


def _sums_of_records(values: pa.Array, _: np.ndarray, kind: pa.DataType) -> pa.Array:
    fields = {_VALUES: pa.array(is_valid(values).astype(np.int64))}
    if kind.get_field_index(_POWER) >= 0:
        fields |= _in_limbs(values, kind)
    elif kind.get_field_index(_MULTIPLES) >= 0:
        low, high = decimal_words(values).T
        fields[_TOTAL] = _unscaled(low, np.zeros_like(low), kind.field(_TOTAL).type)
        fields[_MULTIPLES] = _unscaled(high, high >> 63, kind.field(_MULTIPLES).type)
    elif kind.get_field_index(_TOTAL) >= 0:
        fields[_TOTAL] = values.cast(kind.field(_TOTAL).type)
    else:
        whole = numbers_of(values)
        fields |= {_HIGH: pa.array(whole >> 32), _LOW: pa.array(whole & _LOW_HALF)}
    return structs_of(fields, kind)


def _squares_of_records(values: pa.Array, _: np.ndarray, kind: pa.DataType) -> pa.Array:
    counts = pa.array(is_valid(values).astype(np.int64))
    return structs_of({_VALUES: counts, **_in_limbs(values, kind, with_squares=True)}, kind)


def _unscaled(low: np.ndarray, high: np.ndarray, kind: pa.DataType) -> pa.Array:
    """Decimals of two words."""
    words = np.stack([low, high], axis=1)
    return pa.Array.from_buffers(kind, len(low), [None, pa.py_buffer(words)])


def _in_limbs(
    values: pa.Array, kind: pa.DataType, *, with_squares: bool = False
) -> dict[str, pa.Array]:
    """Numbers as multiples of a power of two, in limbs."""
    scale = 0
    power = np.zeros(len(values), np.int64)
    if pa.types.is_decimal(values.type):
        low, high = decimal_words(values).T
        scale = values.type.scale
        is_long = values.type.precision > _MOST_BIGINT_DIGITS
        limbs = numbers.words_as_limbs(low, high) if is_long else numbers.integers_as_limbs(low)
    elif pa.types.is_floating(values.type):
        power, multiples = numbers.doubles_as_multiples(numbers_of(values), is_valid(values))
        limbs = numbers.integers_as_limbs(multiples)
    else:
        limbs = numbers.integers_as_limbs(numbers_of(values))
    fields = {_POWER: pa.array(power), _SCALE: pa.array(np.full(len(values), scale))}
    fields |= {f"{LIMB}{index}": pa.array(limb) for index, limb in enumerate(limbs)}
    if with_squares:
        squared = enumerate(numbers.squares_as_limbs(limbs))
        fields |= {f"{SQUARE_LIMB}{index}": pa.array(limb) for index, limb in squared}
    unknown = fields.keys() - {field.name for field in kind}
    if unknown:
        raise ValueError(f"{sorted(unknown)}: must be fields of a slice's partial result {kind}")
    return fields


def _counts(states: pa.Array, records: WindowedRecords) -> np.ndarray:
    """How many values each window has."""
    return running_total(records.windows, numbers_of(field_of(states, _VALUES)))


def _sum_or_mean(
    aggregate: Aggregate, states: pa.Array, records: WindowedRecords, *, mean: bool
) -> pa.Array:
    windows, count = records.windows, _counts(states, records)
    if states.type.get_field_index(_POWER) >= 0:
        doubles = _sum_of_doubles(states, records, divisors(count, mean=mean))
        return pa.array(doubles, mask=count == 0)
    if states.type.get_field_index(_TOTAL) >= 0:
        kind = states.type.field(_KIND).type
        above = None
        if states.type.get_field_index(_MULTIPLES) >= 0:
            above = field_of(states, _MULTIPLES)
        sums = running_sum_of_decimals(windows, field_of(states, _TOTAL), above)
        return decimal_result(aggregate, kind, sums, count, records, mean=mean)
    low = running_total(windows, numbers_of(field_of(states, _LOW)))
    high = running_total(windows, numbers_of(field_of(states, _HIGH))) + (low >> 32)
    low &= _LOW_HALF
    if mean:
        return integer_mean(high, low, count)
    return integer_sum(aggregate, high, low, count, records)


def _sum_of_doubles(states: pa.Array, records: WindowedRecords, by: np.ndarray) -> np.ndarray:
    power, values = (numbers_of(field_of(states, name)) for name in (_POWER, _VALUES))
    nans, above, below = (
        np.where(power == special, values, 0) for special in (NAN, numbers.ABOVE, numbers.BELOW)
    )
    power[power >= NAN] = 0
    limbs = np.stack(_limbs_of(states, LIMB))
    return running_sum_of_multiples(
        records.windows, power, limbs, LIMB_BITS, by, nans=nans, above=above, below=below
    )


def _variance(aggregate: Aggregate, states: pa.Array, records: WindowedRecords) -> pa.Array:
    power, values = (numbers_of(field_of(states, name)) for name in (_POWER, _VALUES))
    scale = numbers_of(field_of(states, _SCALE)).max(initial=0).item()
    finite = running_total(records.windows, np.where(power < NAN, values, 0))
    units = lowest_by_group(power, records.starts)
    shifts = np.where(power < NAN, power - np.repeat(units, np.diff(records.starts)), 0)
    multiples = Multiples(
        _wholes(_limbs_of(states, LIMB), shifts),
        _wholes(_limbs_of(states, SQUARE_LIMB), 2 * shifts),
        [square_of_unit(unit, scale) for unit in units.tolist()],
    )
    return variance_result(aggregate, multiples, finite, _counts(states, records), records)


def _limbs_of(states: pa.Array, prefix: str) -> list[np.ndarray]:
    """The limbs of whole numbers, the lowest first."""
    names = [field.name for field in states.type if field.name.startswith(prefix)]
    return [numbers_of(field_of(states, name)) for name in names]


def _wholes(limbs: Sequence[np.ndarray], shifts: np.ndarray) -> list[int]:
    """Limbs as Python's integers, shifted."""
    wholes = [0] * len(shifts)
    for index, limb in enumerate(limbs):
        wholes = [
            whole + (part << LIMB_BITS * index)
            for whole, part in zip(wholes, limb.tolist(), strict=True)
        ]
    return [whole << shift for whole, shift in zip(wholes, shifts.tolist(), strict=True)]
