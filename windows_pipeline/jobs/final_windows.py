"""Publishes the windows that each day closed; only corrections change them (rule E1)."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from datetime import date
from functools import reduce

from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from windows_pipeline.arrival.log import ArrivalLog
from windows_pipeline.checks.compare import copies_by_frame, differing_arrival_units
from windows_pipeline.checks.own_checks import own_checks_of_results
from windows_pipeline.checks.run import Batch, Check
from windows_pipeline.checks.table_rules import (
    FINAL_NEVER_CHANGED,
    closed_by_arrival_unit,
    closing_checks,
    final_windows_checks,
)
from windows_pipeline.compat.local_frame import small_frame
from windows_pipeline.engine.windows import until_window_closes
from windows_pipeline.incremental.arrival_units import arrival_units_frame, closing_frame
from windows_pipeline.jobs.correction_marker import any_correction
from windows_pipeline.jobs.job import Rows, Stage, cache_rows
from windows_pipeline.jobs.windows_job import WindowsJob
from windows_pipeline.storage.arrival_units import in_arrival_units
from windows_pipeline.storage.diff import differences, with_differences
from windows_pipeline.storage.instants import timestamp_to_ms
from windows_pipeline.storage.table import Table


class FinalWindowsJob(WindowsJob):
    """Fills final_windows of a window definition from its keyed_windows."""

    @property
    def inputs(self) -> list[Table]:
        """keyed_windows, late_records and arrival_log."""
        return [
            self.of_pipeline.arrival_log,
            self.window_tables.keyed_windows,
            self.window_tables.late_records,
        ]

    @property
    def tables(self) -> list[Table]:
        """final_windows."""
        return [self._final_windows]

    @property
    def _final_windows(self) -> Table:
        (table,) = self.written(self.window_tables.final_windows)
        return table

    @property
    def checks(self) -> list[Check]:
        """The checks of final windows."""
        own = own_checks_of_results(self.windows, self.result_columns, "final_windows")
        return [*self._built_in, *closing_checks(), *own.checks]

    @property
    def _built_in(self) -> list[Check]:
        return final_windows_checks(self.windows)

    @property
    def key_columns(self) -> tuple[str, ...]:
        """The columns that identify a final window."""
        return self.window_tables.final_windows.key

    @property
    def _unique_columns(self) -> tuple[str, ...]:
        """The columns that identify a final window over all days."""
        return ("key", *(self.windows.row_key or ("window_end",)))

    def _closed(self, spark: SparkSession, days: Sequence[date]) -> DataFrame:
        keyed = self.window_tables.keyed_windows.of_arrival_units(spark, days)
        columns = [field.name for field in self.window_tables.final_windows.schema]
        return until_window_closes(keyed).select(*columns)

    def stage(self, spark: SparkSession, days: Sequence[date], log: ArrivalLog) -> Stage:
        """Selects the closed windows of the days.

        Raises:
            CorrectionUnfinishedError: A correction of these windows is not finished.
            BatchUnfinishedError: The stream's last micro-batch is not in all tables.
        """
        if not self.starts_over:  # a rebuild forgets corrections
            self.refuse_while_unfinished(spark, log)
            self.window_tables.corrections.create_if_missing(spark)
        closed = cache_rows(self._closed(spark, days))
        return Stage.of([self._final_windows], {"final_windows": closed}, [closed])

    def check_batches(
        self,
        spark: SparkSession,
        days: Sequence[date],
        rows: Rows,
        log: ArrivalLog,
    ) -> list[Batch]:
        """Joins the windows with close times, published windows and corrections.

        A published window has the values that its newest correction recorded. The checks read only
        the days on which a check can fail: the compared frames have different checksums, a window
        lies outside the day's close times, or a window occurs twice. The definition's own checks
        read all windows.
        """
        final = rows["final_windows"]
        corrections = self._corrections(spark, days, rows)
        arrivals = self.arrivals(log)
        arrival_units = arrival_units_frame(spark, arrivals, days)
        closings = F.broadcast(
            arrival_units.select("arrival_unit", "_close_before_ms", "_close_after_ms")
        )
        compared = {
            "final": final,
            "published": with_differences(
                self._published(spark, days),
                newest_corrections(corrections, self.key_columns),
                self.key_columns,
            ),
            "closed": self._closed(spark, days),
        }
        differing = differing_arrival_units(compared, required=["final", "closed"])
        misplaced = _misplaced(final, closings, closed_by_arrival_unit(self.windows))
        repeated = _repeated(final, self._unique_columns)
        in_doubt = _arrival_units(differing, misplaced, repeated)
        compared["before"] = corrections.select(*self.key_columns, "old.*")
        doubtful = {name: _of_arrival_units(frame, in_doubt) for name, frame in compared.items()}
        changes = {
            FINAL_NEVER_CHANGED: differences(
                doubtful["published"], doubtful["final"], self.key_columns
            )
        }
        same_window = Window.partitionBy(*self._unique_columns)
        had = F.col("rows_in_published") + F.col("rows_in_before")
        counted = _with_end_ms(copies_by_frame(doubtful, self.key_columns)).withColumns(
            {
                "_window_start_ms": timestamp_to_ms("window_start"),
                "_times_final": F.sum("rows_in_final").over(same_window),
                "_arrival_unit_had": F.sum(had).over(Window.partitionBy("arrival_unit")),
            }
        )
        judged = counted.join(closings, "arrival_unit")
        closing = closing_frame(spark, arrivals, days)
        own = own_checks_of_results(self.windows, self.result_columns, "final_windows")
        unblocked = [arrival_unit.day for arrival_unit in arrivals.arrival_units(days)]
        return [
            Batch("final_windows", judged, self._built_in, changes=changes),
            Batch("closing", closing, closing_checks(), numbers=closing.columns[1:]),
            *own.batches(final, unblocked),
        ]

    def publish(self, spark: SparkSession, days: Sequence[date], stage: Stage) -> dict[str, int]:
        """Writes the days that have no final windows yet; checks have compared the others."""
        final = stage.tables["final_windows"]
        return {final.table.name: final.publish_new(days)}

    def _published(self, spark: SparkSession, days: Sequence[date]) -> DataFrame:
        """The final windows before the job."""
        return self._final_windows.of_arrival_units(spark, days)

    def _corrections(self, spark: SparkSession, days: Sequence[date], rows: Rows) -> DataFrame:
        """The corrections that the checked windows must agree with."""
        table = self.window_tables.corrections
        if self.starts_over or not any_correction(spark, table):
            return small_frame(spark, [], table.schema)
        return table.of_arrival_units(spark, days)


def newest_corrections(corrections: DataFrame, key_columns: Sequence[str]) -> DataFrame:
    """The newest correction of each window: its key columns and `new`."""
    # In a struct, as max_by ignores nulls.
    new = F.max_by(F.struct("new"), "correction").getField("new")
    return corrections.groupBy(*key_columns).agg(new.alias("new"))


def _with_end_ms(rows: DataFrame) -> DataFrame:
    return rows.withColumn("_window_end_ms", timestamp_to_ms("window_end"))


def _misplaced(final: DataFrame, closings: DataFrame, closed: str) -> DataFrame:
    """The days with a window that lies outside the day's close times."""
    placed = _with_end_ms(final).join(closings, "arrival_unit")
    return placed.where(f"NOT coalesce({closed}, FALSE)")


def _repeated(final: DataFrame, unique_columns: Sequence[str]) -> DataFrame:
    """The days with a window that occurs more than once, and the days between.

    Collecting the set of each window's days would need a sort; its first and last day do not.
    """
    windows = final.groupBy(*unique_columns).agg(
        F.count("*").alias("times"),
        F.min("arrival_unit").alias("first"),
        F.max("arrival_unit").alias("last"),
    )
    # Days between that lack the window are checked, too; the checks find nothing there.
    between = F.explode(F.sequence("first", "last")).alias("arrival_unit")
    return windows.where("times > 1").select(between)


def _arrival_units(*frames: DataFrame) -> set[date]:
    """The arrival units of all frames' rows, in one query."""
    every = reduce(DataFrame.union, [rows.select("arrival_unit") for rows in frames])
    return {row.arrival_unit for row in every.distinct().collect()}


def _of_arrival_units(rows: DataFrame, arrival_units: AbstractSet[date]) -> DataFrame:
    return rows.where(in_arrival_units(sorted(arrival_units)) if arrival_units else F.lit(False))
