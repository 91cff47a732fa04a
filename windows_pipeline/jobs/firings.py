"""Computes the firings of windows with a trigger, and their early warnings (rules E2, E5)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, timedelta

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from windows_pipeline.arrival.log import ArrivalLog
from windows_pipeline.arrival.merge import BEFORE_ALL, Merge
from windows_pipeline.checks.firing_rules import (
    closed_checks,
    early_warning_checks,
    firing_checks,
    processed_checks,
)
from windows_pipeline.checks.own_checks import own_checks_of_results
from windows_pipeline.checks.recounts.firings import (
    with_previous_and_final,
    with_their_firing,
    with_their_firings,
    with_their_results,
)
from windows_pipeline.checks.run import Batch, Check
from windows_pipeline.compat.local_frame import small_frame
from windows_pipeline.config.windows.firing_trigger import FiringTrigger
from windows_pipeline.engine.firings.kernel import AFTER
from windows_pipeline.incremental.arrival_units import gapless_days_frame
from windows_pipeline.incremental.firings import Positions
from windows_pipeline.jobs.job import CachedRows, Rows, Stage, publish_in_order
from windows_pipeline.jobs.windows_job import WindowsJob
from windows_pipeline.storage.instants import with_milliseconds
from windows_pipeline.storage.table import Table
from windows_pipeline.text.instants import day_number


class FiringsJob(WindowsJob):
    """Fills firings, early_warnings and processed of a window definition with a trigger."""

    @property
    def trigger(self) -> FiringTrigger:
        """When the windows fire."""
        trigger = self.windows.trigger
        assert trigger is not None  # noqa: S101  a definition without a trigger has no such job
        return trigger

    @property
    def inputs(self) -> list[Table]:
        """raw_events and arrival_log, and final windows, with which warnings are compared."""
        tables = self.window_tables
        return [
            self.of_pipeline.raw_events,
            self.of_pipeline.arrival_log,
            tables.late_records,
            tables.final_windows,
        ]

    @property
    def tables(self) -> list[Table]:
        """Firings; early_warnings and processed if the definition can have any."""
        return self.written(*self.window_tables.of_firings)

    @property
    def computed_days_table(self) -> Table:
        """The computed days of firings, apart from those of windows."""
        return self.window_tables.days_of_firings

    @property
    def checks(self) -> list[Check]:
        """The checks of firings, of early warnings, and of a window function's rows."""
        checks = [*firing_checks(self.trigger), *closed_checks(self.trigger)]
        if self.window_tables.early_warnings.is_written:
            checks += self._warning_checks
        if self.window_tables.processed.is_written:
            checks += processed_checks()
        own = own_checks_of_results(self.windows, self.result_columns, "firings")
        return [*checks, *own.checks]

    @property
    def _warning_checks(self) -> list[Check]:
        return early_warning_checks(self.windows, self.result_columns)

    def stage(self, spark: SparkSession, days: Sequence[date], log: ArrivalLog) -> Stage:
        """Computes the days' firings from raw_events alone, in any order of runs (rule H1).

        Raises:
            CorrectionUnfinishedError: A correction of these windows is not finished.
            BatchUnfinishedError: The stream's last micro-batch is not in all tables.
        """
        self.refuse_while_unfinished(spark, log)
        arrivals = self.arrivals(log)
        records = self.marked_records(spark, days, log)
        merge = arrivals.merge(self.pipeline.source.idle_after)
        came_with = F.unix_date(f"{AFTER}arrival_unit") == F.col("_computed_day")
        reached = {
            day_number(arrival_unit.day): _positions(merge, arrival_unit.day)
            for arrival_unit in arrivals.arrival_units(days)
        }
        final = with_milliseconds(self.window_tables.final_windows.of_arrival_units(spark, days))
        cached = CachedRows()
        rows = self.definition.firing_rows(
            records, reached, merge.resumed, came_with, final, cached.keep
        )
        for table in self.tables[1:]:
            # A definition without rules warns of nothing.
            none = small_frame(spark, [], table.schema)
            rows[table.short_name] = cached.keep(rows.get(table.short_name, none))
        return Stage.of(self.tables, rows, cached)

    def check_batches(
        self,
        spark: SparkSession,
        days: Sequence[date],
        rows: Rows,
        log: ArrivalLog,
    ) -> list[Batch]:
        """Joins firings with earlier firings and final windows, and the other rows with firings.

        The definition's own checks look at the firings themselves.
        """
        fired = rows["firings"]
        arrivals = self.arrivals(log)
        arrival_units = F.broadcast(gapless_days_frame(spark, arrivals, days))
        final = self.window_tables.final_windows.of_arrival_units(spark, days)
        values = ["record_count", *self.windows.aggregates, "failed"]
        window = self.windows.window_key
        numbered = with_previous_and_final(fired, final, arrival_units, window, values)
        closed = with_their_firings(final, fired, arrival_units, window, values)
        batches = [
            Batch("firings", numbered, firing_checks(self.trigger)),
            Batch("closed", closed, closed_checks(self.trigger)),
        ]
        if self.window_tables.early_warnings.is_written:
            warned = rows["early_warnings"]
            warnings = with_their_results(warned, fired, final, self.definition.rules)
            batches.append(Batch("early_warnings", warnings, self._warning_checks))
        if self.window_tables.processed.is_written:
            made = with_their_firing(rows["processed"], fired, window)
            batches.append(Batch("processed", made, processed_checks()))
        own = own_checks_of_results(self.windows, self.result_columns, "firings")
        unblocked = [arrival_unit.day for arrival_unit in arrivals.arrival_units(days)]
        return [*batches, *own.batches(fired, unblocked)]

    def publish(self, spark: SparkSession, days: Sequence[date], stage: Stage) -> dict[str, int]:
        """Writes firings, early warnings and processed; final windows do not change."""
        del spark
        return publish_in_order(days, stage.tables.values())


def _positions(merge: Merge, day: date) -> Positions:
    before = merge.position_after.get(day - timedelta(days=1), BEFORE_ALL)
    return Positions(before, merge.position_after[day])
