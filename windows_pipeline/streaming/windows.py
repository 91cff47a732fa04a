"""What a micro-batch closed, and on request changed, by the engine that batches use (rule H1)."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from windows_pipeline.engine.lateness import is_late, is_outside_windows, last_instant
from windows_pipeline.engine.literals import coarse_from_ms, given
from windows_pipeline.engine.windows import UNCOUNTED
from windows_pipeline.incremental.alerts import standing, with_episodes
from windows_pipeline.incremental.late import late_records
from windows_pipeline.incremental.lookback import asks_records, reached_from_ms
from windows_pipeline.incremental.records import records_to_read, target_of
from windows_pipeline.incremental.windows import unit_windows
from windows_pipeline.jobs.alerts import AlertsJob
from windows_pipeline.jobs.firings import FiringsJob
from windows_pipeline.kernels.time import NEVER_MS
from windows_pipeline.storage.fetched_rows import KeptRows, kept_rows
from windows_pipeline.storage.instants import with_instants
from windows_pipeline.storage.table import Table
from windows_pipeline.streaming.firings import BatchFirings
from windows_pipeline.streaming.first_unit import first_unit
from windows_pipeline.streaming.scope import BatchScope, scope_of
from windows_pipeline.streaming.standing import Standing
from windows_pipeline.windows import GracedRows, SessionWindows, TimeWindows

Append = Callable[[Table, DataFrame | pa.Table, int, int], None]
"""Appends a micro-batch's rows, of which there are so many, to a table: `Table.append`."""
Appended = tuple[Table, DataFrame | pa.Table, int]
"""A table, and the rows that it gets, with how many these are."""
_BROKEN = "_broken"
"""How many rules a window breaks, for a while; a source's columns begin with a letter."""


class Computed(NamedTuple):
    """What a micro-batch brings of one definition.

    Attributes:
        appends: A task for each table that gets rows: late_records, keyed_windows, final_windows,
            alerts, firings, early_warnings. They can run in any order.
        late: How many records are late: every window that would have held one was closed, or is.
    """

    appends: list[Callable[[], None]]
    late: int


class _Late(NamedTuple):
    """How many records no window can count as they come, and of these, covers."""

    records: int
    uncovered: int


class _Found(NamedTuple):
    """How many windows there are, closed ones and their alerts, and records without a window."""

    windows: int
    closed: int
    alerts: int
    uncounted: int
    late: _Late


