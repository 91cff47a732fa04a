"""What a micro-batch closed, and on request changed, by the engine that batches use (rule H1)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from windows_pipeline.engine.alerts import standing, with_episodes
from windows_pipeline.engine.late import late_records
from windows_pipeline.engine.reach import asks_records, reached_from_ms
from windows_pipeline.engine.steady_plan import coarse_from_ms, given
from windows_pipeline.engine.stream_time import records_to_read, target_of
from windows_pipeline.engine.timeline import NEVER_MS
from windows_pipeline.engine.unit_windows import (
    is_late,
    is_uncovered,
    last_instant,
    unit_windows,
)
from windows_pipeline.jobs.alerts import AlertsJob
from windows_pipeline.jobs.firings import FiringsJob
from windows_pipeline.streaming.firings import BatchFirings
from windows_pipeline.streaming.scope import BatchScope, scope_of
from windows_pipeline.streaming.standing import Standing
from windows_pipeline.streaming.together import together
from windows_pipeline.tables.delta import Table
from windows_pipeline.tables.instants import with_instants
from windows_pipeline.windows import GracedRows, SessionWindows


class _Found(NamedTuple):
    """How many windows there are, closed ones and their alerts, and records without a window."""

    windows: int
    closed: int
    alerts: int
    uncounted: int
    late: int


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
            alerts, firings, early_warnings. They can run in any order.
        """
        windows = self.job.windows
        records = self._records()
        wanted = records
        if not (windows.partial_results or isinstance(windows.spec, (SessionWindows, GracedRows))):
            # A session that reaches further is open, which all its records tell; rows may be
            # counted by arrival.
            time_ms = F.col("event_time_ms")
            wanted = records.where(time_ms < given(self._scope.closing.after_ms, time_ms))
        closings = {self._target: self._scope.closing}
        found_windows = unit_windows(
            wanted,
            windows.spec,
            windows.aggregate_list,
            closings,
            only_closed=not windows.partial_results,
        )
        # Without the plan that made them: each further query would look through it again.
        computed = found_windows.localCheckpoint()
        placed = self._placed(computed)
        closed = placed.where("closed")
        found = self._counted(records, computed)
        own = self.job.own
        appends: list[tuple[Table, DataFrame, int]] = [
            (
                own.keyed_windows,
                placed if windows.partial_results else closed,
                found.windows if windows.partial_results else found.closed,
            ),
            (own.final_windows, closed, found.closed),
        ]
        if uncounted := found.late + found.uncounted:
            appends.append((own.late_records, self._late(records, computed, found), uncounted))
        if found.alerts:
            appends.append((own.alerts, self._alerts(closed), found.alerts))
        if windows.trigger is not None:
            appends += self._firings.compute(records, self._from_ms, closed)
        return [append_of(*one, self.batch) for one in appends if one[-1]]

    @cached_property
    def _scope(self) -> BatchScope:
        pipeline, delay_ms = self.job.pipeline, self.job.windows.spec.close_delay_ms
        first_day, idle_after_ms = pipeline.partitions.start, pipeline.source.idle_after
        return scope_of(self.before, self.after, self.batch, delay_ms, first_day, idle_after_ms)

    @cached_property
    def _target(self) -> int:
        return target_of(self._scope.units[-1])

    @property
    def _firings(self) -> BatchFirings:
        job = FiringsJob(self.job.pipeline, self.job.windows_name, self.job.settings)
        before, after = self.before.merge, self.after.merge
        assert before is not None  # noqa: S101  where windows fire, the stream asks for it
        assert after is not None  # noqa: S101
        return BatchFirings(job, self.batch, self._scope, before, after)

    def _records(self) -> DataFrame:
        """The batch's records, and those before that its windows hold or that settle with them."""
        if self._from_ms > NEVER_MS:
            earlier = self._earlier(self._from_ms)
            earlier = earlier.where(F.col("event_time") >= self._not_before(self._from_ms))
        else:
            earlier = self._earlier()
        both = earlier.unionByName(self.fresh.select(*earlier.columns))
        is_new = F.coalesce(F.col("batch") == self._number, F.lit(False))
        return self._to_read(both, is_new)

    @cached_property
    def _own_records(self) -> DataFrame:
        """The batch's records alone: no table is read for them."""
        return self._to_read(
            self.fresh.select(*self.job.source.raw_events.schema.names), F.lit(True)
        )

    def _to_read(self, raw: DataFrame, is_new: Column) -> DataFrame:
        delay_ms, scope = self.job.windows.spec.close_delay_ms, self._scope
        reads = scope.reads(self._from_ms)
        return records_to_read(raw, scope.timeline, reads, delay_ms, is_new=is_new)

    def _earlier(self, since_ms: int | None = None) -> DataFrame:
        """The records before the micro-batch; those before a time may be left out."""
        raw = self.job.source.raw_events.read(self.fresh.sparkSession, since_ms=since_ms)
        return raw.where(F.col("batch").isNull() | (F.col("batch") < self._number))

    @property
    def _number(self) -> Column:
        """The micro-batch's number, beside a row of raw_events."""
        return given(self.batch, F.col("offset"))

    def _not_before(self, from_ms: int) -> Column:
        """An instant at or before a time, to hold a table's own column against.

        So that older files are not opened; what matters begins at the time itself.
        """
        coarse_ms = coarse_from_ms(from_ms, self._scope.closing.after_ms)
        return F.timestamp_millis(F.lit(coarse_ms))

    @cached_property
    def _from_ms(self) -> int:
        """From which event time on records matter to the windows that are not closed."""
        before_ms = self._scope.closing.before_ms
        spec, arrived = self.job.windows.spec, self.fresh
        if asks_records(spec):
            earlier = self._earlier()
            arrived = earlier.unionByName(arrived.select(*earlier.columns))
        return reached_from_ms(arrived, spec, [before_ms])[before_ms]

    def _counted(self, records: DataFrame, computed: DataFrame) -> _Found:
        """How many rows each table gets."""
        spec = self.job.windows.spec
        if isinstance(spec, SessionWindows):
            late = late_records(records, computed, spec, [], [self._target])
        else:
            late = self._own_records.where(is_late(spec) | is_uncovered(spec))
        is_window = F.col("window_end_ms").isNotNull()
        is_closed = is_window & F.col("closed")
        broken = [F.count_if(is_closed & F.expr(rule.when)) for rule in self.job.rules.values()]
        # A row is counted or late as it comes.
        uncounted = F.lit(0) if isinstance(spec, GracedRows) else F.count("uncounted_time_ms")
        of_windows = with_instants(computed).agg(
            F.count_if(is_window), F.count_if(is_closed), sum(broken, F.lit(0)), uncounted
        )
        counts = together([lambda: list(of_windows.collect()[0]), lambda: [late.count()]])
        return _Found(*chain(*counts))

    def _placed(self, computed: DataFrame) -> DataFrame:
        """The windows as rows of keyed_windows, each in the unit that closed it."""
        found = with_instants(computed.where(F.col("window_end_ms").isNotNull()))
        last_ms = last_instant(self.job.windows.spec, F.col("window_end_ms"))
        unit = self._closing_unit(last_ms)
        return found.withColumns({"unit": unit, "batch": given(self.batch, F.col("record_count"))})

    def _closing_unit(self, last_ms: Column) -> Column:
        """The batch's unit that closed a window with this last instant; the last if none did."""
        closing_unit = F.lit(self._scope.units[-1])
        for day, after_ms in reversed(self._scope.closed_by):
            is_closed = last_ms < F.lit(after_ms)
            closing_unit = F.when(is_closed, F.lit(day)).otherwise(closing_unit)
        return closing_unit

    def _late(self, records: DataFrame, computed: DataFrame, found: _Found) -> DataFrame:
        """The records that no window counts, each in the unit that settled it."""
        spec = self.job.windows.spec
        values = list(self.job.pipeline.source.values)
        if isinstance(spec, (SessionWindows, GracedRows)):
            arrived = records if isinstance(spec, SessionWindows) else self._own_records
            late = late_records(arrived, computed, spec, values, [self._target])
            return late.withColumn("unit", F.col("arrived_unit"))
        # Earlier records are looked at only where one of them settles.
        own = records if found.uncounted else self._own_records
        late = late_records(own, computed, spec, values, [self._target])
        last_ms = F.unix_millis("event_time") + F.lit(spec.length_ms)
        settled = F.when(F.col("reason") == "uncounted", self._closing_unit(last_ms))
        return late.withColumn("unit", F.coalesce(settled, F.col("arrived_unit")))

    def _alerts(self, closed: DataFrame) -> DataFrame:
        """The alerts of the windows that were closed, with the episodes that began before."""
        job, before_ms = self.job, self._scope.closing.before_ms
        spec = job.windows.spec
        columns = [field.name for field in job.own.final_windows.schema]
        raised = job.raise_alerts(closed.select(*columns))
        from_ms = self._from_ms
        if before_ms > NEVER_MS and not isinstance(spec, (SessionWindows, GracedRows)):
            from_ms = before_ms - spec.length_ms
        since_ms = from_ms if from_ms > NEVER_MS else None
        earlier = standing(job.own.alerts.read(closed.sparkSession, since_ms=since_ms))
        if since_ms is not None:
            earlier = earlier.where(F.col("window_end") >= self._not_before(from_ms))
        last_ms = last_instant(spec, F.unix_millis("window_end"))
        is_earlier = last_ms < given(before_ms, last_ms)
        unknown = raised.withColumn("episode_start", F.lit(None).cast("timestamp"))
        known = earlier.where(is_earlier).select(*unknown.columns)
        nothing = F.lit(None).cast("bigint")
        joined = with_episodes(unknown.unionByName(known)).where(~is_earlier)
        return joined.withColumns({"correction": nothing, "retracted_by": nothing})


def append_of(table: Table, rows: DataFrame, many: int, batch: int) -> Callable[[], None]:
    """A task that appends a micro-batch's rows to a table."""
    return lambda: table.append(rows, batch, many)
