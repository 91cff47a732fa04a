"""Checks that rows come in the order that kernels trust.

Of rows in another order a kernel would return wrong results without an error. Spark keeps the order
that a plan sorts by; another engine that runs the plan may not.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windows_pipeline.kernels.values import as_array, is_valid, numbers_of, order_codes

SORT_KEY = "_sort_key"
"""The column (bigint) that sorts a task's rows first: a number that follows from their group."""
_NO_ROWS = np.zeros(0, np.int64)


def in_order(
    batches: Iterator[pa.RecordBatch], *, with_key: bool = False
) -> Iterator[pa.RecordBatch]:
    """Passes a task's batches on.

    Args:
        batches: Rows with `_sort_key`.
        with_key: Whether to pass on `_sort_key`, too.

    Raises:
        RuntimeError: The sort key of a row is below that of the row before it.
    """
    last = -(2**63)
    for batch in batches:
        numbers = np.asarray(batch.column(SORT_KEY))
        if len(numbers):
            if numbers[0] < last or (numbers[1:] < numbers[:-1]).any():
                raise RuntimeError(_lost_order([SORT_KEY]))
            last = numbers[-1]
        yield batch if with_key else batch.drop_columns([SORT_KEY])


def require_order(table: pa.Table, starts: np.ndarray, by: Sequence[str]) -> np.ndarray:
    """Requires that the rows of each group are sorted as Spark sorts: ascending, nulls first.

    Args:
        table: Rows by group.
        starts: Where each group's rows begin; one more entry for the end of the last.
        by: The columns that sort a group's rows, most significant first. Columns from one on whose
            values Arrow cannot compare, such as lists, are not looked at.

    Returns:
        The rows that all columns sort alike with the row before.

    Raises:
        RuntimeError: A row belongs before the row before it.
    """
    tied: np.ndarray | None = None
    for values in (part for name in by for part in _compared(as_array(table.column(name)))):
        if isinstance(values, pa.Array) and not _is_ordered(values.type):
            return _NO_ROWS
        if tied is None:
            # One pass over all rows, then few: those that do not rise, and start no group.
            stays = ~_rises(values[:-1], values[1:])
            stays[starts[1:-1] - 1] = False
            tied = np.flatnonzero(stays) + 1
        earlier, later = _taken(values, tied - 1), _taken(values, tied)
        falls = tied[_rises(later, earlier)]
        if len(falls):
            found = table.select(by).slice(int(falls[0]) - 1, 2).to_pylist()
            raise RuntimeError(_lost_order(by, f" ({found[1]} after {found[0]})"))
        tied = tied[~_rises(earlier, later)]
        if not len(tied):
            break
    return _NO_ROWS if tied is None else tied


def _compared(column: pa.Array) -> Iterator[np.ndarray | pa.Array]:
    """What orders a column's values, most significant first."""
    if column.null_count:
        yield is_valid(column)
    kind = column.type
    if pa.types.is_struct(kind):
        for field in column.flatten():
            yield from _compared(field)
    elif pa.types.is_floating(kind):
        yield order_codes(numbers_of(column))
    elif pa.types.is_integer(kind):
        yield np.asarray(column.fill_null(0))
    else:
        yield column


def _lost_order(by: Sequence[str], found: str = "") -> str:
    return (
        f"the rows of a Spark task must be sorted by {', '.join(by)}, but one comes after a row "
        f"that it belongs before{found}: the engine that runs the plan lost a shuffle or a sort, "
        "and results would be wrong; run the plan on Apache Spark, or report what explain() prints"
    )


def _taken(values: np.ndarray | pa.Array, rows: np.ndarray) -> np.ndarray | pa.Array:
    return values[rows] if isinstance(values, np.ndarray) else values.take(pa.array(rows))


def _is_ordered(kind: pa.DataType) -> bool:
    """Whether Arrow compares values of a type, and as Spark does."""
    of_bytes = pa.types.is_string(kind) or pa.types.is_binary(kind)
    of_time = pa.types.is_temporal(kind) and not pa.types.is_interval(kind)
    return of_bytes or of_time or pa.types.is_decimal(kind) or pa.types.is_boolean(kind)


def _rises(earlier: np.ndarray | pa.Array, later: np.ndarray | pa.Array) -> np.ndarray:
    if isinstance(earlier, np.ndarray):
        rises: np.ndarray = np.less(earlier, later)
        return rises
    return np.array(pc.less(earlier, later).fill_null(False), np.bool_)
