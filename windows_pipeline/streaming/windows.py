"""Computes the windows of a micro-batch with the engine of runs by days (rule H1)."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from windows_pipeline.engine.lateness import is_late, is_outside_windows
from windows_pipeline.engine.literals import literal
from windows_pipeline.engine.windows import PARTLY_LATE
from windows_pipeline.incremental.aggregated_values import REASONS
from windows_pipeline.incremental.definition import Definition
from windows_pipeline.incremental.definition_records import passing
from windows_pipeline.incremental.records import records_to_read
from windows_pipeline.kernels.time import NEVER_MS
from windows_pipeline.storage.fetched_rows import FetchedRows, fetched_rows
from windows_pipeline.storage.instants import with_instants
from windows_pipeline.storage.table import Table
from windows_pipeline.storage.tables import PipelineTables
from windows_pipeline.streaming.episodes import BatchEpisodes
from windows_pipeline.streaming.firings import BatchFirings
from windows_pipeline.streaming.log_state import LogState
from windows_pipeline.streaming.scope import BatchScope, scope_of
from windows_pipeline.text.instants import day_number

Append = Callable[[Table, DataFrame | pa.Table, int, int], None]
"""Appends rows of a micro-batch to a table; takes table, rows, micro-batch and row count."""
Appended = tuple[Table, DataFrame | pa.Table, int]
"""A table, the rows to append, and their number."""
_BROKEN, _FAILED, _UNDECIDED = "_broken", "_failed", "_undecided"
"""Temporary columns: how many rules a window breaks; of closed windows, whether an aggregate
failed, and whether a rule reads it. A source's columns begin with a letter."""


class ComputedBatch(NamedTuple):
    """A definition's rows of a micro-batch.

    Attributes:
        appends: A task for each table that gets rows: late_records, keyed_windows, final_windows,
            alerts, episodes, notifications, failed_windows, firings, early_warnings, processed. The
            tasks can run in any order.
        late: How many records are late: every window that would have held the record is closed.
        failed: How many closed windows have an aggregate that can't be computed (rule G3).
        undecided: In how many closed windows an alert rule can't be evaluated (rule G3).
    """

    appends: list[Callable[[], None]]
    late: int
    failed: int
    undecided: int


class _Late(NamedTuple):
    """How many records no window can count, and how many of them lie outside every window."""

    records: int
    outside_windows: int


class _Found(NamedTuple):
    """The numbers of windows, closed windows, alerts, and records that no window counts.

    `failed` and `undecided` are those of `ComputedBatch`.
    """

    windows: int
    closed: int
    alerts: int
    failed: int
    undecided: int
    dropped: int
    late: _Late


