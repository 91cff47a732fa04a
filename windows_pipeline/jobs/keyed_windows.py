"""Computes the windows that each day changed or closed, and lists the day's late records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date

from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from windows_pipeline.arrival.log import ArrivalLog, is_of_stream
from windows_pipeline.checks.compare import arrival_units_that_differ
from windows_pipeline.checks.recounts.windows import (
    OF_ACCOUNTS,
    account_for_records,
)
from windows_pipeline.checks.run import Batch, Check, with_verdicts
from windows_pipeline.checks.table_rules import VALUES_ARE_THOSE_OF_RECORDS, accounting_checks
from windows_pipeline.checks.window_rules import recount_windows, window_checks
from windows_pipeline.compat.local_frame import small_frame
from windows_pipeline.incremental.arrival_units import arrival_units_frame
from windows_pipeline.incremental.definition_records import passing
from windows_pipeline.jobs.job import CachedRows, Rows, Stage, publish_in_order
from windows_pipeline.jobs.windows_job import WindowsJob
from windows_pipeline.storage.arrival_units import in_arrival_units
from windows_pipeline.storage.diff import differences
from windows_pipeline.storage.fetched_rows import FetchedRows
from windows_pipeline.storage.instants import with_instants, with_milliseconds
from windows_pipeline.storage.table import Table

_ACCOUNTED = ("ingested", "counted", "pending", "late", "rejected")


class KeyedWindowsJob(WindowsJob):
    """Fills keyed_windows, late_records and failed_windows of a definition (rules A to E4, G3)."""

    @property
    def inputs(self) -> list[Table]:
        """raw_events, arrival_log and rejected_records."""
        return [
            self.of_pipeline.raw_events,
            self.of_pipeline.arrival_log,
            self.of_pipeline.rejected_records,
        ]

    @property
    def tables(self) -> list[Table]:
        """keyed_windows, late_records and failed_windows."""
        tables = self.window_tables
        return self.written(tables.keyed_windows, tables.late_records, tables.failed_windows)

    @property
    def checks(self) -> list[Check]:
        """The checks of windows, of every record's fate, and of failed aggregates."""
        return [*window_checks(self.windows), *accounting_checks(self.pipeline, self.windows)]

    def stage(self, spark: SparkSession, days: Sequence[date], log: ArrivalLog) -> Stage:
        """Computes the days' windows from raw_events alone.

        Raises:
            CorrectionUnfinishedError: A correction of these windows is not finished.
            BatchUnfinishedError: The stream's last micro-batch is not in all tables.
        """
        self.refuse_while_unfinished(spark, log)
        definition, closings = self.definition, self.arrivals(log).closings(days)
        records, cached = definition.cut(self.raw_records(spark, days, log)), CachedRows()
        computed = _placed(cached.keep(definition.compute(records, closings)))
        wanted = [table.short_name for table in self.tables]
        found = definition.window_rows(computed, records, list(closings), wanted)
        rows = {name: found[name].frame for name in wanted}
        rows["late_records"] = cached.keep(rows["late_records"])
        return Stage.of(self.tables, rows, cached)

    def check_batches(
        self,
        spark: SparkSession,
        days: Sequence[date],
        rows: Rows,
        log: ArrivalLog,
    ) -> list[Batch]:
        """Joins the windows with a recount from raw records, and accounts for every record."""
        keyed, late = rows["keyed_windows"], rows["late_records"]
        if is_of_stream(log):
            keyed = _latest(keyed)
            if not self.windows.spec.keeps_bounds:
                keyed = _not_outgrown(keyed)
        arrivals = self.arrivals(log)
        raw = self.logged_records(spark, log)
        records = passing(arrivals.records(raw, days))
        stored = with_milliseconds(keyed)
        closings, tuning = arrivals.closings(days), self.definition.tuning
        recounted = recount_windows(records, stored, self.windows.spec, closings, tuning)
        checks = window_checks(self.windows)
        judged = with_verdicts(recounted, checks, *OF_ACCOUNTS)
        arrival_units = arrival_units_frame(spark, arrivals, days)
        rejected = self.of_pipeline.rejected_records.of_arrival_units(spark, days)
        rules = self.windows.undecided_rules_sql(self.result_columns)
        undecided = None
        if rules is not None:
            closed = keyed.where("closed").withColumn("undecided_rules", F.expr(rules))
            undecided = closed.where(F.size("undecided_rules") > 0)
        marked = None if self.windows.where is None else raw.where(in_arrival_units(days))
        accounts = account_for_records(judged, late, rejected, arrival_units, undecided, marked)
        if is_of_stream(log):
            accounts = self._with_logged_rejected(accounts, arrivals.rejected(days))
        return [
            Batch(
                "keyed_windows",
                recounted.where(F.col("is_window")),
                checks,
                verdicts=judged.where(F.col("is_window")),
                shared=judged,
            ),
            Batch(
                "accounting",
                accounts,
                accounting_checks(self.pipeline, self.windows),
                numbers=_ACCOUNTED if marked is None else (*_ACCOUNTED, "filtered"),
            ),
        ]

    def _with_logged_rejected(self, accounts: DataFrame, logged: Mapping[date, int]) -> DataFrame:
        """Removes from the accounts the rejected records of a micro-batch that the log lacks.

        The check of raw_events compares the table with the log.
        """
        spark = accounts.sparkSession
        counts = small_frame(spark, logged.items(), "arrival_unit date, logged bigint")
        joined = accounts.join(F.broadcast(counts), "arrival_unit", "left")
        rejected = F.least("rejected", F.coalesce("logged", F.lit(0)))
        return joined.withColumn("rejected", rejected).drop("logged")

    def recount(
        self,
        spark: SparkSession,
        days: Sequence[date],
        rows: Rows,
        log: ArrivalLog,
    ) -> list[Batch]:
        """Computes the windows again from raw_events; returns the windows that differ.

        For a stream only closed windows: an open window stands in the last day of its micro-batch.
        """
        records = self.definition.cut(self.raw_records(spark, days, log))
        closings = self.arrivals(log).closings(days)
        computed = _placed(self.definition.compute(records, closings))
        of_tables = self.definition.window_rows(computed, records, list(closings), [])
        again = of_tables["keyed_windows"].frame
        stored = rows["keyed_windows"]
        if is_of_stream(log):
            again, stored = again.where("closed"), _latest(stored).where("closed")
        schema = self.window_tables.keyed_windows.schema
        columns = [
            F.col(field.name).cast(field.dataType) for field in schema if field.name != "batch"
        ]
        compared = {"stored": stored.select(columns), "again": again.select(columns)}
        in_doubt = arrival_units_that_differ(compared, ["stored", "again"])
        doubtful = in_arrival_units(sorted(in_doubt)) if in_doubt else F.lit(False)
        before, after = (frame.where(doubtful) for frame in compared.values())
        found = differences(before, after, ("arrival_unit", *self.windows.window_key))
        check = Check(
            VALUES_ARE_THOSE_OF_RECORDS,
            "Each window has the values that its records give when they are computed again from "
            "raw_events; `old` is what the table has, `new` what it should have",
            "change IS NOT NULL",
        )
        return [Batch("values", found, [check])]

    def publish(self, spark: SparkSession, days: Sequence[date], stage: Stage) -> dict[str, int]:
        """Writes late_records, failed_windows and keyed_windows."""
        order = ("late_records", "failed_windows", "keyed_windows")
        return publish_in_order(days, [stage.tables[name] for name in order])


