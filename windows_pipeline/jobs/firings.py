"""Tells each firing of the windows that have a trigger, and what rules it broke (rule E2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, timedelta

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from windows_pipeline.arrival.log import ArrivalLog
from windows_pipeline.arrival.merge import BEFORE_ALL, Merge, Resumed
from windows_pipeline.checks.firing_rules import closed_checks, early_warning_checks, firing_checks
from windows_pipeline.checks.recount_firings import (
    with_previous_and_final,
    with_their_firings,
    with_their_results,
)
from windows_pipeline.checks.run import Batch, Check
from windows_pipeline.compat.local_frame import small_frame
from windows_pipeline.config.firing_trigger import FiringTrigger
from windows_pipeline.engine.firings.kernel import AFTER, FiringSpec
from windows_pipeline.incremental.early_warnings import early_warnings
from windows_pipeline.incremental.firings import Positions, unit_firings
from windows_pipeline.incremental.records import day_number
from windows_pipeline.incremental.units import gapless_days_frame
from windows_pipeline.jobs.job import Stage, StagedTable, kept, publish_in_order
from windows_pipeline.jobs.windows_job import WindowsJob
from windows_pipeline.storage.instants import with_instants, with_milliseconds
from windows_pipeline.storage.table import Table
from windows_pipeline.storage.tables import FiringTables, computed_days, firing_tables


class FiringsJob(WindowsJob):
    """Fills firings and early_warnings of one named window definition with a trigger."""

    @property
    def fires(self) -> FiringTables:
        """The tables of its firings."""
        tables = firing_tables(self.pipeline, self.windows_name, self.settings.warehouse)
        assert tables is not None  # noqa: S101  such a definition has no job of this kind
        return tables

    @property
    def trigger(self) -> FiringTrigger:
        """When its windows fire."""
        trigger = self.windows.trigger
        assert trigger is not None  # noqa: S101  see above
        return trigger

    @property
    def warns_in(self) -> Table | None:
        """The table of early warnings, where there are rules that can warn."""
        return self.fires.early_warnings if self.windows.alerts else None

    @property
    def inputs(self) -> list[Table]:
        """raw_events and arrival_log; what closed is there to settle warnings and for checks."""
        own = self.own
        return [
            self.source.raw_events,
            self.source.arrival_log,
            own.late_records,
            own.final_windows,
        ]

    @property
    def tables(self) -> list[Table]:
        """Firings, and early_warnings where there are any."""
        return self.fires.all

    @property
    def notes(self) -> Table:
        """Firings have notes of their own."""
        return computed_days(self.pipeline, self.windows_name, self.settings.warehouse, fired=True)

    @property
    def checks(self) -> list[Check]:
        """The checks of firings, and of early warnings."""
        checks = [*firing_checks(self.trigger), *closed_checks(self.trigger)]
        return [*checks, *self._warning_checks] if self.fires.early_warnings else checks

    @property
    def _warning_checks(self) -> list[Check]:
        columns = self.windows.result_columns(self.pipeline.source)
        return early_warning_checks(self.windows, columns)

    def stage(self, spark: SparkSession, days: Sequence[date], log: ArrivalLog) -> Stage:
        """Computes the days' firings from raw_events alone, in any order of runs (rule H1).

        Raises:
            CorrectionUnfinishedError: A correction of these windows is not finished.
            BatchUnfinishedError: The stream's last micro-batch is not in all tables.
        """
        self.refuse_while_unfinished(spark, log)
        arrivals = self.arrivals(log)
        records = self.raw_records(spark, days, log)
        merge = arrivals.merge(self.pipeline.source.idle_after)
        came_with = F.unix_date(f"{AFTER}arrival_unit") == F.col("_computed_day")
        units = arrivals.units(days)
        positions = {day_number(unit.day): _positions(merge, unit.day) for unit in units}
        fired = kept(self.fired(records, positions, merge.resumed, came_with))
        staged = [StagedTable(self.fires.firings, fired.where("_is_new"))]
        cached = [fired]
        if self.warns_in is not None:
            final = self.own.final_windows.of_units(spark, days)
            warnings = kept(early_warnings(fired, with_milliseconds(final), self.rules))
            staged.append(StagedTable(self.warns_in, warnings))
            cached.append(warnings)
        elif self.fires.early_warnings is not None:
            table = self.fires.early_warnings
            staged.append(StagedTable(table, small_frame(spark, [], table.schema)))
        return Stage(staged, cached)

    def fired(
        self,
        records: DataFrame,
        positions: Mapping[int, Positions],
        resumed: Sequence[Resumed],
        came_with: Column,
    ) -> DataFrame:
        """The firings of some targets as rows of the table; see `unit_firings`.

        Where there are rules it has earlier ones of the same windows, too: a warning is of a
        window's first firing that breaks the rule, which came before, maybe.
        """
        trigger = self.trigger.spec
        target = FiringSpec(trigger.fitted(self.windows.spec), trigger)
        fired = unit_firings(
            records,
            target,
            self.windows.aggregate_list,
            positions,
            resumed,
            came_with,
            with_earlier=self.warns_in is not None,
        )
        return with_instants(fired).withColumns(
            {
                "stream_time": F.timestamp_millis("_stream_time_ms"),
                "fired_after": F.col(f"{AFTER}offset"),
                # Both are columns where there may be several source partitions.
                "fired_after_unit": F.col(f"{AFTER}arrival_unit"),
                "fired_after_partition": F.col(f"{AFTER}source_partition"),
            }
        )

    def evidence(
        self,
        spark: SparkSession,
        days: Sequence[date],
        rows: Sequence[DataFrame],
        log: ArrivalLog,
    ) -> list[Batch]:
        """The firings beside those before them and what closed; warnings beside what they tell."""
        fired = rows[0]
        units = F.broadcast(gapless_days_frame(spark, self.arrivals(log), days))
        final = self.own.final_windows.of_units(spark, days)
        values = ["record_count", *self.windows.aggregates]
        numbered = with_previous_and_final(fired, final, units, values)
        closed = with_their_firings(final, fired, units, values)
        batches = [
            Batch("firings", numbered, firing_checks(self.trigger)),
            Batch("closed", closed, closed_checks(self.trigger)),
        ]
        if self.fires.early_warnings is not None:
            told = with_their_results(rows[1], fired, final, self.rules)
            batches.append(Batch("early_warnings", told, self._warning_checks))
        return batches

    def publish(self, spark: SparkSession, days: Sequence[date], stage: Stage) -> dict[str, int]:
        """Writes both; neither changes what is final."""
        del spark
        return publish_in_order(days, stage.tables)


def _positions(merge: Merge, day: date) -> Positions:
    before = merge.position_after.get(day - timedelta(days=1), BEFORE_ALL)
    return Positions(before, merge.position_after[day])