@dataclass(frozen=True)
class BatchWindows:
    """The windows of a definition in a micro-batch.

    Attributes:
        definition: The definition.
        of_pipeline: The tables of the pipeline.
        batch: The micro-batch's number.
        fresh: The micro-batch's records, as rows of raw_events; computed already.
        record_count: The number of records in `fresh`.
        before: The state of the log before the micro-batch.
        after: The state of the log with the micro-batch.
        append: Appends rows to a table.
    """

    definition: Definition
    of_pipeline: PipelineTables
    batch: int
    fresh: DataFrame
    record_count: int
    before: LogState
    after: LogState
    append: Append = Table.append

    def compute(self) -> ComputedBatch:
        """Computes the windows; returns the tasks that append their rows."""
        definition, tables, day = self.definition, self.definition.tables, self._computed_day
        marked = self._records()
        records = definition.cut(passing(marked))
        placed = self._as_rows(definition.compute(records, {day: self._scope.closing}))
        fetched, late_counts = self._fetched(placed, self._late_on_arrival(records))
        found = self._found(fetched, late_counts)
        dropped = found.late.records + found.dropped
        wanted = ["late_records"] if dropped else []
        wanted += ["failed_windows"] if found.failed else []
        # Earlier records are read only if they decide, or some are dropped with this micro-batch.
        decide = definition.spec.late_after_ms is None or found.dropped
        arrived = records if decide else self._new_records
        rows = definition.window_rows(fetched, arrived, [day], wanted, self._scope.closed_days)
        keyed, closed = rows["keyed_windows"], rows["final_windows"]
        in_keyed = found.windows if definition.windows.partial_results else found.closed
        appends: list[Appended] = [
            (tables.keyed_windows, keyed.rows, in_keyed),
            (tables.final_windows, closed.rows, found.closed),
        ]
        if dropped:
            appends.append((tables.late_records, rows["late_records"].rows, dropped))
        if found.failed:
            appends.append(_computed(tables.failed_windows, rows["failed_windows"].frame))
        if definition.windows.alerts:
            appends += self._alerts(fetched, closed, found.alerts)
        if tables.firings.is_written:
            appends += self._firings.compute(marked, self._from_ms, closed)
        late = dropped - found.late.outside_windows
        tasks = [append_of(*rows, self.batch, self.append) for rows in appends if rows[-1]]
        return ComputedBatch(tasks, late, found.failed, found.undecided)

    @property
    def earlier_records(self) -> int:
        """The most earlier records that the micro-batch reads; 0 if only a query can count them."""
        if self.definition.needs_records:
            return 0
        return self.of_pipeline.raw_events.rows_since(self.fresh.sparkSession, self._from_ms)

    @cached_property
    def _scope(self) -> BatchScope:
        pipeline, delay_ms = self.definition.pipeline, self.definition.spec.close_delay_ms
        first_day, idle_after_ms = pipeline.partitions.start, pipeline.source.idle_after
        return scope_of(self.before, self.after, self.batch, delay_ms, first_day, idle_after_ms)

    @cached_property
    def _computed_day(self) -> int:
        """The number of the last day of the micro-batch, for which its windows are computed."""
        return day_number(self._scope.arrival_units[-1])

    @property
    def _firings(self) -> BatchFirings:
        before, after = self.before.merge, self.after.merge
        assert before is not None  # noqa: S101  the stream merges if windows have a trigger
        assert after is not None  # noqa: S101
        return BatchFirings(self.definition, self.batch, self._scope, before, after)

    def _records(self) -> DataFrame:
        """The micro-batch's records, and earlier records that its windows or late records need.

        The records are marked by the definition's filter, as firings need all of them.
        """
        if self._from_ms > NEVER_MS:
            earlier = self._earlier(self._from_ms)
            earlier = earlier.where(F.col("event_time") >= self._scope.not_before(self._from_ms))
        else:
            earlier = self._earlier()
        both = earlier.unionByName(self.fresh.select(*earlier.columns))
        is_new = F.coalesce(F.col("batch") == self._number, F.lit(False))
        return self._to_read(both, is_new)

    @cached_property
    def _new_records(self) -> DataFrame:
        """The micro-batch's records alone, for which no table is read."""
        fresh = self.fresh.select(*self.of_pipeline.raw_events.schema.names)
        return passing(self._to_read(fresh, F.lit(True)))

    def _to_read(self, raw: DataFrame, is_new: Column) -> DataFrame:
        delay_ms, scope = self.definition.spec.close_delay_ms, self._scope
        reads = scope.reads(self._from_ms)
        rows = self.definition.marked_records(raw)
        return records_to_read(rows, scope.timeline, reads, delay_ms, is_new=is_new)

    def _earlier(self, since_ms: int | None = None) -> DataFrame:
        """The records before the micro-batch; records before `since_ms` may be left out."""
        raw = self.of_pipeline.raw_events.read(self.fresh.sparkSession, since_ms=since_ms)
        return raw.where(F.col("batch").isNull() | (F.col("batch") < self._number))

    @property
    def _number(self) -> Column:
        """The micro-batch's number, to compare with a column of raw_events."""
        return literal(self.batch, F.col("offset"))

    @cached_property
    def _from_ms(self) -> int:
        """The event time from which on records matter to windows that are not closed."""
        before_ms = self._scope.closing.before_ms
        arrived = self.fresh
        if self.definition.needs_records:
            earlier = self._earlier()
            both = earlier.unionByName(arrived.select(*earlier.columns))
            arrived = self.definition.records(both)
        return self.definition.lookback_ms(arrived, [before_ms])[before_ms]

    def _as_rows(self, computed: DataFrame) -> DataFrame:
        """The windows as rows of keyed_windows, each in the arrival unit that closed it.

        `_broken` is the number of rules that a closed window breaks, or null. `_failed` and
        `_undecided`, where aggregates or rules may fail, are flags of closed windows. The rows of
        `arrival_unit_windows` for records that no window counts are included.
        """
        definition = self.definition
        found = with_instants(computed)
        last_ms = definition.spec.last_instant(F.col("_window_end_ms"))
        arrival_unit = self._scope.closed_days.closing_day(last_ms)
        placed = found.withColumns(
            {"arrival_unit": arrival_unit, "batch": literal(self.batch, F.col("record_count"))}
        )
        schema = self.definition.tables.keyed_windows.schema
        columns = {field.name: F.col(field.name).cast(field.dataType) for field in schema}
        more = [name for name in (*PARTLY_LATE, REASONS) if name in placed.columns]
        more.append("_computed_day")
        rows = placed.select(*[column.alias(name) for name, column in columns.items()], *more)
        broken = [F.when(F.expr(rule.when), 1).otherwise(0) for rule in definition.rules.values()]
        rule_count = sum(broken, F.lit(0))
        flags = {_BROKEN: F.when(F.col("closed") & (rule_count > 0), rule_count)}
        if definition.windows.failure_messages(definition.result_columns):
            flags[_FAILED] = F.col("closed") & (F.size("failed") > 0)
        undecided = definition.windows.undecided_rules_sql(definition.result_columns)
        if undecided is not None:
            flags[_UNDECIDED] = F.col("closed") & (F.size(F.expr(undecided)) > 0)
        return rows.withColumns(flags)

    def _late_on_arrival(self, records: DataFrame) -> DataFrame:
        """The micro-batch's records that no window can count any more."""
        spec = self.definition.spec
        if spec.late_after_ms is None:
            late = self.definition.late_records(records, None, [self._computed_day])
            return late.select(F.lit(False).alias("is_outside_windows"))
        late = self._new_records.where(is_late(spec) | is_outside_windows(spec))
        return late.select(is_outside_windows(spec).alias("is_outside_windows"))

    def _fetched(self, placed: DataFrame, late: DataFrame) -> tuple[FetchedRows, _Late]:
        """Computes the windows, and counts the late records at the same time."""
        tables = (self.definition.tables.keyed_windows, self.definition.tables.final_windows)
        may_fetch = all(
            table.fits_in_driver(placed.sparkSession, self._most_windows) for table in tables
        )
        with ThreadPoolExecutor(1) as thread:
            counted = late.agg(F.count("*"), F.count_if("is_outside_windows"))
            late_counts = thread.submit(counted.collect)
            return fetched_rows(placed, may_fetch=may_fetch), _Late(*late_counts.result()[0])

    @property
    def _most_windows(self) -> int:
        """A rough upper bound of the windows of all definitions in the micro-batch.

        The driver holds the windows of all definitions until they are written.
        """
        spec = self.definition.spec
        of_record = 2 if spec.step_ms is None else -(-(spec.length_ms or 0) // spec.step_ms)
        return of_record * self.record_count * len(self.definition.pipeline.windows)

    def _found(self, fetched: FetchedRows, late: _Late) -> _Found:
        """Counts the rows of each table."""
        known = ["record_count", *(name for name in PARTLY_LATE[:1] if name in fetched.columns)]
        flags = [name for name in (_FAILED, _UNDECIDED) if name in fetched.columns]
        totals = fetched.totals(known, ["closed", _BROKEN, *flags])
        # Row windows have no column of partly late records: a record is counted or late on arrival.
        windows, *dropped = totals[: len(known)]
        closed, alerts, *of_flags = totals[len(known) :]
        counts = dict(zip(flags, of_flags, strict=True))
        failed, undecided = counts.get(_FAILED, 0), counts.get(_UNDECIDED, 0)
        return _Found(windows, closed, alerts, failed, undecided, sum(dropped), late)

    def _alerts(self, fetched: FetchedRows, closed: FetchedRows, count: int) -> list[Appended]:
        """Alerts, and what happened to episodes, some of which may begin earlier."""
        tables, (before_ms, after_ms) = self.definition.tables, self._scope.closing
        silent = self.definition.spec.has_silences
        wanted = ["alerts"] if count else []
        if count or silent:
            wanted.append("episodes")
        if tables.notifications.is_written and (after_ms > before_ms or silent):
            wanted.append("notifications")
        if not wanted:
            return []
        days = BatchEpisodes(self.definition, self._scope, self._from_ms, closed)
        broken = fetched.known(_BROKEN).frame.select(*tables.final_windows.schema.names)
        rows = self.definition.alert_rows(broken, days.joined, wanted)
        appends = [(tables.alerts, rows["alerts"], count)] if count else []
        others = (tables.episodes, tables.notifications)
        listed = [table for table in others if table.short_name in wanted]
        return appends + [_computed(table, rows[table.short_name]) for table in listed]


def _computed(table: Table, rows: DataFrame) -> Appended:
    """Computes new rows of a table once, and counts them."""
    typed = table.typed(rows)
    found = fetched_rows(typed, may_fetch=table.is_written_by_driver(typed.sparkSession))
    (row_count,) = found.totals(["arrival_unit"], [])
    return table, found.rows, row_count


def append_of(
    table: Table, rows: DataFrame | pa.Table, row_count: int, batch: int, append: Append
) -> Callable[[], None]:
    """A task that appends a micro-batch's rows to a table."""
    return lambda: append(table, rows, batch, row_count)
