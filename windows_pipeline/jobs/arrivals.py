"""Reads the arrival log and says what some units' windows need (rules A2 to A4)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from windows_pipeline.config import Pipeline
from windows_pipeline.engine.sliding import reach_ms
from windows_pipeline.engine.sliding_kernel import Closing
from windows_pipeline.engine.stream_time import records_to_read, target_of
from windows_pipeline.engine.timeline import (
    Arrival,
    Timeline,
    Unit,
    build_timeline,
    close_ms,
    look_back,
)
from windows_pipeline.tables.catalog import SourceTables
from windows_pipeline.windows import SlidingWindows


@dataclass(frozen=True)
class Arrivals:
    """What has arrived, as the windows of one definition see it."""

    timeline: Timeline
    spec: SlidingWindows
    first_day: date

    def closings(self, days: Sequence[date]) -> dict[int, Closing]:
        """The close times around each day that is not held back, by target number."""
        return {target_of(unit.day): self._closing(unit) for unit in self.units(days)}

    def units(self, days: Sequence[date]) -> list[Unit]:
        """The units of those days that are not held back."""
        found = (self.timeline.unit(day) for day in days)
        return [unit for unit in found if unit is not None]

    def _closing(self, unit: Unit) -> Closing:
        return Closing(
            close_ms(unit.in_force_before_ms, self.spec.grace_ms),
            close_ms(unit.in_force_after_ms, self.spec.grace_ms),
        )

    def held_back(self, days: Sequence[date]) -> list[date]:
        """The days past the first missing unit: nothing of them closes (rule A2)."""
        return [day for day in days if self.timeline.unit(day) is None]

    @property
    def next_day(self) -> date:
        """The first day that is not there: what later days wait for."""
        return self.first_day + timedelta(days=len(self.timeline.units))

    def records(self, raw_events: DataFrame, days: Sequence[date]) -> DataFrame:
        """The records that the windows of these days need; see `records_to_read`."""
        reads = look_back(self.timeline, days, reach_ms(self.spec), self.spec.grace_ms)
        return records_to_read(raw_events, self.timeline, reads, self.spec.grace_ms)

    def facts(self, days: Sequence[date]) -> dict[str, object]:
        """What a run of these days says: how far it is closed, and what it waits for."""
        units = self.units(days)
        closed_through = self._closing(units[-1]).after_ms if units else None
        return {
            "closed_through_ms": closed_through,
            "held_back_days": [day.isoformat() for day in self.held_back(days)],
            "waits_for": self.next_day.isoformat() if self.held_back(days) else None,
        }


def read_arrivals(
    spark: SparkSession, pipeline: Pipeline, tables: SourceTables, spec: SlidingWindows
) -> Arrivals:
    """Scans a pipeline's arrival log.

    Raises:
        TableMissingError: Nothing was ingested yet.
        DefinitionChangedError: The log follows another definition.
    """
    rows = tables.arrival_log.read(spark).select(
        "unit", "source_partition", F.unix_millis("max_event_time")
    )
    log = [Arrival(*row) for row in rows.collect()]
    first_day = pipeline.partitions.start
    timeline = build_timeline(log, first_day, pipeline.source.idle_after)
    return Arrivals(timeline, spec, first_day)


def units_frame(
    spark: SparkSession, arrivals: Arrivals, log: DataFrame, days: Sequence[date]
) -> DataFrame:
    """A row a day: `unit`, `target`, `ingested`, close times, `held_back_by`.

    Args:
        spark: The session.
        arrivals: What has arrived.
        log: The arrival log.
        days: The days.

    Returns:
        Also `close_before_ms`, `close_after_ms` (bigint, null where held back) and
        `time_difference_ms`. `ingested` is what was landed: accepted and rejected.
    """
    closings = arrivals.closings(days)
    rows = []
    for day in days:
        closing = closings.get(target_of(day))
        before_ms, after_ms = closing or (None, None)
        waits_for = None if closing else arrivals.next_day
        rows.append((day, target_of(day), before_ms, after_ms, waits_for))
    frame = spark.createDataFrame(
        rows,
        "unit date, target int, close_before_ms bigint, close_after_ms bigint, held_back_by date",
    )
    ingested = log.groupBy("unit").agg(
        (F.sum("rows") + F.max("unit_rejected")).alias("ingested")
    )
    return (
        frame.join(ingested, "unit", "left")
        .fillna(0, ["ingested"])
        .withColumn("time_difference_ms", F.lit(arrivals.spec.time_difference_ms))
    )
