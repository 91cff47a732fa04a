"""Stream time and close time of each record, by the prefix scan (rules A2 to A4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from windows_pipeline.arrival.watermark import Read, Timeline, Unit
from windows_pipeline.compat.local_frame import small_frame
from windows_pipeline.engine.literals import literal
from windows_pipeline.kernels.time import NEVER_MS

_EPOCH = date(1970, 1, 1)
_MOST_LITERALS = 256
"""So many known times are part of a plan; more are tables that are joined."""


def target_of(day: date) -> int:
    """The number of a unit: days since 1970."""
    return (day - _EPOCH).days


def records_to_read(
    raw_events: DataFrame,
    timeline: Timeline,
    reads: Sequence[Read],
    delay_ms: int,
    *,
    is_new: Column | None = None,
) -> DataFrame:
    """The records that the target units' windows need, with the close time each met.

    Args:
        raw_events: `arrival_unit`, `source_partition`, `event_time`, `running_max`; other columns
            are kept.
        timeline: The units' stream times.
        reads: Which units' records each target needs; a record is given once a target.
        delay_ms: How far close times lie behind stream time (rule A3).
        is_new: Which records windows are computed for; those of the target unit if left out.

    Returns:
        The columns of raw_events, and `_computed_day` (int), `_is_new` (boolean),
        `_event_time_ms`, `_stream_time_ms`, `_close_time_ms` (bigint). In no order.
    """
    if is_new is None:
        is_new = F.col("_computed_day") == F.unix_date("arrival_unit")
    days = {read.arrival_unit for read in reads}
    units = [unit for unit in timeline.units if unit.day in days]
    wanted = raw_events.where(F.col("arrival_unit").isin(sorted(days)))
    timed = wanted.withColumn("_event_time_ms", F.unix_millis("event_time"))
    known = _with_literals if _are_few(reads, units) else _with_tables
    stream_time_ms = F.greatest(
        F.unix_millis("running_max"), F.coalesce("_before_ms", F.lit(NEVER_MS))
    )
    return (
        known(timed, units, reads)
        .withColumn("_is_new", is_new)
        # However late a record of the unit itself is, the unit has to say so.
        .where(F.col("_is_new") | (F.col("_event_time_ms") >= F.col("_from_ms")))
        .withColumn("_stream_time_ms", stream_time_ms)
        # A partition that wakes meets the close time that was in force (rule A4).
        .withColumn(
            "_close_time_ms", F.greatest("_stream_time_ms", "_watermark_ms") - F.lit(delay_ms)
        )
        .drop("_from_ms", "_watermark_ms", "_before_ms")
    )


def _are_few(reads: Sequence[Read], units: Sequence[Unit]) -> bool:
    """Whether what is known of the units fits a plan: one target, and few stream times."""
    wanted = {(read.target, read.from_ms) for read in reads}
    stream_times = sum(len(unit.stream_time_before_ms) for unit in units)
    return len(wanted) == 1 and len(units) + stream_times <= _MOST_LITERALS


def _with_literals(records: DataFrame, units: Sequence[Unit], reads: Sequence[Read]) -> DataFrame:
    """Adds the same columns as `_with_tables`, as literals of the plan: no join."""
    watermark_ms = {target_of(unit.day): _bigint(unit.watermark_before_ms) for unit in units}
    before_ms = {
        target_of(unit.day): _map_of({of: _bigint(ms) for of, ms in known.items()})
        for unit in units
        if (known := unit.stream_time_before_ms)
    }
    day, unknown = F.unix_date("arrival_unit"), F.lit(None).cast("bigint")
    of_day = F.try_element_at(_map_of(before_ms), day)
    return records.withColumns(
        {
            "_computed_day": F.lit(target_of(reads[0].target)),
            "_from_ms": literal(reads[0].from_ms, F.col("_event_time_ms")),
            "_watermark_ms": F.try_element_at(_map_of(watermark_ms), day) if units else unknown,
            "_before_ms": F.try_element_at(of_day, "source_partition") if before_ms else unknown,
        }
    )


def _bigint(number: int) -> Column:
    return F.lit(number).cast("bigint")


def _map_of(known: Mapping[int, Column] | Mapping[str, Column]) -> Column:
    return F.create_map(*[part for key, value in known.items() for part in (F.lit(key), value)])


def _with_tables(records: DataFrame, units: Sequence[Unit], reads: Sequence[Read]) -> DataFrame:
    """The same by joins; a record is given once a target."""
    spark = records.sparkSession
    plan = small_frame(
        spark,
        [(read.arrival_unit, target_of(read.target), read.from_ms) for read in reads],
        "arrival_unit date, _computed_day int, _from_ms bigint",
    )
    watermark = small_frame(
        spark,
        [(unit.day, unit.watermark_before_ms) for unit in units],
        "arrival_unit date, _watermark_ms bigint",
    )
    before = small_frame(
        spark,
        [
            (unit.day, partition, stream_time_ms)
            for unit in units
            for partition, stream_time_ms in unit.stream_time_before_ms.items()
        ],
        "arrival_unit date, source_partition string, _before_ms bigint",
    )
    return (
        records.join(F.broadcast(plan), "arrival_unit")
        .join(F.broadcast(watermark), "arrival_unit")
        .join(F.broadcast(before), ["arrival_unit", "source_partition"], "left")
    )
