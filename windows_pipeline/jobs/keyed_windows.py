"""Computes the windows that each unit changed or closed, and lists its late records."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from windows_pipeline.arrival.log import ArrivalLog, is_of_stream
from windows_pipeline.checks.compare import units_that_differ
from windows_pipeline.checks.recount_rows import recount_rows
from windows_pipeline.checks.recount_windows import account_for_records, recount_windows
from windows_pipeline.checks.run import Batch, Check, breaking
from windows_pipeline.checks.table_rules import accounting_checks
from windows_pipeline.checks.window_rules import window_checks
from windows_pipeline.incremental.late import late_records
from windows_pipeline.incremental.units import units_frame
from windows_pipeline.incremental.windows import unit_windows
from windows_pipeline.jobs.job import Stage, StagedTable, kept, publish_in_order
from windows_pipeline.jobs.windows_job import WindowsJob
from windows_pipeline.kernels.windows.chunk import Closing
from windows_pipeline.storage.arrival_units import in_units
from windows_pipeline.storage.diff import differences
from windows_pipeline.storage.instants import with_instants, with_milliseconds
from windows_pipeline.storage.table import Table
from windows_pipeline.windows import GracedRows, SessionWindows


class KeyedWindowsJob(WindowsJob):
    """Fills keyed_windows and late_records of one named window definition (rules A to D, E4)."""

    @property
    def inputs(self) -> list[Table]:
        """raw_events, arrival_log and rejected_records."""
        return list(vars(self.source).values())

    @property
    def tables(self) -> list[Table]:
        """keyed_windows and late_records."""
        return [self.own.keyed_windows, self.own.late_records]

    @property
    def checks(self) -> list[Check]:
        """The windows' checks and the accounting."""
        return [*window_checks(self.windows), *accounting_checks(self.pipeline)]

    def stage(self, spark: SparkSession, days: Sequence[date], log: ArrivalLog) -> Stage:
        """Computes the days' windows from raw_events alone.

        Raises:
            CorrectionUnfinishedError: A correction of these windows is not finished.
            BatchUnfinishedError: The stream's last micro-batch is not in all tables.
        """
        self.refuse_while_unfinished(spark, log)
        records = self.raw_records(spark, days, log)
        closings = self.arrivals(log).closings(days)
        computed = kept(self._computed(records, closings))
        values = list(self.pipeline.source.values)
        late = late_records(records, computed, self.windows.spec, values, list(closings))
        late = kept(late)
        staged = [
            StagedTable(self.own.keyed_windows, self._windows_in(computed)),
            StagedTable(self.own.late_records, late),
        ]
        return Stage(staged, [computed, late])

    def _computed(self, records: DataFrame, closings: dict[int, Closing]) -> DataFrame:
        """The windows of some targets, with what of their records no window counts."""
        return unit_windows(
            records,
            self.windows.spec,
            self.windows.aggregate_list,
            closings,
            only_closed=not self.windows.partial_results,
            tuning=self.settings.tuning,
        )

    def _windows_in(self, computed: DataFrame) -> DataFrame:
        """Computed windows as rows of keyed_windows."""
        windows = computed.where(F.col("_window_end_ms").isNotNull())
        if not self.windows.partial_results:
            windows = windows.where("closed")
        return with_instants(windows).withColumn("batch", F.lit(None))

    def evidence(
        self,
        spark: SparkSession,
        days: Sequence[date],
        rows: Sequence[DataFrame],
        log: ArrivalLog,
    ) -> list[Batch]:
        """The windows beside what the raw records say of them, and where each record went."""
        keyed, late = rows
        if is_of_stream(log):
            keyed = _latest(keyed)
            if isinstance(self.windows.spec, SessionWindows):
                keyed = _not_outgrown(keyed)
        spec = self.windows.spec
        arrivals = self.arrivals(log)
        records = arrivals.records(self.source.raw_events.read(spark), days)
        given = with_milliseconds(keyed)
        if isinstance(spec, GracedRows):
            beside = recount_rows(records, given, spec, arrivals.closings(days))
        else:
            beside = recount_windows(records, given, spec, self.settings.tuning)
        checks = window_checks(self.windows)
        told = beside.where(~F.col("is_window") | breaking(checks))
        units = units_frame(spark, arrivals, days)
        rejected = self.source.rejected_records.of_units(spark, days)
        accounts = account_for_records(told, late, rejected, units)
        return [
            Batch("keyed_windows", told.where(F.col("is_window")), checks, shared=told),
            Batch("accounting", accounts, accounting_checks(self.pipeline)),
        ]

    def recount(
        self,
        spark: SparkSession,
        days: Sequence[date],
        rows: Sequence[DataFrame],
        log: ArrivalLog,
    ) -> list[Batch]:
        """The windows that come out otherwise when they are computed again from raw_events.

        Of a stream the closed ones: an open one stands in the last day of its micro-batch.
        """
        records = self.raw_records(spark, days, log)
        again = self._windows_in(self._computed(records, self.arrivals(log).closings(days)))
        stored = rows[0]
        if is_of_stream(log):
            again, stored = again.where("closed"), _latest(stored).where("closed")
        schema = self.own.keyed_windows.schema
        columns = [
            F.col(field.name).cast(field.dataType) for field in schema if field.name != "batch"
        ]
        sides = {"stored": stored.select(columns), "again": again.select(columns)}
        in_doubt = units_that_differ(sides, ["stored", "again"])
        doubtful = in_units(sorted(in_doubt)) if in_doubt else F.lit(False)
        before, after = (side.where(doubtful) for side in sides.values())
        found = differences(before, after, ("arrival_unit", *self.windows.window_key))
        check = Check(
            "values_are_those_of_records",
            "Each window has the values that its records give when they are computed again from "
            "raw_events; `old` is what the table has, `new` what it should have. Where raw records "
            f"were changed: windows-pipeline run {self.pipeline.name}, or, where final windows "
            f"change, {self.correct_command} --from DAY --cause TEXT",
            "change IS NOT NULL",
        )
        return [Batch("values", found, [check])]

    def publish(self, spark: SparkSession, days: Sequence[date], stage: Stage) -> dict[str, int]:
        """Writes late_records and keyed_windows."""
        keyed, late = stage.tables
        return publish_in_order(days, [late, keyed])


def _latest(keyed: DataFrame) -> DataFrame:
    """Each unit's windows as its last micro-batch left them."""
    newest_first = Window.partitionBy("arrival_unit", "key", "window_end").orderBy(F.desc("batch"))
    numbered = keyed.withColumn("place", F.rank().over(newest_first))
    return numbered.where("place = 1").drop("place")


def _not_outgrown(keyed: DataFrame) -> DataFrame:
    """Each unit's sessions without the open ones that a later micro-batch made part of another.

    An open session lies within no other one of its key that stands beside it.
    """
    one, other = keyed.alias("one"), keyed.alias("other")
    outgrown = (
        (F.col("one.arrival_unit") == F.col("other.arrival_unit"))
        & F.col("one.key").eqNullSafe(F.col("other.key"))
        & ~F.col("one.closed")
        & (F.col("one.batch") < F.col("other.batch"))
        & (F.col("other.window_start") <= F.col("one.window_start"))
        & (F.col("one.window_end") <= F.col("other.window_end"))
    )
    return one.join(other, outgrown, "anti")
