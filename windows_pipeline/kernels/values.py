"""Turns an Arrow column into NumPy arrays: its numbers, their order, and a mask of non-nulls."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_EXACT_DIGITS = 15
"""Integers with at most this many digits, and powers of ten up to it, are exact as doubles."""


def as_array(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """A column as a single array."""
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def is_valid(column: pa.Array) -> np.ndarray:
    """A mask of the values that are not null."""
    return np.asarray(pc.is_valid(column), np.bool_)


def plain(column: pa.Array) -> pa.Array:
    """The same values with one kind of zero and of NaN, so that equal values have equal bits."""
    if pa.types.is_floating(column.type):
        nan, zero = (pa.scalar(number, column.type) for number in (np.nan, 0.0))
        return pc.if_else(pc.is_nan(column), nan, pc.add(column, zero))
    if pa.types.is_struct(column.type):
        fields = [plain(field) for field in column.flatten()]
        return pa.StructArray.from_arrays(fields, fields=list(column.type), mask=pc.is_null(column))
    return column


def numbers_of(column: pa.Array) -> np.ndarray:
    """Integers and floats as 64-bit numbers, and nulls as 0."""
    kind = np.float64 if pa.types.is_floating(column.type) else np.int64
    return writable(np.asarray(column.fill_null(0), kind))


def writable(values: np.ndarray) -> np.ndarray:
    """The values, copied if they are read-only, as Arrow's arrays are.

    Numba compiles a function once for read-only and once for writable arrays.
    """
    return values if values.flags.writeable else values.copy()


def doubles_of(column: pa.Array) -> np.ndarray:
    """Numbers of any type, each as the nearest double, and nulls as 0."""
    if not pa.types.is_decimal(column.type):
        return numbers_of(column).astype(np.float64, copy=False)
    scale = column.type.scale
    if column.type.precision <= _EXACT_DIGITS:
        doubles: np.ndarray = decimal_words(column)[:, 0] / 10.0**scale
        return doubles
    # Python rounds a quotient of integers only once.
    return np.array([unscaled / 10**scale for unscaled in unscaled_integers(column)], np.float64)


def decimal_words(column: pa.Array) -> np.ndarray:
    """Unscaled decimals: 128 bits as two signed words, the low word first; nulls are 0."""
    start = column.offset * 2
    words = np.frombuffer(column.buffers()[1], np.int64)[start : start + 2 * len(column)]
    return np.where(is_valid(column)[:, None], words.reshape(-1, 2), 0)


def unscaled_integers(column: pa.Array) -> list[int]:
    """Unscaled decimals as Python's integers, and nulls as 0."""
    words = decimal_words(column)
    low, high = words[:, 0].view(np.uint64).tolist(), words[:, 1].tolist()
    return [upper << 64 | lower for upper, lower in zip(high, low, strict=True)]


def order_codes(values: np.ndarray) -> np.ndarray:
    """Integers in Spark's order of numbers: NaN is the largest, -0.0 equals 0.0."""
    if values.dtype != np.float64:
        return values.astype(np.int64)
    plain = np.where(np.isnan(values), np.nan, values + 0.0)
    bits = plain.view(np.int64)
    return np.where(bits < 0, bits ^ np.int64(2**63 - 1), bits)


def value_codes(column: pa.Array) -> np.ndarray:
    """Integers whose order is Spark's order of the values; the code of null is arbitrary.

    NaN is the largest number, -0.0 equals 0.0; text and binary are compared by their bytes;
    structs by the first field that differs, where null comes first.
    """
    kind = column.type
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        return order_codes(numbers_of(column))
    if pa.types.is_boolean(kind) or pa.types.is_date32(kind):
        return numbers_of(column.cast(pa.int32()))
    if pa.types.is_timestamp(kind):
        return numbers_of(column.cast(pa.int64()))
    if pa.types.is_struct(kind):
        return _struct_ranks(column)
    encoded = column.dictionary_encode()
    order = np.asarray(pc.sort_indices(encoded.dictionary), np.int64)
    ranks = np.zeros(len(order) + 1, np.int64)  # one more, for a column of nulls only
    ranks[order] = np.arange(len(order))
    ranked: np.ndarray = ranks[np.asarray(encoded.indices.fill_null(0))]
    return ranked


def _struct_ranks(column: pa.Array) -> np.ndarray:
    keys = []
    for field in column.flatten():
        keys += [is_valid(field), value_codes(field)]
    order = np.lexsort(keys[::-1])
    differs = np.zeros(len(order), np.bool_)
    for key in keys:
        differs[1:] |= key[order[1:]] != key[order[:-1]]
    ranks = np.empty(len(order), np.int64)
    ranks[order] = np.cumsum(differs)
    return ranks


def positions_by_time_and_value(
    starts: np.ndarray, time_ms: np.ndarray, codes: np.ndarray, valid: np.ndarray
) -> np.ndarray:
    """Each record's position in the order of group, event time and value, null the smallest.

    The records are sorted by group. Where they are also sorted by event time, only the records
    of equal times are sorted here.
    """
    falls = np.flatnonzero(np.diff(time_ms) < 0) + 1
    if not np.isin(falls, starts).all():  # sorted by arrival, as blocks of n rows are
        group = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
        sorted_positions = np.empty(len(time_ms), np.int64)
        sorted_positions[np.lexsort((codes, valid, time_ms, group))] = np.arange(len(time_ms))
        return sorted_positions
    begins = np.ones(len(time_ms) + 1, np.bool_)
    begins[1:-1] = time_ms[1:] != time_ms[:-1]
    begins[starts] = True
    tied = np.flatnonzero(~(begins[1:] & begins[:-1]))
    positions = np.arange(len(time_ms))
    run = np.cumsum(begins[:-1])[tied]
    sorted_ties = tied[np.lexsort((codes[tied], valid[tied], run))]
    positions[sorted_ties] = tied
    return positions