def _placed(computed: DataFrame) -> FetchedRows:
    """Computed windows with the columns of keyed_windows."""
    return FetchedRows(with_instants(computed).withColumn("batch", F.lit(None)))


def _latest(keyed: DataFrame) -> DataFrame:
    """The newest version of each window of a day."""
    newest_first = Window.partitionBy("arrival_unit", "key", "window_end").orderBy(F.desc("batch"))
    numbered = keyed.withColumn("_rank", F.rank().over(newest_first))
    return numbered.where("_rank = 1").drop("_rank")


def _not_outgrown(keyed: DataFrame) -> DataFrame:
    """Each day's sessions without the open sessions that a later micro-batch merged into others.

    An open session that lies within a later session of its key and day is part of that session.
    """
    older, newer = keyed.alias("older"), keyed.alias("newer")
    outgrown = (
        (F.col("older.arrival_unit") == F.col("newer.arrival_unit"))
        & F.col("older.key").eqNullSafe(F.col("newer.key"))
        & ~F.col("older.closed")
        & (F.col("older.batch") < F.col("newer.batch"))
        & (F.col("newer.window_start") <= F.col("older.window_start"))
        & (F.col("older.window_end") <= F.col("newer.window_end"))
    )
    return older.join(newer, outgrown, "anti")
