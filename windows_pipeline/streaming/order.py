"""Numbers the records of a micro-batch in order of arrival (rules A1, A2).

The order is cut into stretches, and a task numbers the records of each: a part of a landed file, a
file of a Delta table, a range of a topic's offsets, or a range of the whole order of large files.
The driver collects a sum per stretch, and adds to each stretch what lies before it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import date
from operator import attrgetter
from typing import NamedTuple

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from windows_pipeline.arrival.numbering import (
    STRETCH,
    StretchBase,
    StretchSum,
    bases_of,
    numbered_in_stretches,
    with_bases,
)
from windows_pipeline.arrival.order import ORDERED_WITHIN, in_arrival_order, order_of_arrival
from windows_pipeline.arrival.ranges import numbered_in_ranges
from windows_pipeline.arrival.watermark import largest
from windows_pipeline.kernels.time import NEVER_MS
from windows_pipeline.sources.landed_columns import AMBIGUOUS, BLOCK
from windows_pipeline.sources.tuning import INGEST_TUNING, IngestTuning
from windows_pipeline.streaming.log_state import BatchPart, LogState

PARTITION, OFFSET = "_stream_partition", "_stream_offset"
"""Columns for sources that have partitions and offsets of their own, such as Kafka. Declared
columns begin with a letter."""
FILE = "_stream_file"
"""The column for sources of files: a name that is unique among the micro-batch's files."""
InFiles = Callable[[Iterable[str]], Sequence[str]]
"""Sorts names of files by order of arrival."""


class InOrder(NamedTuple):
    """A micro-batch in the order of arrival.

    Attributes:
        records: The checked records, unordered, with `offset` and `_running_max_ms` (bigint) as
            `in_arrival_order` returns them, over all records of the arrival unit and source
            partition. If the watermark was later than the partition's stream time,
            `_running_max_ms` is at least the watermark: the decision stays with the record (rule
            A4). Computed already, but for a small join.
        parts: The records of each arrival unit and source partition, summed up.
        rejected: How many records were rejected, by arrival unit.
        files: The names of the files that have records, unless an arrival column orders them.
        ambiguous: How many records have a local time that occurs twice.
    """

    records: DataFrame
    parts: list[BatchPart]
    rejected: dict[date, int]
    files: set[str]
    ambiguous: int


class _Sum(NamedTuple):
    """The sums of a stretch; the offsets are a topic's, or relative to the stretch."""

    arrival_unit: date
    source_partition: str | None
    stretch: str | int
    first_offset: int | None
    last_offset: int | None
    accepted: int
    max_event_time_ms: int | None
    rejected: int
    ambiguous: int
    rejected_ambiguous: int
    file: str = ""
    position: int = 0
    """The position of the stretch in its file."""


def in_stream_order(
    judged: DataFrame,
    arrival: str | None,
    state: LogState,
    *,
    by_line: bool = False,
    in_files: InFiles = sorted,
    ranges: int | None = None,
    tuning: IngestTuning = INGEST_TUNING,
) -> InOrder:
    """Numbers the records of a micro-batch, and adds the stream time that each record met.

    Args:
        judged: The columns of `judged_records`, with `_stream_partition` (text) and
            `_stream_offset` (bigint) if the source has offsets, else with `_stream_file` (text);
            for lines also `_block` and `_line`.
        arrival: The arrival column's name; None for no such column.
        state: The log before the micro-batch.
        by_line: Whether records come in the order of their files' lines.
        in_files: Sorts the files, if no arrival column orders the records.
        ranges: For a source of files, how many tasks sort the records; None for a task per file,
            or per arrival unit and source partition if there is an arrival column. Lines need no
            sort.
        tuning: How many offsets of a topic a task takes.
    """
    has_offsets = OFFSET in judged.columns
    if has_offsets:
        computed = _within_offsets(judged, tuning.offsets_per_stretch).localCheckpoint()
        sums = sorted(_sums(computed), key=attrgetter("stretch"))
    else:
        if by_line:
            computed, unordered = _within_parts(judged)
        elif ranges is not None:
            computed, unordered = _within_ranges(judged, arrival, ranges)
        else:
            computed, unordered = _within_files(judged, arrival)
        # With an arrival column, all records count as of one file.
        sums = _by_file(unordered, in_files if arrival is None else sorted)
    accepted = [stretch for stretch in sums if stretch.source_partition is not None]
    before = _before(accepted, state, counts_on=not has_offsets)
    to_add_up: list[StretchSum] = [
        # A topic's offsets are numbers already.
        (of.stretch, *of[:2], 0 if has_offsets else of.accepted, of.max_event_time_ms)
        for of in accepted
    ]
    bases = bases_of(to_add_up, before)
    # Rejected records have no offset of their own, but for a topic's, and find no base.
    records = with_bases(computed, bases)
    rejected: dict[date, int] = {}
    for stretch in sums:
        if stretch.rejected:
            arrival_unit = stretch.arrival_unit
            rejected[arrival_unit] = rejected.get(arrival_unit, 0) + stretch.rejected
    ambiguous = sum(stretch.ambiguous + stretch.rejected_ambiguous for stretch in sums)
    files = {stretch.file for stretch in sums}
    return InOrder(records, _parts(accepted, bases), rejected, files, ambiguous)


