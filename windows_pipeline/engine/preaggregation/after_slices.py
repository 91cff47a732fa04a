"""Windows that begin with slices and go on with records.

Slices are aggregated by Spark's expressions before the shuffle (see `slices`). The partial results
of the records after the slices are computed here, after the shuffle, so that it sorts only values.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windows_pipeline.aggregates import Aggregate
from windows_pipeline.engine.preaggregation.partial_results import short_result_of
from windows_pipeline.engine.time_shards import TIME_SHARD, shard_of_groups
from windows_pipeline.kernels.values import as_array


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
    values = as_array(rows.table.column(aggregate.column))
    own = short_result_of(aggregate).of_records(values, time_ms, states.type)
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
