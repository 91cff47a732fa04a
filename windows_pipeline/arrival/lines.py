"""The order of arrival of lines: files by name or time of writing, and lines as they stand (A1).

Records are numbered where they are read. A task reads parts of files, each from its first line to
its last, so its records are in order already, and nothing is sorted. What lies before each part is
added up on the driver, from a sum a part.
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

from windows_pipeline.arrival.order import PLACE
from windows_pipeline.arrival.ranges import RangedOrder, RangeSum, with_bases
from windows_pipeline.compat.numba_jit import compiled
from windows_pipeline.kernels.groups import group_starts
from windows_pipeline.sources.landed_columns import BLOCK, LINE

PART = "_part"
"""The column of the part, a bigint that no other part has."""
_NOTHING_MS = -(2**63)
"""The largest event time of no record."""


class PartOfFile(NamedTuple):
    """A part's place in the order of arrival."""

    file: str
    block: int


def in_line_order(judged: DataFrame) -> RangedOrder:
    """Gives what `in_arrival_order` gives, for files by name and lines as they stand (rule A1).

    Args:
        judged: What `judged_records` gives, with `_block` and `_line` as they were read.
    """
    cached = numbered_by_line(judged, "file").persist(StorageLevel.MEMORY_AND_DISK)
    return RangedOrder(with_bases(cached, PART, _sums(cached)).drop(BLOCK), cached)


def numbered_by_line(records: DataFrame, file: str) -> DataFrame:
    """Numbers the records of each part of a file, as if it were all there is.

    Args:
        records: `arrival_unit`, `source_partition` (null of a rejected record), `event_time`
            (bigint, ms),
            `_block`, `_line`, and others; those of a task in the order in which it read them.
        file: The column of the file's name.

    Returns:
        The records without `_line`, with `_part`, `offset` and `running_max` (bigint, ms); these
        two are null of rejected records.
    """
    added = (PART, "offset", "running_max")
    kept = [field for field in records.schema if field.name != LINE]
    schema = T.StructType([*kept, *(T.StructField(name, T.LongType()) for name in added)])
    return records.mapInArrow(partial(_numbered_batches, ["arrival_unit", file, BLOCK]), schema)


def _numbered_batches(
    within: list[str], batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """The records of a task with their numbers.

    Raises:
        RuntimeError: They are not as they were read.
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
            raise RuntimeError("landed records must be numbered in the order of their lines")
        code = _codes(batch.column("source_partition"), codes)
        if len(codes) > len(rows):
            more = max(len(codes), 2 * len(rows)) - len(rows)
            rows = np.concatenate((rows, np.zeros(more, np.int64)))
            largest_ms = np.concatenate((largest_ms, np.full(more, _NOTHING_MS)))
        if _named(batch, 0, within) != part:
            part_line = int(line[0])
            rows[:], largest_ms[:] = 0, _NOTHING_MS
        part_of = np.repeat(line[starts[:-1]], np.diff(starts))
        part_of[: starts[1]] = part_line
        time_ms = np.array(batch.column("event_time").fill_null(_NOTHING_MS), np.int64)
        offset, running_ms = _numbered(starts, code, time_ms, rows, largest_ms)
        part, part_line = _named(batch, batch.num_rows - 1, within), int(part_of[-1])
        last_line = int(line[-1])
        rejected = code < 0
        yield (
            batch.drop_columns([LINE])
            .append_column(PART, pa.array(part_of))
            .append_column("offset", pa.array(offset, mask=rejected))
            .append_column("running_max", pa.array(running_ms, mask=rejected))
        )


def _named(batch: pa.RecordBatch, row: int, within: list[str]) -> tuple[object, ...]:
    return tuple(batch.column(name)[row].as_py() for name in within)


def _codes(partitions: pa.Array, codes: dict[str, int]) -> np.ndarray:
    """A number for each record's source partition, the same in each batch; -1 where it has none."""
    encoded = partitions.dictionary_encode()
    known = [codes.setdefault(name, len(codes)) for name in encoded.dictionary.to_pylist()]
    own = np.array([*known, -1], np.int64)
    code: np.ndarray = own[np.array(encoded.indices.fill_null(len(known)), np.int64)]
    return code


@compiled
def _numbered(
    starts: np.ndarray,
    code: np.ndarray,
    time_ms: np.ndarray,
    rows: np.ndarray,
    largest_ms: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Numbers the records of each part by source partition; the first part goes on."""
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
    """What each part has, in the order of arrival."""
    parts = numbered.groupBy(PART, *PLACE).agg(
        F.count("*"), F.max("event_time"), F.min("file"), F.min(BLOCK)
    )
    found = ((PartOfFile(*row[5:]), RangeSum(*row[:5])) for row in parts.collect())
    return [of_part for _, of_part in sorted(found, key=lambda one: (one[1].arrival_unit, *one[0]))]
