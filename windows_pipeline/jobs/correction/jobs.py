"""The jobs of a correction, which change published rows and record each change (rule E1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from windows_pipeline.arrival.log import ArrivalLog
from windows_pipeline.incremental.alerts import standing
from windows_pipeline.jobs.alerts import AlertsJob
from windows_pipeline.jobs.correction_marker import Correction
from windows_pipeline.jobs.final_windows import FinalWindowsJob
from windows_pipeline.jobs.firings import FiringsJob
from windows_pipeline.jobs.job import Rows, Stage, StagedTable, cache_rows
from windows_pipeline.jobs.keyed_windows import KeyedWindowsJob
from windows_pipeline.jobs.unfinished_batch import require_finished_batch
from windows_pipeline.jobs.windows_job import WindowsJob
from windows_pipeline.storage.diff import apply_differences, differences
from windows_pipeline.storage.joins import join_on
from windows_pipeline.storage.table import Table


@dataclass(frozen=True)
class InCorrection(WindowsJob):
    """A job of a correction; no other job may write while the correction is not finished."""

    correction: Correction

    def refuse_while_correcting(self, spark: SparkSession) -> None:
        """Refuses nothing, as the job belongs to the unfinished correction."""

    def refuse_while_unfinished(self, spark: SparkSession, log: ArrivalLog) -> None:
        """Refuses to write unless the last micro-batch of the log is in all tables.

        The correction looked for later micro-batches before it ran any job.

        Raises:
            BatchUnfinishedError: The last micro-batch is not in all tables.
        """
        require_finished_batch(spark, self.of_pipeline, log, alone=True)


class KeyedWindowsCorrection(InCorrection, KeyedWindowsJob):
    """Computes keyed_windows and late_records again."""


class FinalWindowsCorrection(InCorrection, FinalWindowsJob):
    """Lists in corrections which final windows differ, then changes final_windows.

    The windows are always compared with the version before the correction, so a correction that
    was killed and is run again lists the same rows.
    """

    @property
    def tables(self) -> list[Table]:
        """final_windows and corrections."""
        return [self.window_tables.final_windows, self.window_tables.corrections]

    def stage(self, spark: SparkSession, days: Sequence[date], log: ArrivalLog) -> Stage:
        """Selects the closed windows of the days, and those that differ from the published ones."""
        stage = super().stage(spark, days, log)
        found = differences(
            self._published(spark, days), stage.rows["final_windows"], self.key_columns
        ).withColumns(
            {
                "correction": F.lit(self.correction.number).cast("bigint"),
                "cause": F.lit(self.correction.cause),
            }
        )
        listed = cache_rows(found.select(*self.window_tables.corrections.schema.names))
        rows = {**stage.rows, "corrections": listed}
        return Stage.of(self.tables, rows, [*stage.cached, listed])

    def publish(self, spark: SparkSession, days: Sequence[date], stage: Stage) -> dict[str, int]:
        """Writes corrections first, so that each change is listed before its window changes."""
        final, corrections = stage.tables["final_windows"], stage.tables["corrections"]
        return {
            corrections.table.name: self.list_corrections(corrections),
            final.table.name: self.change_final_windows(spark, days, final),
        }

    def list_corrections(self, corrections: StagedTable) -> int:
        """Replaces the correction's rows; returns the version."""
        return corrections.replace(f"correction = {self.correction.number}")

    def change_final_windows(
        self, spark: SparkSession, days: Sequence[date], final: StagedTable
    ) -> int:
        """Writes the windows that differ from the stored windows; returns the version."""
        stored = final.table.of_arrival_units(spark, days)
        return _change(spark, final, stored)

    def _published(self, spark: SparkSession, days: Sequence[date]) -> DataFrame:
        version = self.correction.final_version
        return self.window_tables.final_windows.of_arrival_units(spark, days, version)

    def _corrections(self, spark: SparkSession, days: Sequence[date], rows: Rows) -> DataFrame:
        earlier = super()._corrections(spark, days, rows)
        earlier = earlier.where(F.col("correction") < self.correction.number)
        return earlier.unionByName(rows["corrections"])


class AlertsCorrection(InCorrection, AlertsJob):
    """Retracts alerts that no longer hold, and raises alerts that hold now; deletes none.

    Notifications, if there are any, are treated alike. Episodes are replaced where they differ.
    """

    def stage(self, spark: SparkSession, days: Sequence[date], log: ArrivalLog) -> Stage:
        """Raises the days' alerts; the staged rows are all rows that the days will have."""
        stage = super().stage(spark, days, log)
        rows = dict(stage.rows)
        rows["alerts"] = cache_rows(self._with_history(self._before(spark, days), rows["alerts"]))
        cached = [*stage.cached, rows["alerts"]]
        if self.definition.notifies:
            stored = self.window_tables.notifications.of_arrival_units(spark, days)
            corrected = self.definition.corrected_notifications(
                stored, rows["notifications"], self.correction.number
            )
            rows["notifications"] = cache_rows(corrected)
            cached.append(rows["notifications"])
        return Stage.of(self.tables, rows, cached)

    def publish(self, spark: SparkSession, days: Sequence[date], stage: Stage) -> dict[str, int]:
        """Writes the rows that differ from the stored rows."""
        return {
            rows.table.name: _change(spark, rows, rows.table.of_arrival_units(spark, days))
            for rows in stage.tables.values()
        }

    def _before(self, spark: SparkSession, days: Sequence[date]) -> DataFrame:
        version = self.correction.alerts_version
        return self.window_tables.alerts.of_arrival_units(spark, days, version)

    def _with_history(self, before: DataFrame, raised: DataFrame) -> DataFrame:
        """The alerts before the correction, some of them retracted, and the new alerts."""
        number = F.lit(self.correction.number).cast("bigint")
        history = ("correction", "retracted_by")
        found = differences(
            standing(before).drop(*history), raised.drop(*history), self.key_columns
        )
        gone = found.where(F.col("old").isNotNull()).select(
            *self.key_columns, F.lit(True).alias("_is_gone")
        )
        retracted = F.when(F.col("retracted_by").isNull() & F.col("_is_gone"), number)
        marked = join_on(before, gone, self.key_columns, "left").withColumn(
            "retracted_by", F.coalesce("retracted_by", retracted)
        )
        added = found.where(F.col("new").isNotNull()).select(
            *self.key_columns, "new.*", number.alias("correction")
        )
        return marked.drop("_is_gone").unionByName(added, allowMissingColumns=True)

    def _compared(
        self, spark: SparkSession, days: Sequence[date], alerts: DataFrame
    ) -> dict[str, DataFrame]:
        """All alerts but the new ones, and all published alerts, none of which may be missing."""
        number = F.lit(self.correction.number).cast("bigint")
        before = self._before(spark, days)
        frames = {
            "alerts": alerts.where(~F.col("correction").eqNullSafe(number)),
            "published": before,
            "retracted": before.limit(0),
        }
        return {name: rows.drop("correction", "retracted_by") for name, rows in frames.items()}


class FiringsCorrection(InCorrection, FiringsJob):
    """Computes firings, early_warnings and processed again."""


def _change(spark: SparkSession, staged: StagedTable, stored: DataFrame) -> int:
    """Writes the rows that differ from the stored rows; returns the version."""
    columns, key = staged.table.schema.names, staged.table.key
    found = cache_rows(differences(stored.select(*columns), staged.rows.select(*columns), key))
    try:
        return apply_differences(spark, staged.table, found)
    finally:
        found.unpersist()
