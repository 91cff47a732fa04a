"""Tells each firing of the windows that have a trigger, and what rules it broke (rule E2)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from windows_pipeline.config.firing_trigger import FiringTrigger
from windows_pipeline.engine.early_warnings import early_warnings
from windows_pipeline.engine.firing_evaluation import fire
from windows_pipeline.engine.firing_kernel import AFTER, FiringTarget
from windows_pipeline.engine.unit_windows import ARRIVAL
from windows_pipeline.jobs.arrivals import Arrivals, stretches_frame
from windows_pipeline.jobs.job import Stage, StagedTable, kept, publish_in_order
from windows_pipeline.jobs.log import ArrivalLog
from windows_pipeline.jobs.windows_job import WindowsJob
from windows_pipeline.quality.firing_checks import (
    closed_checks,
    early_warning_checks,
    firing_checks,
)
from windows_pipeline.quality.firing_evidence import (
    beside_closed,
    beside_others,
    beside_results,
)
from windows_pipeline.quality.validation import Batch, Check
from windows_pipeline.tables.catalog import FiringTables, firing_tables
from windows_pipeline.tables.delta import Table, in_units
from windows_pipeline.tables.instants import with_instants


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
        """
        self.refuse_while_correcting(spark)
        arrivals = self.arrivals(log)
        raw = self.source.raw_events.read(spark)
        warns = self.fires.early_warnings if self.windows.alerts else None
        # A warning is of a window's first firing that breaks the rule: of earlier days, maybe.
        fired = kept(self._fired(arrivals, raw, days, with_earlier=warns is not None))
        staged = [StagedTable(self.fires.firings, fired.where("fired_in = unit"))]
        cached = [fired]
        if warns is not None:
            final = self.own.final_windows.read(spark).where(in_units(days))
            warnings = kept(early_warnings(fired, final, self.rules))
            staged.append(StagedTable(warns, warnings))
            cached.append(warnings)
        elif self.fires.early_warnings is not None:
            table = self.fires.early_warnings
            staged.append(StagedTable(table, spark.createDataFrame([], table.schema)))
        return Stage(staged, cached)

    def _fired(
        self, arrivals: Arrivals, raw: DataFrame, days: Sequence[date], *, with_earlier: bool
    ) -> DataFrame:
        """The days' firings; or also the earlier ones of the windows that each day found open."""
        records = arrivals.records(raw, days)
        if with_earlier:
            records = records.drop("is_new")
        trigger = self.trigger.spec
        target = FiringTarget(trigger.fitted(self.windows.spec), trigger)
        closings = arrivals.closings(days)
        aggregates = self.windows.aggregate_list
        fired = fire(records, dict.fromkeys(closings, target), ["key"], aggregates, ARRIVAL)
        open_before = F.lit(True)
        if with_earlier:
            # Of windows that were closed before, not all records were read.
            closes = {number: closing.before_ms for number, closing in closings.items()}
            spark = raw.sparkSession
            known = spark.createDataFrame([*closes.items()], "target int, close_before_ms bigint")
            fired = fired.join(F.broadcast(known), "target")
            open_before = F.col("window_end_ms") > F.col("close_before_ms")
        return with_instants(fired.where(open_before)).withColumns(
            {
                "stream_time": F.timestamp_millis("stream_time_ms"),
                "fired_in": F.col(f"{AFTER}unit"),
                "fired_after": F.col(f"{AFTER}offset"),
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
        units = F.broadcast(stretches_frame(spark, self.arrivals(log), days))
        final = self.own.final_windows.read(spark).where(in_units(days))
        values = ["record_count", *self.windows.aggregates]
        numbered = beside_others(fired, final, units, values)
        closed = beside_closed(fired, final, units, values)
        batches = [
            Batch("firings", numbered, numbered, firing_checks(self.trigger)),
            Batch("closed", closed, closed, closed_checks(self.trigger)),
        ]
        if self.fires.early_warnings is not None:
            told = beside_results(rows[1], fired, final, self.rules)
            batches.append(Batch("early_warnings", told, told, self._warning_checks))
        return batches

    def publish(self, spark: SparkSession, days: Sequence[date], stage: Stage) -> dict[str, int]:
        """Writes both; neither changes what is final."""
        del spark
        return publish_in_order(days, stage.tables)
