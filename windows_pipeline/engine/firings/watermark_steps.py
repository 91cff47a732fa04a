"""Where stream time rose: what tells when a window fires for stream time (rules A1, A2, E2)."""

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
class Rises:
    """The records that raised stream time, in the order of arrival.

    Attributes:
        stream_time_ms: Stream time after each, ascending.
        is_new: Whether it came with the target unit.
        at: What names the record (the columns that order arrival); null for the end of input.
    """

    stream_time_ms: np.ndarray
    is_new: np.ndarray
    at: pa.Table

    def entry(self, stream_time_ms: np.ndarray, at: pa.Table) -> np.ndarray:
        """Before which rise each record came; that of the record itself, where it is one.

        Args:
            stream_time_ms: Stream time after each record.
            at: What names each record.
        """
        place = np.searchsorted(self.stream_time_ms, stream_time_ms)
        near = np.minimum(place, len(self.stream_time_ms) - 1)
        same = self.stream_time_ms[near] == stream_time_ms
        candidates = np.flatnonzero(same)
        rises = self.at.take(pa.array(near[candidates]))
        records = at.take(pa.array(candidates))
        is_rise = np.ones(len(candidates), np.bool_)
        for name in at.column_names:
            one, other = records.column(name), rises.column(name)
            both_null = pc.and_(pc.is_null(one), pc.is_null(other))
            equal = pc.or_(pc.fill_null(pc.equal(one, other), False), both_null)
            is_rise &= equal.to_numpy(zero_copy_only=False).astype(np.bool_)
        # A record that met a stream time without raising it came after the rise to it.
        place[candidates] += ~is_rise
        return place


def collect_rises(
    records: DataFrame, arrival: Sequence[str], grid_ms: int, *, input_ends: bool
) -> Mapping[int, Rises]:
    """Runs a Spark job that finds the rises of each target.

    Args:
        records: `_computed_day`, `_stream_time_ms`, the columns that order arrival, and `_is_new`
            if there are others.
        arrival: The columns that order arrival among records that met one stream time.
        grid_ms: Only the first rise in each multiple of this matters; 1 for all.
        input_ends: Whether stream time rises past everything after the last record.

    Returns:
        By target. A rise is some 16 bytes and its columns of arrival.
    """
    is_new = F.col("_is_new") if "_is_new" in records.columns else F.lit(True)
    in_order = F.struct("_stream_time_ms", *arrival, is_new.alias("_is_new"))
    # A record without an event time is refused where it is looked at.
    timed = records.where("_stream_time_ms IS NOT NULL")
    first = timed.groupBy("_computed_day", _cell(grid_ms).alias("cell")).agg(
        F.min(in_order).alias("r")
    )
    found = first.select("_computed_day", "r.*").toArrow()
    if not found.num_rows:
        return {}
    found = found.sort_by([("_computed_day", "ascending"), ("_stream_time_ms", "ascending")])
    targets = np.array(found.column("_computed_day"), np.int64)
    numbers, begins = np.unique(targets, return_index=True)
    ends = [*begins[1:], len(targets)]
    return {
        # Taken, not sliced: a slice would carry the rises of all targets to the workers.
        int(number): _rises(
            found.take(pa.array(np.arange(begin, end))), arrival, input_ends=input_ends
        )
        for number, begin, end in zip(numbers, begins, ends, strict=True)
    }


def _cell(grid_ms: int) -> Column:
    time_ms, grid = F.col("_stream_time_ms"), F.lit(grid_ms)
    return F.call_function("div", time_ms - F.pmod(time_ms, grid), grid)


def _rises(found: pa.Table, arrival: Sequence[str], *, input_ends: bool) -> Rises:
    times_ms = np.array(found.column("_stream_time_ms"), np.int64)
    is_new = np.array(found.column("_is_new"), np.bool_)
    at = found.select(list(arrival))
    if input_ends:
        times_ms, is_new = np.append(times_ms, END_OF_INPUT_MS), np.append(is_new, True)
        schema = pa.schema([field.with_nullable(True) for field in at.schema])
        end = pa.table([pa.nulls(1, field.type) for field in schema], schema)
        at = pa.concat_tables([at.cast(schema), end])
    return Rises(times_ms, is_new, at.combine_chunks())
