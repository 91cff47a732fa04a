"""Makes Arrow's values from buffers, without `pyarrow.array` and `pyarrow.scalar`.

Those import pandas, which takes half a second; without it a command answers at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windows_pipeline.text.instants import EPOCH, EPOCH_DAY

_MICROSECOND = timedelta(microseconds=1)


def microseconds(instant: datetime) -> int:
    """An instant with a zone as microseconds since 1970."""
    return (instant - EPOCH) // _MICROSECOND


def booleans(values: Sequence[bool] | np.ndarray[Any, Any]) -> pa.BooleanArray:
    """An array of booleans."""
    bits = np.packbits(np.asarray(values, dtype=bool), bitorder="little")
    return pa.BooleanArray.from_buffers(pa.bool_(), len(values), [None, pa.py_buffer(bits)])


def instants(times_ms: Sequence[int | None]) -> pa.Array:
    """Milliseconds since 1970 as timestamps of tables."""
    times_us = [None if ms is None else ms * 1_000 for ms in times_ms]
    return _numbers(times_us, np.dtype(np.int64), pa.timestamp("us", "UTC"))


def doubles(values: Sequence[float | None]) -> pa.Array:
    """An array of doubles."""
    return _numbers(values, np.dtype(np.float64), pa.float64())


def _numbers(
    values: Sequence[float | None], stored_as: np.dtype[Any], kind: pa.DataType
) -> pa.Array:
    known = np.fromiter((value is not None for value in values), np.bool_, len(values))
    numbers = np.fromiter((0 if value is None else value for value in values), stored_as)
    buffers = [pa.py_buffer(np.packbits(known, bitorder="little")), pa.py_buffer(numbers)]
    return pa.Array.from_buffers(kind, len(values), buffers)


def python_rows(rows: pa.Table | pa.RecordBatch) -> Iterator[dict[str, Any]]:
    """The rows by column, as `to_pylist` returns them; instants are in Python's own UTC."""
    columns = [python_values(rows[name]) for name in rows.schema.names]
    return (dict(zip(rows.schema.names, row, strict=True)) for row in zip(*columns, strict=True))


def python_values(values: pa.Array | pa.ChunkedArray) -> list[Any]:
    """A column's values as `to_pylist` returns them; that would import pandas for instants."""
    kind = values.type
    if pa.types.is_struct(kind):
        fields = [python_values(pc.struct_field(values, [at])) for at in range(kind.num_fields)]
        names = [field.name for field in kind]
        known = pc.is_valid(values).to_pylist()
        return [
            dict(zip(names, row, strict=True)) if is_known else None
            for is_known, row in zip(known, zip(*fields, strict=True), strict=True)
        ]
    if not pa.types.is_timestamp(kind) or kind.tz is None:
        found: list[Any] = values.to_pylist()
        return found
    plain = values.cast(pa.timestamp(kind.unit)).to_pylist()
    return [None if value is None else value.replace(tzinfo=UTC) for value in plain]


def integer(value: int) -> pa.Scalar:
    """A bigint."""
    return _number(np.int64(value), pa.int64())


def texts(values: Sequence[str]) -> pa.StringArray:
    """An array of strings."""
    data = [value.encode() for value in values]
    offsets = np.cumsum([0, *map(len, data)], dtype=np.int32)
    joined = pa.py_buffer(b"".join(data))
    return pa.StringArray.from_buffers(len(data), pa.py_buffer(offsets), joined)


def text(value: str) -> pa.Scalar:
    """A string."""
    return texts([value])[0]


def null(kind: pa.DataType) -> pa.Scalar:
    """The null of a type."""
    return pa.nulls(1, kind)[0]


def scalar(value: object, kind: pa.DataType) -> pa.Scalar | None:
    """A value of a type; None if the value is not of that type.

    Args:
        value: The value: a str for a string, an int for an integer, a float or int for a double, a
            Decimal or int for a decimal, a datetime with a zone for a timestamp; None for null.
        kind: The type.
    """
    try:
        return _scalar(value, kind)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError, TypeError, UnicodeEncodeError):
        return None


def _scalar(value: object, kind: pa.DataType) -> pa.Scalar | None:
    is_whole = isinstance(value, int) and not isinstance(value, bool)
    match value:
        case None:
            return null(kind)
        case bool() if pa.types.is_boolean(kind):
            return booleans([value])[0]
        case str() if pa.types.is_string(kind):
            return text(value)
        case int() if is_whole and pa.types.is_integer(kind):
            return integer(value).cast(kind)
        case int() | float() if pa.types.is_floating(kind) and not isinstance(value, bool):
            return _number(np.float64(value), pa.float64()).cast(kind)
        case Decimal() | int() if pa.types.is_decimal(kind) and not isinstance(value, bool):
            return text(str(value)).cast(kind)
        case datetime() if pa.types.is_timestamp(kind) and value.utcoffset() is not None:
            return _number(np.int64(microseconds(value)), pa.timestamp("us", "UTC")).cast(kind)
        case date() if pa.types.is_date32(kind) and not isinstance(value, datetime):
            return _number(np.int32((value - EPOCH_DAY).days), pa.date32())
        case _:
            return None


def _number(value: np.number[Any], kind: pa.DataType) -> pa.Scalar:
    return pa.Array.from_buffers(kind, 1, [None, pa.py_buffer(np.array([value]))])[0]


FALSE = booleans([False])[0]
TRUE = booleans([True])[0]
