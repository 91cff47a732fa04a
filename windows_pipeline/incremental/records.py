"""Adds stream time and close time to the records that windows need (rules A2 to A4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from windows_pipeline.arrival.watermark import ArrivalUnit, Read, Timeline
from windows_pipeline.compat.local_frame import small_frame
from windows_pipeline.engine.literals import literal
from windows_pipeline.kernels.time import NEVER_MS
from windows_pipeline.storage.instants import timestamp_to_ms
from windows_pipeline.text.instants import day_number

_MOST_LITERALS = 256
"""The most arrival units and stream times that are literals of a plan; more are joined tables."""


def records_to_read(
    raw_events: DataFrame,
    timeline: Timeline,
    reads: Sequence[Read],
    delay_ms: int,
    *,
    is_new: Column | None = None,
) -> DataFrame:
    """Returns the records that windows of some computed days need, with their close times.

    Args:
        raw_events: `arrival_unit`, `source_partition`, `event_time`, `running_max`, and other
            columns, which are carried along.
        timeline: The stream times and watermarks of the arrival units.
        reads: The arrival units whose records each computed day needs. A record is returned once
            for each computed day that needs it.
        delay_ms: Close time is stream time less this delay (rule A3).
        is_new: Which records are new to the computed day; None for the records of its own arrival
            unit.

    Returns:
        The columns of raw_events, and `_computed_day` (int), `_is_new` (boolean),
        `_event_time_ms`, `_stream_time_ms`, `_close_time_ms` (bigint). In no order.
    """
    if is_new is None:
        is_new = F.col("_computed_day") == F.unix_date("arrival_unit")
    days = {read.arrival_unit for read in reads}
    arrival_units = [
        arrival_unit for arrival_unit in timeline.arrival_units if arrival_unit.day in days
    ]
    wanted = raw_events.where(F.col("arrival_unit").isin(sorted(days)))
    timed = wanted.withColumn("_event_time_ms", timestamp_to_ms("event_time"))
    known = _with_literals if _are_few(reads, arrival_units) else _with_tables
    stream_time_ms = F.greatest(
        timestamp_to_ms("running_max"), F.coalesce("_before_ms", F.lit(NEVER_MS))
    )
    return (
        known(timed, arrival_units, reads)
        .withColumn("_is_new", is_new)
        # An arrival unit reads all its own records, because it lists the late ones.
        .where(F.col("_is_new") | (F.col("_event_time_ms") >= F.col("_from_ms")))
        .withColumn("_stream_time_ms", stream_time_ms)
        # For a record of a partition that resumes, the watermark may be later (rule A4).
        .withColumn(
            "_close_time_ms", F.greatest("_stream_time_ms", "_watermark_ms") - F.lit(delay_ms)
        )
        .drop("_from_ms", "_watermark_ms", "_before_ms")
    )


def _are_few(reads: Sequence[Read], arrival_units: Sequence[ArrivalUnit]) -> bool:
    """Whether literals can hold the arrival units: one computed day, and few stream times."""
    wanted = {(read.computed_day, read.from_ms) for read in reads}
    stream_times = sum(len(arrival_unit.stream_time_before_ms) for arrival_unit in arrival_units)
    return len(wanted) == 1 and len(arrival_units) + stream_times <= _MOST_LITERALS


def _with_literals(
    records: DataFrame, arrival_units: Sequence[ArrivalUnit], reads: Sequence[Read]
) -> DataFrame:
    """Adds the columns that `_with_tables` adds, as literals, without a join."""
    watermark_ms = {
        day_number(arrival_unit.day): _bigint(arrival_unit.watermark_before_ms)
        for arrival_unit in arrival_units
    }
    before_ms = {
        day_number(arrival_unit.day): _map_of({of: _bigint(ms) for of, ms in known.items()})
        for arrival_unit in arrival_units
        if (known := arrival_unit.stream_time_before_ms)
    }
    day, unknown = F.unix_date("arrival_unit"), F.lit(None).cast("bigint")
    of_day = F.try_element_at(_map_of(before_ms), day)
    return records.withColumns(
        {
            "_computed_day": F.lit(day_number(reads[0].computed_day)),
            "_from_ms": literal(reads[0].from_ms, F.col("_event_time_ms")),
            "_watermark_ms": F.try_element_at(_map_of(watermark_ms), day)
            if arrival_units
            else unknown,
            "_before_ms": F.try_element_at(of_day, "source_partition") if before_ms else unknown,
        }
    )


def _bigint(number: int) -> Column:
    return F.lit(number).cast("bigint")


def _map_of(known: Mapping[int, Column] | Mapping[str, Column]) -> Column:
    return F.create_map(*[part for key, value in known.items() for part in (F.lit(key), value)])


def _with_tables(
    records: DataFrame, arrival_units: Sequence[ArrivalUnit], reads: Sequence[Read]
) -> DataFrame:
    """Adds `_computed_day`, `_from_ms`, `_watermark_ms` and `_before_ms` by joins.

    A record is returned once for each computed day that needs it.
    """
    spark = records.sparkSession
    plan = small_frame(
        spark,
        [(read.arrival_unit, day_number(read.computed_day), read.from_ms) for read in reads],
        "arrival_unit date, _computed_day int, _from_ms bigint",
    )
    watermark = small_frame(
        spark,
        [(arrival_unit.day, arrival_unit.watermark_before_ms) for arrival_unit in arrival_units],
        "arrival_unit date, _watermark_ms bigint",
    )
    before = small_frame(
        spark,
        [
            (arrival_unit.day, partition, stream_time_ms)
            for arrival_unit in arrival_units
            for partition, stream_time_ms in arrival_unit.stream_time_before_ms.items()
        ],
        "arrival_unit date, source_partition string, _before_ms bigint",
    )
    return (
        records.join(F.broadcast(plan), "arrival_unit")
        .join(F.broadcast(watermark), "arrival_unit")
        .join(F.broadcast(before), ["arrival_unit", "source_partition"], "left")
    )
