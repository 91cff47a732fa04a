"""Finds the watermark advances: the records that raise stream time (rules A1, A2, E2).

At an advance windows fire because stream time passed their end, a tick or their close.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from windows_pipeline.kernels.time import END_OF_INPUT_MS


@dataclass(frozen=True)
class Advances:
    """The watermark advances of a computed day, in order of arrival.

    Attributes:
        stream_time_ms: Stream time after each advance, ascending.
        is_new: Whether the record that caused it came with the computed day.
        at: The columns of arrival of that record, which identify it; null for the end of input.
    """

    stream_time_ms: np.ndarray
    is_new: np.ndarray
    at: pa.Table

    def entry(self, stream_time_ms: np.ndarray, at: pa.Table) -> np.ndarray:
        """The index of the first advance at or after each record; a record may itself cause it.

        Args:
            stream_time_ms: Stream time after each record.
            at: The records' columns of arrival.
        """
        entry = np.searchsorted(self.stream_time_ms, stream_time_ms)
        index = np.minimum(entry, len(self.stream_time_ms) - 1)
        same = self.stream_time_ms[index] == stream_time_ms
        candidates = np.flatnonzero(same)
        advances = self.at.take(pa.array(index[candidates]))
        records = at.take(pa.array(candidates))
        is_advance = np.ones(len(candidates), np.bool_)
        for name in at.column_names:
            of_record, of_advance = records.column(name), advances.column(name)
            both_null = pc.and_(pc.is_null(of_record), pc.is_null(of_advance))
            equal = pc.or_(pc.fill_null(pc.equal(of_record, of_advance), False), both_null)
            is_advance &= equal.to_numpy(zero_copy_only=False).astype(np.bool_)
        # A record that found a stream time and did not raise it came after the advance to it.
        entry[candidates] += ~is_advance
        return entry


def collect_advances(
    records: DataFrame, arrival: Sequence[str], grid_ms: int, *, input_ends: bool
) -> Mapping[int, Advances]:
    """Runs a Spark job that finds the watermark advances of each computed day.

    Args:
        records: `_computed_day`, `_stream_time_ms`, the columns of `arrival`, and `_is_new` if not
            all records are new.
        arrival: The columns that order the arrival of records that met one stream time.
        grid_ms: Only the first advance in each multiple of this matters; 1 for all advances.
        input_ends: Whether stream time passes everything after the last record.

    Returns:
        The advances by computed day. An advance takes about 16 bytes and its columns of arrival.
    """
    is_new = F.col("_is_new") if "_is_new" in records.columns else F.lit(True)
    in_order = F.struct("_stream_time_ms", *arrival, is_new.alias("_is_new"))
    # The kernel refuses a record without an event time.
    timed = records.where("_stream_time_ms IS NOT NULL")
    first = timed.groupBy("_computed_day", _cell(grid_ms).alias("cell")).agg(
        F.min(in_order).alias("r")
    )
    found = first.select("_computed_day", "r.*").toArrow()
    if not found.num_rows:
        return {}
    found = found.sort_by([("_computed_day", "ascending"), ("_stream_time_ms", "ascending")])
    days = np.array(found.column("_computed_day"), np.int64)
    distinct, begins = np.unique(days, return_index=True)
    ends = [*begins[1:], len(days)]
    return {
        # take, as a slice would be pickled with the advances of all computed days.
        int(day): _advances(
            found.take(pa.array(np.arange(begin, end))), arrival, input_ends=input_ends
        )
        for day, begin, end in zip(distinct, begins, ends, strict=True)
    }


def _cell(grid_ms: int) -> Column:
    time_ms, grid = F.col("_stream_time_ms"), F.lit(grid_ms)
    return F.call_function("div", time_ms - F.pmod(time_ms, grid), grid)


def _advances(found: pa.Table, arrival: Sequence[str], *, input_ends: bool) -> Advances:
    times_ms = np.array(found.column("_stream_time_ms"), np.int64)
    is_new = np.array(found.column("_is_new"), np.bool_)
    at = found.select(list(arrival))
    if input_ends:
        times_ms, is_new = np.append(times_ms, END_OF_INPUT_MS), np.append(is_new, True)
        schema = pa.schema([field.with_nullable(True) for field in at.schema])
        end = pa.table([pa.nulls(1, field.type) for field in schema], schema)
        at = pa.concat_tables([at.cast(schema), end])
    return Advances(times_ms, is_new, at.combine_chunks())
