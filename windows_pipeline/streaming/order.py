"""The order of arrival within a micro-batch, after what came before it (rules A1, A2).

Records are numbered within stretches of the order, each of which a task can take: a part of a
landed file, a file of a Delta table, a range of a topic's offsets, or, of files that are large, a
range of the whole order. A sum a stretch goes to the driver, which adds up what lies before each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import date
from typing import NamedTuple

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from windows_pipeline.arrival.lines import PART, numbered_by_line
from windows_pipeline.arrival.order import PLACE, in_arrival_order, order_of_arrival
from windows_pipeline.arrival.ranges import RANGE, numbered_in_ranges
from windows_pipeline.compat.local_frame import small_frame
from windows_pipeline.kernels.time import NEVER_MS
from windows_pipeline.sources.landed_columns import BLOCK
from windows_pipeline.sources.tuning import DEFAULT_TUNING, Tuning
from windows_pipeline.streaming.standing import Part, Standing

PARTITION, OFFSET = "_stream_partition", "_stream_offset"
"""The columns of a source that has partitions and offsets of its own; those that it declares begin
with a letter."""
FILE = "_stream_file"
"""The column of one that has files: a name that no other file of the micro-batch has."""
InFiles = Callable[[Iterable[str]], Sequence[str]]
"""Puts names of files in the order of arrival."""
_STRETCH, _OFFSET_BY, _KNOWN_MS = "_stretch", "_offset_by", "_known_ms"
"""Columns for a while; a source's begin with a letter."""
_AFTER_RANGE = "/"
"""Stands between a range's number and the name of a file."""


class InOrder(NamedTuple):
    """A micro-batch in the order of arrival.

    Attributes:
        records: What was judged, unordered, with `offset` and `running_max` (bigint, ms) as
            `in_arrival_order` gives them, over all that came of the unit and source partition.
            Where the stream time in force was later than that of a record's own partition,
            `running_max` is the former: the decision stays with the record (rule A4). Computed
            already, but for a small join.
        parts: What there is of each unit and source partition.
        rejected: How many records were rejected, by unit.
        files: The names of files that have records, where no arrival column orders them.
    """

    records: DataFrame
    parts: list[Part]
    rejected: dict[date, int]
    files: set[str]


class _Sum(NamedTuple):
    """What a stretch holds; offsets are a topic's own, or begin anywhere."""

    arrival_unit: date
    source_partition: str | None
    stretch: str | int
    first_offset: int | None
    last_offset: int | None
    accepted: int
    max_event_time_ms: int | None
    rejected: int
    file: str = ""
    place: int = 0
    """Of a stretch of a file, where it stands in it."""


class _Base(NamedTuple):
    """What lies before a stretch: what makes its offsets those of its day, and the largest time."""

    arrival_unit: date
    source_partition: str
    stretch: str | int
    offset_by: int
    known_ms: int | None


def in_stream_order(
    judged: DataFrame,
    arrival: str | None,
    standing: Standing,
    *,
    by_line: bool = False,
    in_files: InFiles = sorted,
    ranges: int | None = None,
    tuning: Tuning = DEFAULT_TUNING,
) -> InOrder:
    """Numbers the records of a micro-batch and gives each the stream time of its unit.

    Args:
        judged: What `judged_records` gives, with `_stream_partition` (text) and
            `_stream_offset` (bigint) where the source has its own, else `_stream_file` (text); for
            lines also `_block` and `_line`.
        arrival: The arrival column's name; None for no such column.
        standing: What came before.
        by_line: Whether records come in the order of their files' lines.
        in_files: Orders the files, where no arrival column does.
        ranges: Of a source that has files, how many tasks sort what came; None for one a file, or
            a unit and source partition where an arrival column orders them. Lines need none.
        tuning: How many offsets of a topic a task takes.
    """
    has_offsets = OFFSET in judged.columns
    if has_offsets:
        computed = _within_offsets(judged, tuning.offsets_per_stretch).localCheckpoint()
        sums = sorted(_sums(computed), key=lambda one: one.stretch)
    else:
        if by_line:
            computed, unordered = _within_parts(judged)
        elif ranges is not None:
            computed, unordered = _within_ranges(judged, arrival, ranges)
        else:
            computed, unordered = _within_files(judged, arrival)
        # An arrival column has all records in one file, as it were.
        sums = _by_file(unordered, in_files if arrival is None else sorted)
    bases = list(_bases(sums, standing, counts_on=not has_offsets))
    kind = computed.schema[_STRETCH].dataType.simpleString()
    schema = (
        f"arrival_unit date, source_partition string, {_STRETCH} {kind}, "
        f"{_OFFSET_BY} bigint, {_KNOWN_MS} bigint"
    )
    before = small_frame(judged.sparkSession, bases, schema)
    records = (
        # Rejected records have no place, but of a topic, and keep what they have.
        computed.join(F.broadcast(before), [*PLACE, _STRETCH], "left")
        .withColumn("offset", F.col("offset") + F.coalesce(_OFFSET_BY, F.lit(0)))
        .withColumn("running_max", F.greatest("running_max", _KNOWN_MS))
        .drop(_STRETCH, _OFFSET_BY, _KNOWN_MS)
    )
    rejected: dict[date, int] = {}
    for one in sums:
        if one.rejected:
            rejected[one.arrival_unit] = rejected.get(one.arrival_unit, 0) + one.rejected
    return InOrder(records, _parts(sums, bases), rejected, {one.file for one in sums})


