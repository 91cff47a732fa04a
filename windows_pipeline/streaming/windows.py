"""What a micro-batch closed, and on request changed, by the engine that batches use (rule H1)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from windows_pipeline.config import Pipeline
from windows_pipeline.engine.alerts import with_episodes
from windows_pipeline.engine.chunk import Closing
from windows_pipeline.engine.late import late_records
from windows_pipeline.engine.sliding import reach_ms, sliding_windows
from windows_pipeline.engine.stream_time import records_to_read, target_of
from windows_pipeline.engine.timeline import (
    NEVER_MS,
    Read,
    Timeline,
    build_timeline,
    close_ms,
)
from windows_pipeline.jobs.alerts import AlertsJob
from windows_pipeline.jobs.job import kept
from windows_pipeline.settings import Settings
from windows_pipeline.streaming.standing import Standing, arrivals
from windows_pipeline.tables.instants import with_instants


@dataclass(frozen=True)
class _Around:
    """The close times around a micro-batch, and the units that it closed in."""

    closing: Closing
    timeline: Timeline
    units: list[date]

    @property
    def target(self) -> int:
        return target_of(self.units[-1])

    def unit_closing(self, end_ms: Column, grace_ms: int) -> Column:
        """The unit that closed a window with this end; the last one if none did."""
        unit = F.lit(self.units[-1])
        for day in reversed(self.units[:-1]):
            found = self.timeline.unit(day)
            if found is not None:
                after_ms = close_ms(found.in_force_after_ms, grace_ms)
                unit = F.when(end_ms < F.lit(after_ms), F.lit(day)).otherwise(unit)
        return unit


def append_windows(
    spark: SparkSession,
    pipeline: Pipeline,
    windows_name: str,
    settings: Settings,
    batch: int,
    before: Standing,
    after: Standing,
) -> None:
    """Appends a definition's late records, windows, final windows and alerts of a micro-batch.

    Args:
        spark: The session.
        pipeline: The pipeline.
        windows_name: The definition.
        settings: Where the tables lie.
        batch: The micro-batch, which is in raw_events and in the log.
        before: Where the stream stood before it.
        after: Where it stands now.
    """
    job = AlertsJob(pipeline, windows_name, settings)
    windows, own, spec = job.windows, job.own, job.windows.spec
    around = _around(pipeline, batch, before, after, spec.grace_ms)
    records = _records(job, spark, batch, around)
    to_close = F.col("event_time_ms") < F.lit(around.closing.after_ms)
    wanted = records if windows.partial_results else records.where(to_close)
    computed = kept(
        sliding_windows(wanted, spec, windows.aggregate_list, {around.target: around.closing})
    )
    try:
        late = late_records(records, computed, spec, list(pipeline.source.values))
        last_end_ms = F.unix_millis("event_time") + F.lit(spec.time_difference_ms)
        settled = F.when(
            F.col("reason") == "uncounted", around.unit_closing(last_end_ms, spec.grace_ms)
        )
        own.late_records.append(
            late.withColumn("unit", F.coalesce(settled, F.col("arrived_unit"))), batch
        )
        found = with_instants(computed.where(F.col("window_end_ms").isNotNull()))
        unit = around.unit_closing(F.col("window_end_ms"), spec.grace_ms)
        placed = found.withColumns({"unit": unit, "batch": F.lit(batch)})
        closed = placed.where("closed")
        own.keyed_windows.append(placed if windows.partial_results else closed, batch)
        own.final_windows.append(closed, batch)
        if windows.alerts:
            own.alerts.append(_alerts(job, spark, closed, around), batch)
    finally:
        computed.unpersist()


def _around(
    pipeline: Pipeline, batch: int, before: Standing, after: Standing, grace_ms: int
) -> _Around:
    timeline = build_timeline(
        arrivals(after.log), pipeline.partitions.start, pipeline.source.idle_after
    )
    closing = Closing(close_ms(before.in_force_ms, grace_ms), close_ms(after.in_force_ms, grace_ms))
    units = sorted({row.unit for row in after.log if row.batch == batch})
    return _Around(closing, timeline, units)


def _records(job: AlertsJob, spark: SparkSession, batch: int, around: _Around) -> DataFrame:
    """The batch's records, and those before that its windows hold or that settle with them."""
    spec = job.windows.spec
    from_ms = max(around.closing.before_ms - reach_ms(spec), NEVER_MS)
    target = around.units[-1]
    reads = [
        Read(target, unit.day, from_ms)
        for unit in around.timeline.units
        if unit.max_event_time_ms >= from_ms or unit.day in around.units
    ]
    is_of_batch = F.coalesce(F.col("batch") == F.lit(batch), F.lit(False))
    not_later = F.col("batch").isNull() | (F.col("batch") <= F.lit(batch))
    recent = is_of_batch
    if from_ms > NEVER_MS:
        # By the table's own column, so that older files are not opened.
        recent = recent | (F.col("event_time") >= F.timestamp_millis(F.lit(from_ms)))
        raw = job.source.raw_events.read(spark).where(not_later & recent)
    else:
        raw = job.source.raw_events.read(spark).where(not_later)
    return records_to_read(raw, around.timeline, reads, spec.grace_ms, is_new=is_of_batch)


def _alerts(job: AlertsJob, spark: SparkSession, closed: DataFrame, around: _Around) -> DataFrame:
    """The alerts of the windows that were closed, with the episodes that began before."""
    columns = [field.name for field in job.own.final_windows.schema]
    raised = job.raise_alerts(closed.select(*columns))
    difference_ms = job.windows.spec.time_difference_ms
    overlaps_from_ms = max(around.closing.before_ms - difference_ms, NEVER_MS)
    earlier = job.own.alerts.read(spark)
    if overlaps_from_ms > NEVER_MS:
        earlier = earlier.where(F.col("window_end") >= F.timestamp_millis(F.lit(overlaps_from_ms)))
    closed_before = F.unix_millis("window_end") < F.lit(around.closing.before_ms)
    names = [*raised.columns, "episode_start"]
    joined = with_episodes(
        raised.withColumn("episode_start", F.lit(None).cast("timestamp")).unionByName(
            earlier.where(closed_before).select(*names)
        )
    )
    return joined.where(F.unix_millis("window_end") >= F.lit(around.closing.before_ms))
