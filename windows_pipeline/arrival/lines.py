"""Numbers records in the order of files, by name or time of writing, and of their lines (rule A1).

The task that reads a part of a file numbers its records. It reads the part from the first line to
the last, so the records are in order and nothing is sorted. The driver collects one sum for each
part; a part's numbers begin after the sums of the parts before it.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from windows_pipeline.arrival.order import ORDERED_WITHIN
from windows_pipeline.arrival.ranges import RangedOrder, RangeSum, freed_on_error, with_bases
from windows_pipeline.compat.numba_jit import compiled
from windows_pipeline.kernels.groups import group_starts
from windows_pipeline.sources.landed_columns import BLOCK, LINE

PART = "_part"
"""The column of a record's part of a file, a bigint; each part has its own value."""
_NOTHING_MS = -(2**63)
"""The running maximum before the first record."""


class PartOfFile(NamedTuple):
    """What orders the parts of files: the file, then the part within it."""

    file: str
    block: int


def in_line_order(judged: DataFrame) -> RangedOrder:
    """Numbers records as `in_arrival_order` does, by file name and line (rule A1).

    Args:
        judged: The frame that `judged_records` returns, with `_block` and `_line` of the reader.
    """
    cached = numbered_by_line(judged, "file").persist(StorageLevel.MEMORY_AND_DISK)
    with freed_on_error(cached):
        sums = _sums(cached)
    return RangedOrder(with_bases(cached, PART, sums).drop(BLOCK), cached)


def numbered_by_line(records: DataFrame, file: str) -> DataFrame:
    """Numbers the records within each part of a file.

    Args:
        records: `arrival_unit`, `source_partition` (null for a rejected record), `_event_time_ms`
            (bigint, ms), `_block`, `_line`, and others; each task has its records in the order in
            which it read them.
        file: The column of the file's name.

    Returns:
        The records without `_line`, with `_part`, `offset` and `_running_max_ms` (bigint, ms).
        `offset` and `_running_max_ms` are null for rejected records.
    """
    added = (PART, "offset", "_running_max_ms")
    carried = [field for field in records.schema if field.name != LINE]
    schema = T.StructType([*carried, *(T.StructField(name, T.LongType()) for name in added)])
    return records.mapInArrow(partial(_numbered_batches, ["arrival_unit", file, BLOCK]), schema)


def _numbered_batches(
    within: list[str], batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Adds `_part`, `offset` and `_running_max_ms` to the records of a task.

    Raises:
        RuntimeError: The records are not in the order in which they were read.
    """
    codes: dict[str, int] = {}
    rows, largest_ms = np.zeros(1, np.int64), np.full(1, _NOTHING_MS)
    part: tuple[object, ...] = ()
    part_line = last_line = -1
    for batch in batches:
        if not batch.num_rows:
            continue
        starts = group_starts(pa.Table.from_batches([batch]), within)
        line = np.array(batch.column(LINE), np.int64)
        if line[0] <= last_line or (np.diff(line) <= 0).any():
            raise RuntimeError(
                f"{LINE} must increase within a task, but does not: records were moved between "
                "reading and numbering; number them directly after reading"
            )
        code = _codes(batch.column("source_partition"), codes)
        if len(codes) > len(rows):
            more = max(len(codes), 2 * len(rows)) - len(rows)
            rows = np.concatenate((rows, np.zeros(more, np.int64)))
            largest_ms = np.concatenate((largest_ms, np.full(more, _NOTHING_MS)))
        if _key(batch, 0, within) != part:
            part_line = int(line[0])
            rows[:], largest_ms[:] = 0, _NOTHING_MS
        part_of = np.repeat(line[starts[:-1]], np.diff(starts))
        part_of[: starts[1]] = part_line
        time_ms = np.array(batch.column("_event_time_ms").fill_null(_NOTHING_MS), np.int64)
        offset, running_ms = _numbered(starts, code, time_ms, rows, largest_ms)
        part, part_line = _key(batch, batch.num_rows - 1, within), int(part_of[-1])
        last_line = int(line[-1])
        rejected = code < 0
        yield (
            batch.drop_columns([LINE])
            .append_column(PART, pa.array(part_of))
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
    """Numbers records by part and source partition; the first part continues the batch before."""
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


def _sums(numbered: DataFrame) -> list[RangeSum]:
    """The sums of the parts, in the order of arrival."""
    parts = numbered.groupBy(PART, *ORDERED_WITHIN).agg(
        F.count("*"), F.max("_event_time_ms"), F.min("file"), F.min(BLOCK)
    )
    found = ((PartOfFile(*row[5:]), RangeSum(*row[:5])) for row in parts.collect())
    in_order = sorted(found, key=lambda part: (part[1].arrival_unit, *part[0]))
    return [of_part for _, of_part in in_order]