def _within_offsets(judged: DataFrame, offsets_per_stretch: int) -> DataFrame:
    """A topic's records: its own offsets, and the running maxima of ranges of them."""
    own = judged.withColumns(
        {
            "source_partition": F.col(PARTITION),
            "offset": F.col(OFFSET),
            _STRETCH: F.expr(f"{OFFSET} DIV {offsets_per_stretch}"),
        }
    )
    so_far = (
        Window.partitionBy(*PLACE, _STRETCH, F.col("reason").isNull())
        .orderBy("offset")
        .rowsBetween(Window.unboundedPreceding, Window.currentRow)
    )
    running_max = F.max("event_time").over(so_far)
    return own.withColumn("running_max", running_max).drop(PARTITION, OFFSET)


def _within_parts(judged: DataFrame) -> tuple[DataFrame, list[_Sum]]:
    """Records numbered where they are read, within each part of a file."""
    numbered = numbered_by_line(judged, FILE).withColumnRenamed(PART, _STRETCH)
    computed = numbered.localCheckpoint()
    return computed.drop(FILE, BLOCK), _sums(computed, F.first(FILE), F.first(BLOCK))


def _within_files(judged: DataFrame, arrival: str | None) -> tuple[DataFrame, list[_Sum]]:
    """Records numbered within their file; where an arrival column orders them, in one stretch."""
    of_file = F.col(FILE) if arrival is None else F.lit("")
    by_file = judged.withColumn(_STRETCH, of_file).drop(FILE)
    computed = in_arrival_order(by_file, arrival, _STRETCH).localCheckpoint()
    return computed, _sums(computed, F.first(_STRETCH))


def _within_ranges(
    judged: DataFrame, arrival: str | None, ranges: int
) -> tuple[DataFrame, list[_Sum]]:
    """Records numbered within ranges, which an arrival column cuts, or files and their order."""
    order = order_of_arrival([name for name in judged.columns if name != FILE], arrival)
    by_file = judged if arrival is None else judged.withColumn(FILE, F.lit(""))
    within = numbered_in_ranges(by_file, [*PLACE, FILE], order, ranges)
    stretch = F.concat_ws(_AFTER_RANGE, F.col(RANGE).cast("string"), FILE)
    computed = within.withColumn(_STRETCH, stretch).localCheckpoint()
    return computed.drop(RANGE, FILE), _sums(computed, F.first(FILE), F.first(RANGE))


def _by_file(sums: list[_Sum], in_files: InFiles) -> list[_Sum]:
    """In the order of arrival."""
    rank = {name: number for number, name in enumerate(in_files({one.file for one in sums}))}
    return sorted(sums, key=lambda one: (rank[one.file], one.place))


def _sums(numbered: DataFrame, *of_file: Column) -> list[_Sum]:
    """What each stretch holds, unordered; on request in which file, and where in it."""
    accepted = F.col("reason").isNull()
    rows = numbered.groupBy(*PLACE, _STRETCH).agg(
        # Of a topic, rejected records have offsets, too.
        F.min("offset"),
        F.max("offset"),
        F.count_if(accepted),
        F.max(F.when(accepted, F.col("event_time"))),
        F.count_if(~accepted),
        *of_file,
    )
    return [_Sum(*row) for row in rows.collect()]


def _bases(sums: Iterable[_Sum], standing: Standing, *, counts_on: bool) -> Iterable[_Base]:
    """Adds up what lies before each stretch: of the micro-batch, and of its day before that."""
    last_unit = standing.last_unit
    before = {} if last_unit is None else standing.of_unit(last_unit)
    rows: dict[tuple[date, str], int] = {}
    known_ms: dict[tuple[date, str], int] = {}
    for one in sums:
        if one.source_partition is None:
            continue
        place = (one.arrival_unit, one.source_partition)
        if place not in rows:
            of_unit = before.get(one.source_partition) if one.arrival_unit == last_unit else None
            last_offset = None if of_unit is None or not counts_on else of_unit.last_offset
            rows[place] = 0 if last_offset is None else last_offset + 1
            largest_ms = None if of_unit is None else of_unit.max_event_time_ms
            own_ms = standing.stream_time_ms.get(one.source_partition, NEVER_MS)
            decided_ms = standing.watermark_ms if standing.watermark_ms > own_ms else NEVER_MS
            known_ms[place] = max(NEVER_MS if largest_ms is None else largest_ms, decided_ms)
        known = known_ms[place]
        first = one.first_offset if counts_on and one.first_offset is not None else 0
        offset_by = rows[place] - first
        yield _Base(*place, one.stretch, offset_by, None if known == NEVER_MS else known)
        if counts_on:
            rows[place] += one.accepted
        if one.max_event_time_ms is not None:
            known_ms[place] = max(known, one.max_event_time_ms)


def _parts(sums: Iterable[_Sum], bases: Iterable[_Base]) -> list[Part]:
    """What came of each unit and source partition."""
    offset_by = {base[:3]: base.offset_by for base in bases}
    parts: dict[tuple[date, str], Part] = {}
    for one in sums:
        if one.source_partition is None or one.first_offset is None or one.last_offset is None:
            continue
        place = (one.arrival_unit, one.source_partition)
        by = offset_by[*place, one.stretch]
        of_stretch = Part(
            *place,
            one.first_offset + by,
            one.last_offset + by,
            one.accepted,
            one.max_event_time_ms,
            one.rejected,
        )
        parts[place] = parts[place].with_next(of_stretch) if place in parts else of_stretch
    return list(parts.values())
