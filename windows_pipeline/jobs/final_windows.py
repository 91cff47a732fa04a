"""Publishes the windows that each unit closed: only corrections change them (rule E1)."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from datetime import date

from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from windows_pipeline.arrival.log import ArrivalLog
from windows_pipeline.checks.compare import counted_alike, units_that_differ
from windows_pipeline.checks.run import Batch, Check
from windows_pipeline.checks.table_rules import closed_by_unit, final_windows_checks
from windows_pipeline.compat.local_frame import small_frame
from windows_pipeline.engine.suppression import until_window_closes
from windows_pipeline.incremental.units import units_frame
from windows_pipeline.jobs.correction.marker import any_correction
from windows_pipeline.jobs.job import Stage, StagedTable, kept
from windows_pipeline.jobs.windows_job import WindowsJob
from windows_pipeline.storage.arrival_units import in_units
from windows_pipeline.storage.diff import with_differences
from windows_pipeline.storage.table import Table


class FinalWindowsJob(WindowsJob):
    """Fills final_windows of one named window definition from its keyed_windows."""

    @property
    def inputs(self) -> list[Table]:
        """keyed_windows, late_records and arrival_log."""
        return [self.source.arrival_log, self.own.keyed_windows, self.own.late_records]

    @property
    def tables(self) -> list[Table]:
        """final_windows."""
        return [self.own.final_windows]

    @property
    def checks(self) -> list[Check]:
        """The checks of final windows."""
        return final_windows_checks(self.windows, self.correct_command)

    @property
    def place(self) -> tuple[str, ...]:
        """The columns that name a final window."""
        return ("arrival_unit", *self.windows.window_key)

    @property
    def _once(self) -> tuple[str, ...]:
        """The columns whose values a final window has alone."""
        return ("key", *(self.windows.row_key or ("window_end",)))

    def _closed(self, spark: SparkSession, days: Sequence[date]) -> DataFrame:
        keyed = self.own.keyed_windows.of_units(spark, days)
        columns = [field.name for field in self.own.final_windows.schema]
        return until_window_closes(keyed).select(*columns)

    def stage(self, spark: SparkSession, days: Sequence[date], log: ArrivalLog) -> Stage:
        """Takes the closed windows of the days.

        Raises:
            CorrectionUnfinishedError: A correction of these windows is not finished.
            BatchUnfinishedError: The stream's last micro-batch is not in all tables.
        """
        self.refuse_while_unfinished(spark, log)
        self.own.corrections.create_if_missing(spark)
        closed = kept(self._closed(spark, days))
        return Stage([StagedTable(self.own.final_windows, closed)], [closed])

    def evidence(
        self,
        spark: SparkSession,
        days: Sequence[date],
        rows: Sequence[DataFrame],
        log: ArrivalLog,
    ) -> list[Batch]:
        """The windows beside their close times, and those that went, changed or came anew.

        What was published is taken as the corrections of it say that it is.

        Of the units whose sides differ in their checksums, where a window lies outside the
        unit's close times, or where one is there twice: in the others no check can fail.
        """
        final = rows[0]
        corrections = self._corrections(spark, days, rows)
        units = units_frame(spark, self.arrivals(log), days)
        closings = F.broadcast(units.select("arrival_unit", "_close_before_ms", "_close_after_ms"))
        sides = {
            "final": final,
            "published": with_differences(
                self._published(spark, days),
                newest_corrections(corrections, self.place),
                self.place,
            ),
            "closed": self._closed(spark, days),
        }
        differing = units_that_differ(sides, required=["final", "closed"])
        misplaced = _misplaced(final, closings, closed_by_unit(self.windows))
        in_doubt = differing | misplaced | _repeated(final, self._once)
        sides["before"] = corrections.select(*self.place, "old.*")
        doubtful = {name: _of_units(frame, in_doubt) for name, frame in sides.items()}
        same = Window.partitionBy(*self._once)
        had = F.col("in_published") + F.col("in_before")
        alike = _with_end_ms(counted_alike(doubtful, self.place)).withColumns(
            {
                "_window_start_ms": F.unix_millis("window_start"),
                "times_final": F.sum("in_final").over(same),
                "unit_had": F.sum(had).over(Window.partitionBy("arrival_unit")),
            }
        )
        judged = alike.join(closings, "arrival_unit")
        return [Batch("final_windows", judged, self.checks)]

    def publish(self, spark: SparkSession, days: Sequence[date], stage: Stage) -> dict[str, int]:
        """Writes final_windows of units that have none; the checks say that the others stand."""
        (final,) = stage.tables
        return {final.table.name: final.table.publish_new(final.rows, days, final.many)}

    def _published(self, spark: SparkSession, days: Sequence[date]) -> DataFrame:
        """The final windows that stood before the job."""
        return self.own.final_windows.of_units(spark, days)

    def _corrections(
        self, spark: SparkSession, days: Sequence[date], rows: Sequence[DataFrame]
    ) -> DataFrame:
        """The corrections that the judged rows must agree with."""
        table = self.own.corrections
        if not any_correction(spark, table):
            return small_frame(spark, [], table.schema)
        return table.of_units(spark, days)


def newest_corrections(corrections: DataFrame, place: Sequence[str]) -> DataFrame:
    """The last thing that happened to each corrected window: its place and `new`."""
    # In a struct: max_by would pass over a null.
    new = F.max_by(F.struct("new"), "correction").getField("new")
    return corrections.groupBy(*place).agg(new.alias("new"))


def _with_end_ms(rows: DataFrame) -> DataFrame:
    return rows.withColumn("_window_end_ms", F.unix_millis("window_end"))


def _misplaced(final: DataFrame, closings: DataFrame, closed: str) -> set[date]:
    """The units with a window that their close times do not close."""
    placed = _with_end_ms(final).join(closings, "arrival_unit")
    return _units(placed.where(f"NOT coalesce({closed}, FALSE)"))


def _repeated(final: DataFrame, once: Sequence[str]) -> set[date]:
    """The units with a window that is final elsewhere, too, by what it should have alone.

    And those between: a set of each window's units would be gathered in sorted rows, not in a hash
    table of fixed width.
    """
    each = final.groupBy(*once).agg(
        F.count("*").alias("times"),
        F.min("arrival_unit").alias("first"),
        F.max("arrival_unit").alias("last"),
    )
    # Units between them that have no such window cost only a look.
    between = F.explode(F.sequence("first", "last")).alias("arrival_unit")
    return _units(each.where("times > 1").select(between))


def _units(rows: DataFrame) -> set[date]:
    return {row.arrival_unit for row in rows.select("arrival_unit").distinct().collect()}


def _of_units(rows: DataFrame, units: AbstractSet[date]) -> DataFrame:
    return rows.where(in_units(sorted(units)) if units else F.lit(False))