def _within_offsets(judged: DataFrame, offsets_per_stretch: int) -> DataFrame:
    """A topic's records with its offsets, and running maxima within ranges of offsets."""
    with_offsets = judged.withColumns(
        {
            "source_partition": F.col(PARTITION),
            "offset": F.col(OFFSET),
            STRETCH: F.expr(f"{OFFSET} DIV {offsets_per_stretch}"),
        }
    )
    so_far = (
        Window.partitionBy(*ORDERED_WITHIN, STRETCH, F.col("reason").isNull())
        .orderBy("offset")
        .rowsBetween(Window.unboundedPreceding, Window.currentRow)
    )
    running_max = F.max("_event_time_ms").over(so_far)
    return with_offsets.withColumn("_running_max_ms", running_max).drop(PARTITION, OFFSET)


def _within_parts(judged: DataFrame) -> tuple[DataFrame, list[_Sum]]:
    """Records that tasks number as they read them, within each part of a file."""
    computed = numbered_in_stretches(judged, ["arrival_unit", FILE, BLOCK]).localCheckpoint()
    return computed.drop(FILE, BLOCK), _sums(computed, F.first(FILE), F.first(BLOCK))


def _within_files(judged: DataFrame, arrival: str | None) -> tuple[DataFrame, list[_Sum]]:
    """Records numbered within their file, or in one stretch if an arrival column orders them."""
    of_file = F.col(FILE) if arrival is None else F.lit("")
    by_file = judged.withColumn(STRETCH, of_file).drop(FILE)
    computed = in_arrival_order(by_file, arrival, STRETCH).localCheckpoint()
    return computed, _sums(computed, F.first(STRETCH))


def _within_ranges(
    judged: DataFrame, arrival: str | None, ranges: int
) -> tuple[DataFrame, list[_Sum]]:
    """Records numbered within ranges of the whole order, by arrival column or by file."""
    order = order_of_arrival([name for name in judged.columns if name != FILE], arrival)
    by_file = judged if arrival is None else judged.withColumn(FILE, F.lit(""))
    within = numbered_in_ranges(by_file, [*ORDERED_WITHIN, FILE], order, ranges)
    computed = within.localCheckpoint()
    return computed.drop(FILE), _sums(computed, F.first(FILE), F.first(STRETCH))


def _by_file(sums: list[_Sum], in_files: InFiles) -> list[_Sum]:
    """Sorts stretches by order of arrival."""
    files = in_files({stretch.file for stretch in sums})
    rank = {name: number for number, name in enumerate(files)}
    return sorted(sums, key=lambda stretch: (rank[stretch.file], stretch.position))


def _sums(numbered: DataFrame, *of_file: Column) -> list[_Sum]:
    """The sums of each stretch, unordered; `of_file` adds its file and the position in it."""
    accepted = F.col("reason").isNull()
    is_ambiguous = F.col(AMBIGUOUS) if AMBIGUOUS in numbered.columns else F.lit(False)
    rows = numbered.groupBy(*ORDERED_WITHIN, STRETCH).agg(
        # A topic's rejected records have offsets, too.
        F.min("offset"),
        F.max("offset"),
        F.count_if(accepted),
        F.max(F.when(accepted, F.col("_event_time_ms"))),
        F.count_if(~accepted),
        F.count_if(accepted & is_ambiguous),
        F.count_if(~accepted & is_ambiguous),
        *of_file,
    )
    return [_Sum(*row) for row in rows.collect()]


def _before(
    sums: Iterable[_Sum], state: LogState, *, counts_on: bool
) -> dict[tuple[date, str | None], tuple[int, int | None]]:
    """What the log has of each arrival unit and source partition: rows, latest event time (ms)."""
    last = state.last_arrival_unit
    logged = {} if last is None else state.of_arrival_unit(last)
    before: dict[tuple[date, str | None], tuple[int, int | None]] = {}
    for arrival_unit, partition in {stretch[:2] for stretch in sums}:
        if partition is None:
            continue
        row = logged.get(partition) if arrival_unit == last else None
        offset = None if row is None or not counts_on else row.last_offset
        own_ms = state.stream_time_ms.get(partition, NEVER_MS)
        decided_ms = state.watermark_ms if state.watermark_ms > own_ms else None
        latest_ms = largest(None if row is None else row.max_event_time_ms, decided_ms)
        before[arrival_unit, partition] = (0 if offset is None else offset + 1, latest_ms)
    return before


def _parts(sums: Iterable[_Sum], bases: Iterable[StretchBase]) -> list[BatchPart]:
    """The records of each arrival unit and source partition, summed up."""
    rows_before = {base[:3]: base[3] for base in bases}
    parts: dict[tuple[date, str | None], BatchPart] = {}
    for stretch in sums:
        if stretch.first_offset is None or stretch.last_offset is None:
            continue
        partition = (stretch.arrival_unit, stretch.source_partition)
        by = rows_before[stretch.stretch, *partition]
        of_stretch = BatchPart(
            *partition,
            stretch.first_offset + by,
            stretch.last_offset + by,
            stretch.accepted,
            stretch.max_event_time_ms,
            stretch.rejected,
            stretch.ambiguous,
        )
        parts[partition] = (
            parts[partition].with_next(of_stretch) if partition in parts else of_stretch
        )
    return list(parts.values())
