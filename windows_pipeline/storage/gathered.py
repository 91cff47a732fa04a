"""Brings the new rows of several tables, and other rows, to the driver in one query."""

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
from windows_pipeline.storage.table import ROWS_OF_A_TASK, Table


def gather(
    new: Sequence[tuple[Table, DataFrame]],
    more: Sequence[DataFrame] = (),
    most_rows: int = ROWS_OF_A_TASK,
) -> list[pa.Table] | None:
    """Collects new rows of tables, as their files will hold them, and the rows of other frames.

    Args:
        new: The tables, each with rows that have its columns.
        more: Frames whose rows are collected as they are.
        most_rows: The most rows to collect; one task computes them.

    Returns:
        The rows of each table, sorted, and those of each other frame. None if Spark is to write
        the tables: all rows are more than `most_rows` or exceed Spark's limit of results, or the
        driver cannot write a table.
    """
    if not all(table.is_written_by_driver(rows.sparkSession) for table, rows in new):
        return None
    schemas = [*(table.schema for table, _ in new), *(rows.schema for rows in more)]
    frames = [*(rows for _, rows in new), *more]
    marked = [
        rows.select(F.lit(number).alias("table"), _struct(schema).alias(f"of_{number}"))
        for number, (rows, schema) in enumerate(zip(frames, schemas, strict=True))
    ]
    every = reduce(partial(DataFrame.unionByName, allowMissingColumns=True), marked)
    found = delta_rs.fetch(every.coalesce(1).limit(most_rows + 1))
    if found is None or found.num_rows > most_rows:
        return None
    collected = [
        _flat(found.filter(pc.equal(found["table"], number))[f"of_{number}"], schema)
        for number, schema in enumerate(schemas)
    ]
    tables = [table for table, _ in new]
    return [*map(_sorted, tables, collected), *collected[len(tables) :]]


def _struct(schema: T.StructType) -> Column:
    """A row of a frame. In rows of other frames it is null, so all its fields may be."""
    fields = [T.StructField(field.name, field.dataType) for field in schema]
    return F.struct(*[F.col(f"`{name}`") for name in schema.names]).cast(T.StructType(fields))


def _flat(rows: pa.ChunkedArray, schema: T.StructType) -> pa.Table:
    """The rows of structs."""
    columns = rows.combine_chunks().flatten()
    return pa.Table.from_arrays(columns, schema.names).cast(arrow_schema(schema))


def _sorted(table: Table, rows: pa.Table) -> pa.Table:
    """Rows in the order in which the table's files hold them."""
    order = pa.table({name: _column(rows, name) for name in ("arrival_unit", *table.sorted_by)})
    by = [(name, "ascending") for name in order.column_names]
    return rows.take(pc.sort_indices(order, sort_keys=by, null_placement="at_start"))


def _column(rows: pa.Table, name: str) -> pa.ChunkedArray:
    """A column, or by `column.field` a field of one."""
    column, *fields = name.split(".")
    return pc.struct_field(rows[column], fields) if fields else rows[column]
