"""What a micro-batch closed, and on request changed, by the engine that batches use (rule H1)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F

from windows_pipeline.engine.alerts import standing, with_episodes
from windows_pipeline.engine.late import late_records
from windows_pipeline.engine.sliding import is_late, is_uncovered, sliding_windows
from windows_pipeline.engine.stream_time import records_to_read, target_of
from windows_pipeline.engine.timeline import NEVER_MS
from windows_pipeline.jobs.alerts import AlertsJob
from windows_pipeline.streaming.scope import BatchScope, scope_of
from windows_pipeline.streaming.standing import Standing
from windows_pipeline.tables.delta import Table
from windows_pipeline.tables.instants import with_instants


@dataclass(frozen=True)
class BatchWindows:
    """The windows of one definition around a micro-batch.

    Attributes:
        job: The definition and its tables.
        batch: The micro-batch's number.
        fresh: Its records, as rows of raw_events; computed already.
        before: Where the stream stood before it.
        after: Where it stands now; the log has the micro-batch.
    """

    job: AlertsJob
    batch: int
    fresh: DataFrame
    before: Standing
    after: Standing

    def compute(self) -> list[Callable[[], None]]:
        """Computes them, and tells what is to be appended where.

        Returns:
            A task for each table that gets rows: late_records, keyed_windows, final_windows,
            alerts. They can run in any order.
        """
        windows = self.job.windows
        records = self._records()
        to_close = F.col("event_time_ms") < F.lit(self._scope.closing.after_ms)
        wanted = records if windows.partial_results else records.where(to_close)
        closings = {target_of(self._scope.units[-1]): self._scope.closing}
        aggregates = windows.aggregate_list
        found_windows = sliding_windows(wanted, windows.spec, aggregates, closings)
        # Without the plan that made them: each further query would look through it again.
        computed = found_windows.localCheckpoint()
        placed = self._placed(computed)
        closed = placed.where("closed")
        found = self._counted(records, placed, computed)
        own = self.job.own
        appends: list[tuple[Table, DataFrame, int]] = [
            (own.late_records, self._late(records, computed, found), found.late + found.uncounted),
            (
                own.keyed_windows,
                placed if windows.partial_results else closed,
                found.windows if windows.partial_results else found.closed,
            ),
            (own.final_windows, closed, found.closed),
        ]
        if found.alerts:
            appends.append((own.alerts, self._alerts(closed), found.alerts))
        return [_task(table, rows, self.batch) for table, rows, many in appends if many]

    @cached_property
    def _scope(self) -> BatchScope:
        pipeline, spec = self.job.pipeline, self.job.windows.spec
        first_day, idle_after_ms = pipeline.partitions.start, pipeline.source.idle_after
        return scope_of(self.before, self.after, self.batch, spec, first_day, idle_after_ms)

    def _records(self) -> DataFrame:
        """The batch's records, and those before that its windows hold or that settle with them."""
        scope = self._scope
        raw = self.job.source.raw_events.read(self.fresh.sparkSession)
        earlier = raw.where(F.col("batch").isNull() | (F.col("batch") < F.lit(self.batch)))
        if scope.from_ms > NEVER_MS:
            # By the table's own column, so that older files are not opened.
            from_instant = F.timestamp_millis(F.lit(scope.from_ms))
            earlier = earlier.where(F.col("event_time") >= from_instant)
        both = earlier.unionByName(self.fresh.select(*earlier.columns))
        is_new = F.coalesce(F.col("batch") == F.lit(self.batch), F.lit(False))
        grace_ms = self.job.windows.spec.grace_ms
        return records_to_read(both, scope.timeline, scope.reads, grace_ms, is_new=is_new)

    def _counted(self, records: DataFrame, placed: DataFrame, computed: DataFrame) -> Row:
        """How many rows each table gets."""
        spec = self.job.windows.spec
        of_late = records.where("is_new").agg(
            F.count_if(is_late(spec) | is_uncovered(spec)).alias("late")
        )
        rules = self.job.rules.values()
        broken = [F.count_if(F.col("closed") & F.expr(rule.when)) for rule in rules]
        of_windows = placed.agg(
            F.count("*").alias("windows"),
            F.count_if("closed").alias("closed"),
            sum(broken, F.lit(0)).alias("alerts"),
        )
        of_uncounted = computed.agg(F.count("uncounted_time_ms").alias("uncounted"))
        (row,) = of_windows.crossJoin(of_late).crossJoin(of_uncounted).collect()
        return row

    def _placed(self, computed: DataFrame) -> DataFrame:
        """The windows as rows of keyed_windows, each in the unit that closed it."""
        found = with_instants(computed.where(F.col("window_end_ms").isNotNull()))
        unit = self._closing_unit(F.col("window_end_ms"))
        return found.withColumns({"unit": unit, "batch": F.lit(self.batch)})

    def _closing_unit(self, end_ms: Column) -> Column:
        """The batch's unit that closed a window with this end; the last one if none did."""
        closing_unit = F.lit(self._scope.units[-1])
        for day, after_ms in reversed(self._scope.closed_by):
            is_closed = end_ms < F.lit(after_ms)
            closing_unit = F.when(is_closed, F.lit(day)).otherwise(closing_unit)
        return closing_unit

    def _late(self, records: DataFrame, computed: DataFrame, found: Row) -> DataFrame:
        """The records that no window counts, each in the unit that settled it."""
        spec = self.job.windows.spec
        # Earlier records are looked at only where one of them settles.
        own = records if found.uncounted else records.where("is_new")
        late = late_records(own, computed, spec, list(self.job.pipeline.source.values))
        last_end_ms = F.unix_millis("event_time") + F.lit(spec.time_difference_ms)
        settled = F.when(F.col("reason") == "uncounted", self._closing_unit(last_end_ms))
        return late.withColumn("unit", F.coalesce(settled, F.col("arrived_unit")))

    def _alerts(self, closed: DataFrame) -> DataFrame:
        """The alerts of the windows that were closed, with the episodes that began before."""
        job, before_ms = self.job, self._scope.closing.before_ms
        columns = [field.name for field in job.own.final_windows.schema]
        raised = job.raise_alerts(closed.select(*columns))
        earlier = standing(job.own.alerts.read(closed.sparkSession))
        overlaps_from_ms = before_ms - job.windows.spec.time_difference_ms
        if before_ms > NEVER_MS:
            from_instant = F.timestamp_millis(F.lit(overlaps_from_ms))
            earlier = earlier.where(F.col("window_end") >= from_instant)
        is_earlier = F.unix_millis("window_end") < F.lit(before_ms)
        unknown = raised.withColumn("episode_start", F.lit(None).cast("timestamp"))
        known = earlier.where(is_earlier).select(*unknown.columns)
        nothing = F.lit(None).cast("bigint")
        joined = with_episodes(unknown.unionByName(known)).where(~is_earlier)
        return joined.withColumns({"correction": nothing, "retracted_by": nothing})


def _task(table: Table, rows: DataFrame, batch: int) -> Callable[[], None]:
    return lambda: table.append(rows, batch)
