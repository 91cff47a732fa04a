"""Brings the new rows of several tables to the driver in one query."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial, reduce

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from windows_pipeline.compat.local_frame import arrow_schema
from windows_pipeline.storage import delta_rs
from windows_pipeline.storage.table import Table

MOST_ROWS = 10_000
"""The most rows that are gathered: one task computes them."""


def gather(new: Sequence[tuple[Table, DataFrame]]) -> list[pa.Table] | None:
    """Collects new rows of tables, as their files will hold them.

    Args:
        new: The tables, each with rows that have its columns.

    Returns:
        The rows of each table, sorted. None if Spark is to write them: they are more than
        `MOST_ROWS` or exceed Spark's limit of results, or the driver cannot write a table.
    """
    if not all(table.is_written_by_driver(rows.sparkSession) for table, rows in new):
        return None
    marked = [
        rows.select(F.lit(number).alias("table"), _struct(table).alias(f"of_{number}"))
        for number, (table, rows) in enumerate(new)
    ]
    every = reduce(partial(DataFrame.unionByName, allowMissingColumns=True), marked)
    found = delta_rs.fetch(every.coalesce(1).limit(MOST_ROWS + 1))
    if found is None or found.num_rows > MOST_ROWS:
        return None
    return [
        _sorted(table, found.filter(pc.equal(found["table"], number))[f"of_{number}"])
        for number, (table, _) in enumerate(new)
    ]


def _struct(table: Table) -> Column:
    """A row of the table. In rows of other tables it is null, so all its fields may be."""
    fields = [T.StructField(field.name, field.dataType) for field in table.schema]
    return F.struct(*table.schema.names).cast(T.StructType(fields))


def _sorted(table: Table, rows: pa.ChunkedArray) -> pa.Table:
    """The rows of structs, in the order in which the table's files hold them."""
    columns = rows.combine_chunks().flatten()
    found = pa.Table.from_arrays(columns, table.schema.names).cast(arrow_schema(table.schema))
    order = pa.table({name: _column(found, name) for name in ("arrival_unit", *table.sorted_by)})
    by = [(name, "ascending") for name in order.column_names]
    return found.take(pc.sort_indices(order, sort_keys=by, null_placement="at_start"))


def _column(rows: pa.Table, name: str) -> pa.ChunkedArray:
    """A column, or by `column.field` a field of one."""
    column, *fields = name.split(".")
    return pc.struct_field(rows[column], fields) if fields else rows[column]
