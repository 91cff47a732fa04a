"""The jobs of a correction: what was published is changed, and it is told how (rule E1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from windows_pipeline.arrival.log import ArrivalLog
from windows_pipeline.incremental.alerts import standing
from windows_pipeline.jobs.alerts import AlertsJob
from windows_pipeline.jobs.correction.marker import Correction
from windows_pipeline.jobs.final_windows import FinalWindowsJob
from windows_pipeline.jobs.firings import FiringsJob
from windows_pipeline.jobs.job import Stage, StagedTable, kept
from windows_pipeline.jobs.keyed_windows import KeyedWindowsJob
from windows_pipeline.jobs.windows_job import WindowsJob
from windows_pipeline.storage.arrival_units import in_units
from windows_pipeline.storage.diff import apply_differences, differences
from windows_pipeline.storage.table import Table
from windows_pipeline.storage.tables import FiringTables, WindowTables


@dataclass(frozen=True)
class InCorrection(WindowsJob):
    """A job of a correction: the one thing that may write while it is not finished."""

    correction: Correction

    @property
    def own(self) -> WindowTables:
        """The tables of the definition; until the end they may follow another grace."""
        return super().own.before_correction()

    def refuse_while_correcting(self, spark: SparkSession) -> None:
        """Nothing to refuse: the correction under way is this one."""

    def is_alone(self, spark: SparkSession) -> bool:
        """It is: that was looked for before any of these jobs."""
        return True


class KeyedWindowsCorrection(InCorrection, KeyedWindowsJob):
    """Computes keyed_windows and late_records anew."""


class FinalWindowsCorrection(InCorrection, FinalWindowsJob):
    """Lists in corrections what differs in final_windows, then changes final_windows.

    What differs is always told from the version before the correction, so a killed one that is
    run again comes to the same.
    """

    @property
    def tables(self) -> list[Table]:
        """final_windows and corrections."""
        return [self.own.final_windows, self.own.corrections]

    def stage(self, spark: SparkSession, days: Sequence[date], log: ArrivalLog) -> Stage:
        """Takes the closed windows of the days, and what they differ in from the published."""
        stage = super().stage(spark, days, log)
        found = differences(
            self._published(spark, days), stage.tables[0].rows, self.place
        ).withColumns(
            {
                "correction": F.lit(self.correction.number).cast("bigint"),
                "cause": F.lit(self.correction.cause),
            }
        )
        corrections = self.own.corrections
        listed = kept(found.select(*corrections.schema.names))
        return Stage([*stage.tables, StagedTable(corrections, listed)], [*stage.cached, listed])

    def publish(self, spark: SparkSession, days: Sequence[date], stage: Stage) -> dict[str, int]:
        """Writes corrections first: no window changes before it is told."""
        final, corrections = stage.tables
        return {
            corrections.table.name: self.list_corrections(corrections),
            final.table.name: self.change_final_windows(spark, days, final),
        }

    def list_corrections(self, corrections: StagedTable) -> int:
        """Replaces the correction's rows; returns the version."""
        return corrections.table.replace(corrections.rows, f"correction = {self.correction.number}")

    def change_final_windows(
        self, spark: SparkSession, days: Sequence[date], final: StagedTable
    ) -> int:
        """Writes the windows that differ from those that stand there; returns the version."""
        stored = final.table.of_units(spark, days)
        return _change(spark, final, stored, self.place)

    def _published(self, spark: SparkSession, days: Sequence[date]) -> DataFrame:
        version = self.correction.final_version
        return self.own.final_windows.read_version(spark, version).where(in_units(days))

    def _corrections(
        self, spark: SparkSession, days: Sequence[date], rows: Sequence[DataFrame]
    ) -> DataFrame:
        earlier = super()._corrections(spark, days, rows)
        return earlier.where(F.col("correction") < self.correction.number).unionByName(rows[1])


class AlertsCorrection(InCorrection, AlertsJob):
    """Takes alerts back that no longer hold and raises those that hold now; deletes none."""

    def stage(self, spark: SparkSession, days: Sequence[date], log: ArrivalLog) -> Stage:
        """Raises the days' alerts; the rows are all that the units should hold afterwards."""
        stage = super().stage(spark, days, log)
        (raised,) = stage.tables
        rows = kept(self._with_history(self._before(spark, days), raised.rows))
        return Stage([StagedTable(raised.table, rows)], [*stage.cached, rows])

    def publish(self, spark: SparkSession, days: Sequence[date], stage: Stage) -> dict[str, int]:
        """Writes the alerts that differ from those that stand there."""
        (rows,) = stage.tables
        stored = rows.table.of_units(spark, days)
        # One that was taken back may be raised again: by its correction they differ.
        place = (*self.place, "correction")
        return {rows.table.name: _change(spark, rows, stored, place)}

    def _before(self, spark: SparkSession, days: Sequence[date]) -> DataFrame:
        version = self.correction.alerts_version
        return self.own.alerts.read_version(spark, version).where(in_units(days))

    def _with_history(self, before: DataFrame, raised: DataFrame) -> DataFrame:
        """The alerts before and those raised now: kept, taken back, or new."""
        number = F.lit(self.correction.number).cast("bigint")
        history = ("correction", "retracted_by")
        found = differences(standing(before).drop(*history), raised.drop(*history), self.place)
        gone = found.where(F.col("old").isNotNull()).select(
            *self.place, F.lit(True).alias("is_gone")
        )
        taken_back = F.when(F.col("retracted_by").isNull() & F.col("is_gone"), number)
        marked = before.join(gone, list(self.place), "left").withColumn(
            "retracted_by", F.coalesce("retracted_by", taken_back)
        )
        added = found.where(F.col("new").isNotNull()).select(
            *self.place, "new.*", number.alias("correction")
        )
        return marked.drop("is_gone").unionByName(added, allowMissingColumns=True)

    def _sides(
        self, spark: SparkSession, days: Sequence[date], alerts: DataFrame
    ) -> dict[str, DataFrame]:
        """All alerts but the new ones beside all that were published: none may be missing."""
        number = F.lit(self.correction.number).cast("bigint")
        before = self._before(spark, days)
        sides = {
            "alerts": alerts.where(~F.col("correction").eqNullSafe(number)),
            "published": before,
            "retracted": before.limit(0),
        }
        return {name: rows.drop("correction", "retracted_by") for name, rows in sides.items()}


class FiringsCorrection(InCorrection, FiringsJob):
    """Computes firings and early_warnings anew."""

    @property
    def fires(self) -> FiringTables:
        """The tables of its firings; until the end they may follow another grace."""
        return super().fires.before_correction()


def _change(
    spark: SparkSession, staged: StagedTable, stored: DataFrame, place: Sequence[str]
) -> int:
    columns = staged.table.schema.names
    found = kept(differences(stored.select(*columns), staged.rows.select(*columns), place))
    try:
        return apply_differences(spark, staged.table, found, place)
    finally:
        found.unpersist()