@dataclass(frozen=True)
class BatchWindows:
    """The windows of one definition around a micro-batch.

    Attributes:
        job: The definition and its tables.
        batch: The micro-batch's number.
        fresh: Its records, as rows of raw_events; computed already.
        many: How many these are.
        before: Where the stream stood before it.
        after: Where it stands now; the log has the micro-batch.
        append: Appends rows to a table.
    """

    job: AlertsJob
    batch: int
    fresh: DataFrame
    many: int
    before: Standing
    after: Standing
    append: Append = Table.append

    def compute(self) -> Computed:
        """Computes them, and says what is to be appended where."""
        windows = self.job.windows
        records = self._records()
        wanted = records
        if not (windows.partial_results or isinstance(windows.spec, (SessionWindows, GracedRows))):
            # A session that reaches further is open, which all its records tell; rows may be
            # counted by arrival.
            time_ms = F.col("_event_time_ms")
            wanted = records.where(time_ms < given(self._scope.closing.after_ms, time_ms))
        found_windows = unit_windows(
            wanted,
            windows.spec,
            windows.aggregate_list,
            {self._target: self._scope.closing},
            only_closed=not windows.partial_results,
        )
        kept, late = self._kept(self._placed(found_windows), self._late_on_arrival(records))
        found = self._found(kept, late)
        closed = kept.where("closed")
        keyed, in_keyed = closed, found.closed
        if windows.partial_results:
            keyed, in_keyed = kept.known("record_count"), found.windows
        own = self.job.own
        appends: list[Appended] = [
            (own.keyed_windows, keyed.rows, in_keyed),
            (own.final_windows, closed.rows, found.closed),
        ]
        if uncounted := found.late.records + found.uncounted:
            appends.append((own.late_records, self._late(records, kept, found), uncounted))
        if found.alerts:
            appends.append((own.alerts, self._alerts(kept.known(_BROKEN).frame), found.alerts))
        if windows.trigger is not None:
            appends += self._firings.compute(records, self._from_ms, closed)
        late_ones = uncounted - found.late.uncovered
        return Computed(
            [append_of(*one, self.batch, self.append) for one in appends if one[-1]], late_ones
        )

    @property
    def earlier_records(self) -> int:
        """At most how many records before the micro-batch it reads, where that is soon known."""
        if asks_records(self.job.windows.spec):
            return 0
        return self.job.source.raw_events.rows_since(self.fresh.sparkSession, self._from_ms)

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

    def _placed(self, computed: DataFrame) -> DataFrame:
        """The windows as rows of keyed_windows, each in the unit that closed it.

        With how many rules a closed one breaks, null for none; and, of records that no window
        counts, the rows that `unit_windows` has.
        """
        job = self.job
        found = with_instants(computed)
        last_ms = last_instant(job.windows.spec, F.col("_window_end_ms"))
        unit = self._closing_unit(last_ms)
        placed = found.withColumns(
            {"arrival_unit": unit, "batch": given(self.batch, F.col("record_count"))}
        )
        schema = job.own.keyed_windows.schema
        columns = {field.name: F.col(field.name).cast(field.dataType) for field in schema}
        beside = [name for name in UNCOUNTED if name in placed.columns]
        if job.windows.trigger is not None:
            beside.append("_computed_day")
        rows = placed.select(*[column.alias(name) for name, column in columns.items()], *beside)
        broken = [F.when(F.expr(rule.when), 1).otherwise(0) for rule in job.rules.values()]
        many = sum(broken, F.lit(0))
        return rows.withColumn(_BROKEN, F.when(F.col("closed") & (many > 0), many))

    def _late_on_arrival(self, records: DataFrame) -> DataFrame:
        """The batch's records that no window can count any more."""
        spec = self.job.windows.spec
        if isinstance(spec, SessionWindows):
            late = late_records(records, None, spec, [], [self._target])
            return late.select(F.lit(False).alias("is_outside_windows"))
        late = self._own_records.where(is_late(spec) | is_outside_windows(spec))
        return late.select(is_outside_windows(spec).alias("is_outside_windows"))

    def _kept(self, placed: DataFrame, late: DataFrame) -> tuple[KeptRows, _Late]:
        """The windows, computed; and how many records are late."""
        own = self.job.own
        tables = (own.keyed_windows, own.final_windows)
        may_fetch = all(table.takes(placed.sparkSession, self._most_windows) for table in tables)
        with ThreadPoolExecutor(1) as beside:
            counted = late.agg(F.count("*"), F.count_if("is_outside_windows"))
            many_late = beside.submit(counted.collect)
            return kept_rows(placed, may_fetch=may_fetch), _Late(*many_late.result()[0])

    @property
    def _most_windows(self) -> int:
        """About how many windows of all definitions the batch has, at most; a guess.

        The driver holds those of all of them until they are written.
        """
        spec = self.job.windows.spec
        of_record = -(-spec.size_ms // spec.advance_ms) if isinstance(spec, TimeWindows) else 2
        return of_record * self.many * len(self.job.pipeline.windows)

    def _found(self, kept: KeptRows, late: _Late) -> _Found:
        """How many rows each table gets."""
        known = ["record_count", *(name for name in UNCOUNTED[:1] if name in kept.columns)]
        windows, *uncounted, closed, alerts = kept.totals(known, ["closed", _BROKEN])
        # Of row windows a record is counted or late as it comes.
        return _Found(windows, closed, alerts, sum(uncounted), late)

    def _closing_unit(self, last_ms: Column) -> Column:
        """The batch's unit that closed a window with this last instant; the last if none did."""
        closed_by = [(day, last_ms < F.lit(after_ms)) for day, after_ms in self._scope.closed_by]
        return first_unit(closed_by, self._scope.units[-1])

    def _late(self, records: DataFrame, kept: KeptRows, found: _Found) -> DataFrame:
        """The records that no window counts, each in the unit that settled it."""
        spec = self.job.windows.spec
        values = list(self.job.pipeline.source.values)
        if isinstance(spec, (SessionWindows, GracedRows)):
            arrived = records if isinstance(spec, SessionWindows) else self._own_records
            late = late_records(arrived, None, spec, values, [self._target])
            return late.withColumn("arrival_unit", F.col("record_arrival_unit"))
        # Earlier records are looked at only where one of them settles.
        own = records if found.uncounted else self._own_records
        settled = kept.known(UNCOUNTED[0]).frame.withColumn("_computed_day", F.lit(self._target))
        late = late_records(own, settled, spec, values, [self._target])
        last_ms = F.unix_millis("event_time") + F.lit(spec.length_ms)
        unit = F.when(F.col("reason") == "partly_late", self._closing_unit(last_ms))
        return late.withColumn("arrival_unit", F.coalesce(unit, F.col("record_arrival_unit")))

    def _alerts(self, breaking: DataFrame) -> DataFrame:
        """The alerts of closed windows that break rules, with the episodes that began before."""
        job, before_ms = self.job, self._scope.closing.before_ms
        spec = job.windows.spec
        columns = [field.name for field in job.own.final_windows.schema]
        raised = job.raise_alerts(breaking.select(*columns))
        from_ms = self._from_ms
        if before_ms > NEVER_MS and not isinstance(spec, (SessionWindows, GracedRows)):
            from_ms = before_ms - spec.length_ms
        since_ms = from_ms if from_ms > NEVER_MS else None
        earlier = standing(job.own.alerts.read(breaking.sparkSession, since_ms=since_ms))
        if since_ms is not None:
            earlier = earlier.where(F.col("window_end") >= self._not_before(from_ms))
        last_ms = last_instant(spec, F.unix_millis("window_end"))
        is_earlier = last_ms < given(before_ms, last_ms)
        unknown = raised.withColumn("episode_start", F.lit(None).cast("timestamp"))
        known = earlier.where(is_earlier).select(*unknown.columns)
        nothing = F.lit(None).cast("bigint")
        joined = with_episodes(unknown.unionByName(known)).where(~is_earlier)
        return joined.withColumns({"correction": nothing, "retracted_by": nothing})


def append_of(
    table: Table, rows: DataFrame | pa.Table, many: int, batch: int, append: Append
) -> Callable[[], None]:
    """A task that appends a micro-batch's rows to a table."""
    return lambda: append(table, rows, batch, many)
