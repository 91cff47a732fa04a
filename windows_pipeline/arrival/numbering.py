"""Numbers records within stretches of the order of arrival, and adds what precedes them (A1, A2).

A stretch is a part of a file, or a part of a range of sorted records. A task has its stretches one
after the other, and numbers the records of each in one pass. The driver collects one sum for each
stretch, and the numbers of a stretch begin after the sums of those before it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date
from functools import partial
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from windows_pipeline.arrival.order import ORDERED_WITHIN
from windows_pipeline.arrival.watermark import largest
from windows_pipeline.compat.local_frame import small_frame
from windows_pipeline.compat.numba_jit import compiled
from windows_pipeline.compat.python_workers import in_workers
from windows_pipeline.kernels.groups import group_starts
from windows_pipeline.kernels.order import require_order
from windows_pipeline.sources.landed_columns import LINE

STRETCH = "_stretch"
"""The column of a record's stretch."""
_ROWS_BEFORE, _MAX_BEFORE = "_rows_before", "_max_before"
_NOTHING_MS = -(2**63)
"""The running maximum before the first record."""


class RangedOrder(NamedTuple):
    """Records in the order of arrival.

    Attributes:
        records: The frame that `in_arrival_order` returns.
        cached: The persisted frame behind `records`; the caller unpersists it.
    """

    records: DataFrame
    cached: DataFrame


StretchSum = tuple[int | str, date, str | None, int, int | None]
"""A stretch's part of an arrival unit and source partition: stretch, arrival unit, source
partition, row count, latest event time (ms)."""
StretchBase = tuple[int | str, date, str | None, int, int | None]
"""What precedes such a part in its arrival unit and source partition, in the same order."""


@contextmanager
def freed_on_error(cached: DataFrame) -> Iterator[None]:
    """Frees a cached frame if the block raises an error.

    Spark answers a later read of files with the same names from the frame, even if the files were
    changed since.
    """
    try:
        yield
    except BaseException:
        cached.unpersist()
        raise


def numbered_in_stretches(
    records: DataFrame, within: Sequence[str], sorted_by: Sequence[str] = ()
) -> DataFrame:
    """Numbers the records within each stretch.

    Args:
        records: `arrival_unit`, `source_partition` (null for a rejected record), `_event_time_ms`
            (bigint, ms), `_line` (bigint, which increases within a task), and others; each task
            has its records in the order of arrival.
        within: A stretch ends where the value of one of these columns changes.
        sorted_by: The columns that tasks have sorted the records by, if they did.

    Returns:
        The records without `_line`, with `_stretch` (bigint: the `_line` of its first record),
        `offset` and `_running_max_ms` (bigint, ms). `offset` and `_running_max_ms` are null for
        rejected records.
    """
    added = (STRETCH, "offset", "_running_max_ms")
    carried = [field for field in records.schema if field.name != LINE]
    schema = T.StructType([*carried, *(T.StructField(name, T.LongType()) for name in added)])
    numbered = partial(_numbered_batches, list(within), list(sorted_by))
    return in_workers(records, numbered, schema)


def in_whole_order(cached: DataFrame, *place: Column) -> RangedOrder:
    """Turns numbers within stretches into numbers within arrival units and source partitions.

    Args:
        cached: The persisted frame that `numbered_in_stretches` returns. It is freed on an error.
        place: Aggregates that order the stretches of an arrival unit, before `_stretch` does.
    """
    with freed_on_error(cached):
        within = cached.groupBy(STRETCH, *ORDERED_WITHIN)
        sums = within.agg(F.count("*"), F.max("_event_time_ms"), *place).collect()
    in_order = sorted(sums, key=lambda row: (row[1], *row[5:], row[0]))
    bases = bases_of((row[0], row[1], row[2], row[3], row[4]) for row in in_order)
    return RangedOrder(with_bases(cached, bases), cached)


def bases_of(
    sums: Iterable[StretchSum],
    before: Mapping[tuple[date, str | None], tuple[int, int | None]] | None = None,
) -> list[StretchBase]:
    """Adds up earlier stretches' sums, for each arrival unit and source partition that continues.

    Args:
        sums: The sums of the stretches, in the order of arrival.
        before: Row count and latest event time (ms) of what precedes all stretches.
    """
    so_far = dict(before or {})
    bases = []
    for stretch, arrival_unit, partition, rows, latest_ms in sums:
        key = (arrival_unit, partition)
        if key in so_far:
            bases.append((stretch, *key, *so_far[key]))
        rows_before, before_ms = so_far.get(key, (0, None))
        so_far[key] = rows_before + rows, largest(before_ms, latest_ms)
    return bases


