"""What a partial result is: what an aggregate comes to in a slice, or in a single record."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column
from pyspark.sql import types as T

from windows_pipeline.aggregates import Aggregate
from windows_pipeline.kernels.windows.filled import WindowedRecords

RECORDS = "_slice_records"
FIRST_MS = "_event_time_ms"
LAST_MS = "_slice_last_ms"

Combine = Callable[[Aggregate, pa.Array, WindowedRecords], pa.Array]


@dataclass(frozen=True)
class ShortResult:
    """A partial result that is of one length, however many records a slice has.

    Attributes:
        state: Spark's aggregate of a slice's values, for the name and the type of their column.
        of_records: Each record's partial result, as if the record were a slice; from values,
            event times and the type of the partial results.
        combine: The aggregate of each window, exactly (rule G2): from the slices' partial results,
            and the windows over the slices as if each were a record.
        same_in_spark: The types of values of which Spark's own function over a frame has the
            engine's result.
        adds_numbers: Whether numbers are added: of doubles, a slice has a row for each magnitude.
        adds_squares: Whether the squares of numbers are added, too.
    """

    state: Callable[[str, T.DataType], Column]
    of_records: Callable[[pa.Array, np.ndarray, pa.DataType], pa.Array]
    combine: Combine
    same_in_spark: tuple[type[T.DataType], ...] = ()
    adds_numbers: bool = False
    adds_squares: bool = False


@dataclass(frozen=True)
class DistinctValues:
    """A slice's distinct values, a row each, with the number of their records.

    Attributes:
        combine: The aggregate of each window: from the values, how many records have each, and
            the windows over the rows as if each were a record.
    """

    combine: Callable[[Aggregate, pa.Array, np.ndarray, WindowedRecords], pa.Array]


def field_of(states: pa.Array, name: str) -> pa.Array:
    """A field of structs; null where the struct is null."""
    return pc.struct_field(states, name)


def structs_of(
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
