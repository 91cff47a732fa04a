"""Windows that begin with slices and go on with records.

Slices are aggregated by Spark's expressions before the shuffle (see `slices`). The partial results
of the records after the slices are computed here, after the shuffle, so that it sorts only values.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations_with_replacement, pairwise
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windows_pipeline.aggregates import Aggregate, Function
from windows_pipeline.engine.preaggregation.slice_numbers import (
    ABOVE,
    BELOW,
    LIMB,
    LIMB_BITS,
    LOWEST_POWER,
    NAN,
    SQUARE_LIMB,
)
from windows_pipeline.engine.preaggregation.slices import (
    HIGH,
    LOW,
    MOST_BIGINT_DIGITS,
    MULTIPLES,
    POWER,
    SCALE,
    TIME_MS,
    TOTAL,
    VALUE,
    VALUES,
)
from windows_pipeline.engine.time_shards import TIME_SHARD, shard_of_groups
from windows_pipeline.kernels.aggregates.sums import VARIANCES
from windows_pipeline.kernels.values import as_array, decimal_words, is_valid, numbers_of

_LIMB_MASK = (1 << LIMB_BITS) - 1
_MANTISSA_BITS = 53


class AfterSlices(NamedTuple):
    """Rows of groups that begin with slices.

    Attributes:
        table: The slices of each group and the records after them; slices have null values.
        starts: Where each group's rows begin; one more entry for the end of the last.
        slices: The slices, in the table's order.
        of_slices: How many slices each group begins with.
    """

    table: pa.Table
    starts: np.ndarray
    slices: pa.Table
    of_slices: np.ndarray


def after_slices(table: pa.Table, starts: np.ndarray, slices: pa.Table) -> AfterSlices:
    """Puts slices before the records of their groups.

    Args:
        table: Records by group, each of another `_time_shard`.
        starts: Where each group's records begin; one more entry for the end of the last.
        slices: Slices in order, with the column `_time_shard`.
    """
    shards = shard_of_groups(table, starts).tolist()
    of_groups = [slices.filter(pc.field(TIME_SHARD) == shard) for shard in shards]
    pieces = []
    for of_group, (start, end) in zip(of_groups, pairwise(starts.tolist()), strict=True):
        pieces += [_like(table.schema, of_group), table.slice(start, end - start)]
    counts = np.array([of_group.num_rows for of_group in of_groups])
    return AfterSlices(
        pa.concat_tables(pieces),
        starts + np.concatenate(([0], np.cumsum(counts))),
        pa.concat_tables(of_groups),
        counts,
    )


def states_after_slices(
    aggregate: Aggregate, rows: AfterSlices, state: str, time_ms: np.ndarray
) -> pa.Array:
    """The partial result of each row, be it a slice or a record.

    Args:
        aggregate: What is computed: an aggregate that `has_short_states`.
        rows: The rows.
        state: The column of the slices' partial results.
        time_ms: The event time of each row.
    """
    states = as_array(rows.slices.column(state))
    own = _of_values(aggregate, as_array(rows.table.column(aggregate.column)), time_ms, states.type)
    pieces, done = [], 0
    for count, (start, end) in zip(rows.of_slices.tolist(), pairwise(rows.starts), strict=True):
        pieces += [states.slice(done, count), own.slice(start + count, end - start - count)]
        done += count
    return pa.concat_arrays(pieces)


def _like(schema: pa.Schema, slices: pa.Table) -> pa.Table:
    """The columns of a schema; null where the slices lack a column."""
    there = slices.column_names
    return pa.table(
        [
            slices.column(field.name).cast(field.type)
            if field.name in there
            else pa.nulls(slices.num_rows, field.type)
            for field in schema
        ],
        schema=schema,
    )


def _of_values(
    aggregate: Aggregate, values: pa.Array, time_ms: np.ndarray, kind: pa.DataType
) -> pa.Array:
    valid = is_valid(values)
    match aggregate.function:
        case Function.COUNT:
            return pa.array(valid.astype(np.int64))
        case Function.MIN | Function.MAX:
            return values
        case Function.FIRST | Function.LAST:
            return _struct({TIME_MS: pa.array(time_ms), VALUE: values}, kind, valid)
    if aggregate.function not in (Function.SUM, Function.AVG, *VARIANCES):
        raise ValueError(f"{aggregate.function}: has no partial result of a record; add it here")
    fields: dict[str, pa.Array] = {VALUES: pa.array(valid.astype(np.int64))}
    if kind.get_field_index(POWER) >= 0:
        with_squares = aggregate.function in VARIANCES
        fields |= _limbs_of(values, valid, kind, with_squares=with_squares)
    elif kind.get_field_index(MULTIPLES) >= 0:
        low, high = decimal_words(values).T
        fields[TOTAL] = _unscaled(low, np.zeros_like(low), kind.field(TOTAL).type)
        fields[MULTIPLES] = _unscaled(high, high >> 63, kind.field(MULTIPLES).type)
    elif kind.get_field_index(TOTAL) >= 0:
        fields[TOTAL] = values.cast(kind.field(TOTAL).type)
    else:
        numbers = numbers_of(values)
        fields |= {HIGH: pa.array(numbers >> 32), LOW: pa.array(numbers & ((1 << 32) - 1))}
    return _struct(fields, kind)


def _struct(
    fields: dict[str, pa.Array], kind: pa.DataType, valid: np.ndarray | None = None
) -> pa.Array:
    """Structs of a type; fields without values are null."""
    length = len(next(iter(fields.values())))
    arrays = [
        fields[field.name].cast(field.type)
        if field.name in fields
        else pa.nulls(length, field.type)
        for field in kind
    ]
    mask = None if valid is None else pa.array(~valid)
    return pa.StructArray.from_arrays(arrays, fields=list(kind), mask=mask)


def _unscaled(low: np.ndarray, high: np.ndarray, kind: pa.DataType) -> pa.Array:
    """Decimals of two words."""
    words = np.stack([low, high], axis=1)
    return pa.Array.from_buffers(kind, len(low), [None, pa.py_buffer(words)])


def _limbs_of(
    values: pa.Array, valid: np.ndarray, kind: pa.DataType, *, with_squares: bool
) -> dict[str, pa.Array]:
    """Numbers as multiples of a power of two, in limbs."""
    scale = 0
    power = np.zeros(len(values), np.int64)
    if pa.types.is_decimal(values.type):
        low, high = decimal_words(values).T
        scale = values.type.scale
        is_long = values.type.precision > MOST_BIGINT_DIGITS
        limbs = _limbs_of_words(low, high) if is_long else _limbs_of_integers(low)
    elif pa.types.is_floating(values.type):
        power, multiples = _as_multiples(numbers_of(values), valid)
        limbs = _limbs_of_integers(multiples)
    else:
        limbs = _limbs_of_integers(numbers_of(values))
    fields = {POWER: pa.array(power), SCALE: pa.array(np.full(len(values), scale))}
    fields |= {f"{LIMB}{index}": pa.array(limb) for index, limb in enumerate(limbs)}
    if with_squares:
        squares = enumerate(_squares(limbs))
        fields |= {f"{SQUARE_LIMB}{index}": pa.array(limb) for index, limb in squares}
    unknown = fields.keys() - {field.name for field in kind}
    if unknown:
        raise ValueError(f"{sorted(unknown)}: must be fields of a slice's partial result {kind}")
    return fields


def _as_multiples(numbers: np.ndarray, valid: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
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


def _limbs_of_integers(whole: np.ndarray) -> list[np.ndarray]:
    """Integers in limbs, the lowest first; the highest has the sign."""
    return [
        whole & _LIMB_MASK,
        (whole >> LIMB_BITS) & _LIMB_MASK,
        whole >> 2 * LIMB_BITS,
    ]


def _limbs_of_words(low: np.ndarray, high: np.ndarray) -> list[np.ndarray]:
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


def _squares(limbs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The squares of numbers in limbs, in twice as many limbs, not carried."""
    squares = [np.zeros_like(limbs[0]) for _ in range(2 * len(limbs))]
    for i, j in combinations_with_replacement(range(len(limbs)), 2):
        product = limbs[i] * limbs[j] * (1 if i == j else 2)
        squares[i + j] += product & _LIMB_MASK
        squares[i + j + 1] += product >> LIMB_BITS
    return squares