def with_bases(numbered: DataFrame, bases: Iterable[StretchBase]) -> DataFrame:
    """Adds to the numbers within stretches what precedes each stretch.

    Args:
        numbered: Records with `_stretch`, which is dropped, and `offset` and `_running_max_ms`
            (ms), counted within their stretch.
        bases: What precedes each stretch; nothing precedes a stretch without a base.
    """
    kind = numbered.schema[STRETCH].dataType.simpleString()
    before = small_frame(
        numbered.sparkSession,
        bases,
        f"{STRETCH} {kind}, arrival_unit date, source_partition string, {_ROWS_BEFORE} bigint, "
        f"{_MAX_BEFORE} bigint",
    )
    return (
        numbered.join(F.broadcast(before), [STRETCH, *ORDERED_WITHIN], "left")
        .withColumn("offset", F.col("offset") + F.coalesce(_ROWS_BEFORE, F.lit(0)))
        .withColumn("_running_max_ms", F.greatest("_running_max_ms", _MAX_BEFORE))
        .drop(STRETCH, _ROWS_BEFORE, _MAX_BEFORE)
    )


def _numbered_batches(
    within: list[str], sorted_by: list[str], batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Adds `_stretch`, `offset` and `_running_max_ms` to the records of a task.

    Raises:
        RuntimeError: The records are not in the order in which they were read or sorted.
    """
    codes: dict[str, int] = {}
    rows, largest_ms = np.zeros(1, np.int64), np.full(1, _NOTHING_MS)
    stretch: tuple[object, ...] = ()
    first_line = last_line = -1
    last: list[pa.RecordBatch] = []
    for batch in batches:
        if not batch.num_rows:
            continue
        if sorted_by:
            with_last = pa.Table.from_batches([*last, batch.select(sorted_by)])
            require_order(with_last, np.array([0, with_last.num_rows]), sorted_by)
            last = [batch.select(sorted_by).slice(batch.num_rows - 1)]
        starts = group_starts(pa.Table.from_batches([batch]), within)
        line = np.array(batch.column(LINE), np.int64)
        if line[0] <= last_line or (np.diff(line) <= 0).any():
            raise RuntimeError(
                f"{LINE} must increase within a task, but does not: records were moved between "
                "reading or sorting and numbering; number them directly after it"
            )
        code = _codes(batch.column("source_partition"), codes)
        if len(codes) > len(rows):
            more = max(len(codes), 2 * len(rows)) - len(rows)
            rows = np.concatenate((rows, np.zeros(more, np.int64)))
            largest_ms = np.concatenate((largest_ms, np.full(more, _NOTHING_MS)))
        if _key(batch, 0, within) != stretch:
            first_line = int(line[0])
            rows[:], largest_ms[:] = 0, _NOTHING_MS
        stretch_of = np.repeat(line[starts[:-1]], np.diff(starts))
        stretch_of[: starts[1]] = first_line
        time_ms = np.array(batch.column("_event_time_ms").fill_null(_NOTHING_MS), np.int64)
        offset, running_ms = _numbered(starts, code, time_ms, rows, largest_ms)
        stretch, first_line = _key(batch, batch.num_rows - 1, within), int(stretch_of[-1])
        last_line = int(line[-1])
        rejected = code < 0
        yield (
            batch.drop_columns([LINE])
            .append_column(STRETCH, pa.array(stretch_of))
            .append_column("offset", pa.array(offset, mask=rejected))
            .append_column("_running_max_ms", pa.array(running_ms, mask=rejected))
        )


def _key(batch: pa.RecordBatch, row: int, within: list[str]) -> tuple[object, ...]:
    return tuple(batch.column(name)[row].as_py() for name in within)


def _codes(partitions: pa.Array, codes: dict[str, int]) -> np.ndarray:
    """The code of each record's source partition, equal in all batches; -1 for no partition."""
    encoded = partitions.dictionary_encode()
    known = [codes.setdefault(name, len(codes)) for name in encoded.dictionary.to_pylist()]
    with_none = np.array([*known, -1], np.int64)
    code: np.ndarray = with_none[np.array(encoded.indices.fill_null(len(known)), np.int64)]
    return code


@compiled
def _numbered(
    starts: np.ndarray,
    code: np.ndarray,
    time_ms: np.ndarray,
    rows: np.ndarray,
    largest_ms: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Numbers records by stretch and source partition; the first continues the batch before."""
    offset = np.zeros(len(code), np.int64)
    running_ms = np.zeros(len(code), np.int64)
    for run in range(len(starts) - 1):
        if run > 0:
            rows[:] = 0
            largest_ms[:] = _NOTHING_MS
        for record in range(starts[run], starts[run + 1]):
            partition = code[record]
            if partition < 0:
                continue
            largest_ms[partition] = max(largest_ms[partition], time_ms[record])
            offset[record], running_ms[record] = rows[partition], largest_ms[partition]
            rows[partition] += 1
    return offset, running_ms
